// What: finds all pairs of groups whose margin reaches a floor, by the int8 scan; each pair that may is
//   checked by an exact product. Groups lie in order of weight, so that s~ differs little within a
//   chunk and is part of the bar of the scan.
// Python twin: none; the reference engine compares all pairs.
// Invariants: no pair of margin >= floor is missed; what is found does not depend on kernel or threads.
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

class PairSearch {
 public:
  // Called by the thread of the caller with the share of the search that is done; may throw.
  using Pause = std::function<void(double)>;
  // Called by any thread `part` for each pair of margin >= floor; returns how many pairs it keeps.
  using Take = std::function<std::size_t(std::size_t part, const FoundPair&)>;

  PairSearch(const Kernel& kernel, Pool& pool, const GroupRows& rows)
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
    std::fill(place_.begin(), place_.end(), kNowhere);
    order_.swap(groups);
    std::sort(order_.begin(), order_.end(), [this](Row a, Row b) {
      return rows_.mass(a) != rows_.mass(b) ? rows_.mass(a) < rows_.mass(b) : a < b;
    });
    chunks_.clear();
    least_.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i % kChunkRows == 0) {
        const std::size_t left = std::min(kChunkRows, order_.size() - i);
        chunks_.emplace_back((left + kScanRows - 1) / kScanRows * kScanRows, width_);
        least_.push_back(rows_.reach(order_[i]));
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
    const std::uint32_t place = place_[row];
    chunks_[place / kChunkRows].write(place % kChunkRows, codes_.data(), scale, residual);
  }

  void remove(Row row) {
    chunks_[place_[row] / kChunkRows].clear(place_[row] % kChunkRows);
    order_[place_[row]] = kNowhere;
    place_[row] = kNowhere;
  }

  // Visits all pairs of groups that were laid out and not changed since. Returns 1; or ends early, and
  // returns about the share that was searched, if more than `limit` pairs are kept.
  double all_pairs(double floor, std::size_t limit, const Take& take, const Pause& pause) {
    const std::size_t n = order_.size();
    std::vector<Row> queries(order_);
    return sweep(queries, n * (n + 1) / 2, true, floor, limit, take, pause);
  }

  // Visits all pairs of these groups with all others.
  void pairs_of(const std::vector<Row>& queries, double floor, const Take& take,
                const Pause& pause) {
    sweep(queries, queries.size() * order_.size(), false, floor, ~std::size_t{0}, take, pause);
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
    std::vector<double> reaches;
  };

  struct Sweep {
    const std::vector<Row>& queries;
    std::size_t n_pairs;
    bool later_only;  // query i is at place i, and only later places count
    double floor;
    std::size_t limit;
    const Take& take;
    const Pause& pause;
    std::atomic<std::size_t> next{0}, done{0}, kept{0};
    std::atomic<bool> stopped{false};

    double share() const { return static_cast<double>(done) / static_cast<double>(n_pairs); }
  };

  double sweep(const std::vector<Row>& queries, std::size_t n_pairs, bool later_only, double floor,
               std::size_t limit, const Take& take, const Pause& pause) {
    Sweep all{queries, n_pairs, later_only, floor, limit, take, pause};
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

  void work(std::size_t part, Sweep& all) {
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
  void block(std::size_t part, Sweep& all, Worker& worker, std::size_t first, std::size_t step) {
    const std::size_t n = std::min(kBlockMax, all.queries.size() - first);
    worker.reaches.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      const Row row = all.queries[first + i];
      if (row == kNowhere) continue;
      worker.queries.set(i, rows_.direction(row), kDirectionScale, rows_.dimension(), 0.0f,
                         kernel_.encode_vector);
      worker.reaches[i] = rows_.reach(row);
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

  void set_bars(const Sweep& all, Worker& worker, std::size_t first, std::size_t chunk) const {
    for (std::size_t i = 0; i < worker.parameters.size(); ++i) {
      const double required = constant_ + slope_ * worker.reaches[i] * least_[chunk];
      const double bar = all.floor + required - slack_;
      worker.parameters[i].bar = all.queries[first + i] == kNowhere
                                     ? 2.0f  // above any similarity
                                     : static_cast<float>(std::max(bar, -2.0));
    }
  }

  // Scans some rows for a block of queries, and checks what may reach the floor.
  void strip(std::size_t part, Sweep& all, Worker& worker, std::size_t first, std::size_t row,
             std::size_t n_rows) {
    const ScanJob job =
        chunks_[row / kChunkRows].job(row % kChunkRows, n_rows, worker.queries.codes(0),
                                      worker.parameters.data(), worker.parameters.size());
    const std::size_t n_hits = kernel_.scan(job, worker.hits.get());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n_hits; ++i) {
      const Hit& hit = worker.hits[i];
      const std::size_t place = row + hit.row, query = first + hit.vector;
      if (all.later_only ? place <= query : order_[place] == all.queries[query]) continue;
      const Row a = all.queries[query], b = order_[place];
      const double margin = rows_.margin(a, b);
      if (margin >= all.floor) kept += all.take(part, {a, b, margin});
    }
    if (kept && (all.kept += kept) > all.limit) all.stopped = true;
  }

  const Kernel& kernel_;
  Pool& pool_;
  const GroupRows& rows_;
  std::size_t width_;
  double slack_;  // of the rounding of directions and of the bars
  double slope_, constant_;
  std::vector<Row> order_;            // groups by place, in order of weight when laid out
  std::vector<std::uint32_t> place_;  // of each group
  std::vector<CodeTiles> chunks_;
  std::vector<double> least_;  // least reach in each chunk; weights only grow
  std::vector<std::int8_t> codes_;
  std::vector<float> room_;
};

}  // namespace linkstream
