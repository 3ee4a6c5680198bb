// What: finds all pairs of groups whose margin reaches a floor, by the int8 scan; each pair that may is
//   checked by an exact product. Groups lie in order of weight, so that s~ differs little within a
//   chunk and is part of the bar of the scan. The floor may depend on the size of the smaller group.
// Python twin: none; the reference engine compares all pairs.
// Invariants: no pair of margin >= floor is missed; with a fixed floor, what is found does not depend on
//   kernel or threads. Groups are rows of a table (group_rows.hpp, cluster_table.hpp) that are not zero.
// Memory at dimension d: d padded to 64, and 12 bytes, for each group.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "group_rows.hpp"
#include "pool.hpp"
#include "scan.hpp"

namespace linkstream {

struct FoundPair {
  Row a, b;
  double margin;
};

// Groups: a table with dimension, thresholds, and direction, mass, reach and size_of of each row.
template <class Groups>
class PairSearch {
 public:
  // Called by the thread of the caller with the share of the search that is done; may throw.
  using Pause = std::function<void(double)>;
  // Called by any thread `part` for each pair of margin >= floor; returns how many pairs it keeps.
  using Take = std::function<std::size_t(std::size_t part, const FoundPair&)>;

  PairSearch(const Kernel& kernel, Pool& pool, const Groups& rows)
      : kernel_(kernel),
        pool_(pool),
        rows_(rows),
        width_(padded(rows.dimension())),
        slack_(2e-5 + std::sqrt(static_cast<double>(rows.dimension())) * 1.2e-7),
        place_(rows.size(), kNowhere),
        codes_(width_, 0),
        room_(width_) {
    const double c2 = rows.thresholds().cluster_similarity * rows.thresholds().cluster_similarity;
    slope_ = std::max(rows.thresholds().pair_similarity_max - c2, 0.0) / (1.0 - c2);
    constant_ = c2 * (1.0 - slope_);
  }

  // s~(a, b) = constant + slope * reach_a * reach_b.
  double slope() const { return slope_; }
  double constant() const { return constant_; }
  std::size_t n_places() const { return order_.size(); }

  // Lays out these groups anew.
  void arrange(std::vector<Row> groups, const Pause& pause) {
    place_.assign(rows_.size(), kNowhere);
    order_.swap(groups);
    std::sort(order_.begin(), order_.end(), [this](Row a, Row b) {
      return rows_.mass(a) != rows_.mass(b) ? rows_.mass(a) < rows_.mass(b) : a < b;
    });
    chunks_.clear();
    least_.clear();
    most_.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i % kChunkRows == 0) {
        const std::size_t left = std::min(kChunkRows, order_.size() - i);
        open_chunk((left + kScanRows - 1) / kScanRows * kScanRows);
      }
      place_[order_[i]] = static_cast<std::uint32_t>(i);
      update(order_[i]);
      if (i % 64 == 0) pause(0.0);
    }
  }

  // Encodes the direction of a group, which has changed.
  void update(Row row) {
    float scale, residual;
    kernel_.encode_vector(rows_.direction(row), kDirectionScale, rows_.dimension(), codes_.data(),
                          room_.data(), &scale, &residual);
    const std::uint32_t place = place_[row], chunk = place / kChunkRows;
    chunks_[chunk].write(place % kChunkRows, codes_.data(), scale, residual);
    least_[chunk] = std::min(least_[chunk], rows_.reach(row));
    most_[chunk] = std::max(most_[chunk], rows_.size_of(row));
  }

  bool has(Row row) const { return row < place_.size() && place_[row] != kNowhere; }

  // Adds a group behind all others.
  void add(Row row) {
    place_.resize(std::max(place_.size(), rows_.size()), kNowhere);
    const std::size_t place = order_.size();
    if (place % kChunkRows == 0) {
      open_chunk(kChunkRows);
    } else if (place % kChunkRows >= chunks_.back().size()) {
      chunks_.pop_back();  // the last one was only as large as needed
      chunks_.emplace_back(kChunkRows, width_);
      for (std::size_t i = place / kChunkRows * kChunkRows; i < place; ++i) {
        if (order_[i] != kNowhere) update(order_[i]);
      }
    }
    order_.push_back(row);
    place_[row] = static_cast<std::uint32_t>(place);
    update(row);
  }

  void remove(Row row) {
    chunks_[place_[row] / kChunkRows].clear(place_[row] % kChunkRows);
    order_[place_[row]] = kNowhere;
    place_[row] = kNowhere;
  }

  // Visits all pairs of groups that were laid out and not changed since. Returns 1; or ends early, and
  // returns about the share that was searched, if more than `limit` pairs are kept.
  double all_pairs(double floor, std::size_t limit, const Take& take, const Pause& pause) {
    return each_pair(Floored{rows_, floor, take}, limit, pause);
  }

  // Visits all pairs of these groups with all others.
  void pairs_of(const std::vector<Row>& queries, double floor, const Take& take,
                const Pause& pause) {
    each_pair_of(queries, Floored{rows_, floor, take}, pause);
  }

  // The same with a visitor of the caller. `visitor.floor(size)` is the least margin that matters of a
  // pair whose smaller group has at most this size; `visitor.visit(part, a, b)` is called by any thread
  // `part` for each pair that may reach it, and returns how many pairs it keeps.
  template <class Visitor>
  double each_pair(const Visitor& visitor, std::size_t limit, const Pause& pause) {
    const std::size_t n = order_.size();
    std::vector<Row> queries(order_);
    return sweep(queries, n * (n + 1) / 2, true, visitor, limit, pause);
  }

  // A pair of two queries is visited twice.
  template <class Visitor>
  void each_pair_of(const std::vector<Row>& queries, const Visitor& visitor, const Pause& pause) {
    sweep(queries, queries.size() * order_.size(), false, visitor, ~std::size_t{0}, pause);
  }

 private:
  static constexpr Row kNowhere = 0xffffffff;
  static constexpr double kStepMicroseconds = 20e3;  // of one call of the kernel, at most, about

  struct Worker {
    Worker(std::size_t n_hits, std::size_t width)
        : queries(kBlockMax, width), hits(aligned_block<Hit>(n_hits)) {}
    Queries queries;
    Block<Hit> hits;
    std::vector<VectorCode> parameters;
    std::vector<double> reaches, sizes;
  };

  struct Floored {
    const Groups& rows;
    double least;
    const Take& take;

    double floor(double) const { return least; }
    std::size_t visit(std::size_t part, Row a, Row b) const {
      const double margin = rows.margin(a, b);
      return margin >= least ? take(part, {a, b, margin}) : 0;
    }
  };

  template <class Visitor>
  struct Sweep {
    const std::vector<Row>& queries;
    std::size_t n_pairs;
    bool later_only;  // query i is at place i, and only later places count
    const Visitor& visitor;
    std::size_t limit;
    const Pause& pause;
    std::atomic<std::size_t> next{0}, done{0}, kept{0};
    std::atomic<bool> stopped{false};

    double share() const { return static_cast<double>(done) / static_cast<double>(n_pairs); }
  };

  void open_chunk(std::size_t n_rows) {
    chunks_.emplace_back(n_rows, width_);
    least_.push_back(1.0);  // no reach is greater
    most_.push_back(0.0);
  }

  template <class Visitor>
  double sweep(const std::vector<Row>& queries, std::size_t n_pairs, bool later_only,
               const Visitor& visitor, std::size_t limit, const Pause& pause) {
    if (!n_pairs) return 1.0;
    Sweep<Visitor> all{queries, n_pairs, later_only, visitor, limit, pause};
    const double products = static_cast<double>(n_pairs * width_);
    if (products < 700.0 * kernel_.products_per_microsecond) {
      work(0, all);
    } else {
      pool_.run([&](std::size_t part) { work(part, all); });
    }
    return all.stopped ? std::min(all.share(), 0.99) : 1.0;
  }

  // Rows that one call of the kernel scans for a block of queries, so that it ends soon.
  std::size_t step() const {
    const double rows = kStepMicroseconds * kernel_.products_per_microsecond /
                        static_cast<double>(kBlockMax * width_);
    const auto whole = static_cast<std::size_t>(std::min(rows, static_cast<double>(kChunkRows)));
    return std::max(whole / kScanRows * kScanRows, kScanRows);
  }

  template <class Visitor>
  void work(std::size_t part, Sweep<Visitor>& all) {
    try {
      const std::size_t rows =
          std::min(step(), (order_.size() + kScanRows) / kScanRows * kScanRows);
      Worker worker(rows * std::min(kBlockMax, all.queries.size()), width_);
      for (std::size_t first; (first = all.next.fetch_add(kBlockMax)) < all.queries.size();) {
        block(part, all, worker, first, rows);
        if (all.stopped) return;
      }
    } catch (...) {
      all.stopped = true;
      throw;
    }
  }

  // Scans a block of queries against all chunks.
  template <class Visitor>
  void block(std::size_t part, Sweep<Visitor>& all, Worker& worker, std::size_t first,
             std::size_t step) {
    const std::size_t n = std::min(kBlockMax, all.queries.size() - first);
    worker.reaches.assign(n, 0.0);
    worker.sizes.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      const Row row = all.queries[first + i];
      if (row == kNowhere) continue;
      worker.queries.set(i, rows_.direction(row), kDirectionScale, rows_.dimension(), 0.0f,
                         kernel_.encode_vector);
      worker.reaches[i] = rows_.reach(row);
      worker.sizes[i] = rows_.size_of(row);
    }
    worker.parameters.assign(worker.queries.all_parameters(), worker.queries.all_parameters() + n);
    std::size_t row = all.later_only ? first : 0;
    while (row < order_.size() && !all.stopped) {
      const std::size_t chunk = row / kChunkRows;
      const std::size_t end = std::min(order_.size(), (chunk + 1) * kChunkRows);
      set_bars(all, worker, first, chunk);
      for (; row < end && !all.stopped; row += step) {
        const std::size_t n_rows = std::min(step, end - row);
        strip(part, all, worker, first, row, n_rows);
        all.done += n_rows * n;
        if (part == 0) all.pause(all.share());
      }
      row = end;
    }
  }

  template <class Visitor>
  void set_bars(const Sweep<Visitor>& all, Worker& worker, std::size_t first,
                std::size_t chunk) const {
    for (std::size_t i = 0; i < worker.parameters.size(); ++i) {
      const double required = constant_ + slope_ * worker.reaches[i] * least_[chunk];
      const double floor = all.visitor.floor(std::min(worker.sizes[i], most_[chunk]));
      const double bar = std::clamp(floor + required - slack_, -2.0, 2.0);
      worker.parameters[i].bar = all.queries[first + i] == kNowhere ? 2.0f  // above any similarity
                                                                    : static_cast<float>(bar);
    }
  }

  // Scans some rows for a block of queries, and checks what may reach the floor.
  template <class Visitor>
  void strip(std::size_t part, Sweep<Visitor>& all, Worker& worker, std::size_t first,
             std::size_t row, std::size_t n_rows) {
    const ScanJob job =
        chunks_[row / kChunkRows].job(row % kChunkRows, n_rows, worker.queries.codes(0),
                                      worker.parameters.data(), worker.parameters.size());
    const std::size_t n_hits = kernel_.scan(job, worker.hits.get());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n_hits; ++i) {
      const Hit& hit = worker.hits[i];
      const std::size_t place = row + hit.row, query = first + hit.vector;
      if (all.later_only ? place <= query : order_[place] == all.queries[query]) continue;
      kept += all.visitor.visit(part, all.queries[query], order_[place]);
    }
    if (kept && (all.kept += kept) > all.limit) all.stopped = true;
  }

  const Kernel& kernel_;
  Pool& pool_;
  const Groups& rows_;
  std::size_t width_;
  double slack_;  // of the rounding of directions and of the bars
  double slope_, constant_;
  std::vector<Row> order_;            // groups by place, in order of weight when laid out
  std::vector<std::uint32_t> place_;  // of each group
  std::vector<CodeTiles> chunks_;
  std::vector<double> least_, most_;  // bounds on the reach and the size of rows in each chunk
  std::vector<std::int8_t> codes_;
  std::vector<float> room_;
};

}  // namespace linkstream
