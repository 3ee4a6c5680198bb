// What: the sum of all vectors of each cluster, for cluster evidence: clusters are tested instead of J
//   alone.
// Paper: equation 21 with a cluster in J's place. Python twin: engine/cluster_sums.py.
// Invariants: row i holds the exact sum of component i of the forest; codes are those of the sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "cluster_scan.hpp"
#include "graph.hpp"
#include "group_rows.hpp"
#include "scan.hpp"

namespace linkstream {

class ClusterSums {
 public:
  struct Best {
    std::uint32_t component = 0;
    double similarity = 0.0;
    double threshold = 0.0;
    bool found = false;
  };

  ClusterSums(const Graph& graph, Search& search, bool on)
      : on_(on),
        coded_(on),
        graph_(graph),
        search_(search),
        rows_(graph.dimension()),
        query_(kScanRows, rows_.width()),
        codes_(rows_.width(), 0),
        room_(rows_.width()) {}

  // Computes all sums, and keeps them from now on, with codes to scan them.
  void turn_on() {
    if (coded_) return;
    on_ = coded_ = true;
    read();
  }

  // The same without codes, which cost more than the sums.
  void keep() {
    if (on_) return;
    on_ = true;
    read();
  }

  const std::int64_t* sum(std::uint32_t component) const { return rows_.sum(component); }
  Integer square(std::uint32_t component) const { return squares_[component]; }

  // Adds a vector to a component, which may be new.
  void add(std::uint32_t component, const IncomingVector& x) {
    if (!on_) return;
    open(component);
    const Integer product = known_.q == x.q && known_.component == component
                                ? known_.product
                                : product_of(component, x);
    save(component);
    squares_[component] += 2 * product + x.square;
    graph_.kernel.add_vector(rows_.sum(component), x.q, graph_.dimension());
    encode(component);
  }

  // Adds a sum of vectors to a component, which may be new.
  void add(std::uint32_t component, const IncomingSum& x) {
    if (!on_) return;
    open(component);
    save(component);
    const std::int64_t count = graph_.forest.components[component].vectors;
    squares_[component] += 2 * graph_.product(x, rows_.sum(component), count) + x.square;
    add_sum(rows_.sum(component), x.sum);
    encode(component);
  }

  // Subtracts a vector from a component.
  void take(std::uint32_t component, const IncomingVector& x) {
    if (!on_) return;
    save(component);
    std::int64_t* sum = rows_.sum(component);
    const std::int64_t count = graph_.forest.components[component].vectors;
    squares_[component] += x.square - 2 * dot(graph_.kernel, x.q, sum, count, graph_.dimension());
    for (std::size_t i = 0; i < graph_.dimension(); ++i) sum[i] -= x.q[i];
    encode(component);
  }

  // Subtracts a node from a component that has other nodes.
  void take(std::uint32_t component, Row row) {
    if (!on_) return;
    save(component);
    std::int64_t* sum = rows_.sum(component);
    const std::int64_t* gone = graph_.rows.sum(row);
    for (std::size_t i = 0; i < graph_.dimension(); ++i) sum[i] -= gone[i];
    squares_[component] = square_of(component);
    encode(component);
  }

  // Sets the sum of a removed component to zero, for the next one with its number.
  void close(std::uint32_t component) {
    if (!on_) return;
    save(component);
    clear(component);
  }

  // Moves nodes from a component to a new one.
  void split(std::uint32_t old, std::uint32_t fresh, const std::vector<Row>& nodes) {
    if (!on_) return;
    open(fresh);
    save(old);
    save(fresh);
    std::int64_t* part = rows_.sum(fresh);
    for (const Row row : nodes) add_sum(part, graph_.rows.sum(row));
    std::int64_t* rest = rows_.sum(old);
    for (std::size_t i = 0; i < graph_.dimension(); ++i) rest[i] -= part[i];
    for (const std::uint32_t component : {old, fresh}) {
      squares_[component] = square_of(component);
      encode(component);
    }
  }

  // Adds the sum of one component to another, and removes it.
  void join(std::uint32_t kept, std::uint32_t gone) {
    if (!on_) return;
    save(kept);
    save(gone);
    add_sum(rows_.sum(kept), rows_.sum(gone));
    clear(gone);
    squares_[kept] = square_of(kept);
    encode(kept);
  }

  // Returns the similarity of a vector to a component, less s~(k, 1) for its k vectors; NaN if these
  // cancel out. The product is kept for `add` until `forget_product`, or until the sum changes.
  double margin(std::uint32_t component, const IncomingVector& x) {
    known_ = {x.q, component, product_of(component, x)};
    if (squares_[component] == 0) return std::numeric_limits<double>::quiet_NaN();
    const double threshold =
        graph_.thresholds.edge(graph_.forest.components[component].mass(), 1.0);
    return similarity(known_.product, x.root, root(squares_[component])) - threshold;
  }

  // Keeps a product that is known; see `margin`.
  void know(std::uint32_t component, const IncomingVector& x, Integer product) {
    known_ = {x.q, component, product};
  }

  void forget_product() { known_.q = nullptr; }

  // Returns the greatest margin of a vector to any component; NaN if there is none.
  double greatest_margin(const IncomingVector& x) {
    double best = -std::numeric_limits<double>::infinity();
    graph_.ask(query_, x, kBelowAll);
    search_.reaching(rows_, query_, 0, proposed_);
    visit_proposed(
        x, 1.0,
        [&](std::uint32_t, double score, double threshold) {
          return best = std::max(best, score - threshold);
        },
        kBelowAll);
    return std::isinf(best) ? std::numeric_limits<double>::quiet_NaN() : best;
  }

  // Finds the components with the greatest margins to each vector, best first (tie: the older ID), and
  // calls `found(i, j, component, margin)` for the j-th of vector i. A component without a direction is
  // left out. One scan proposes some; a vector for which they cannot be proven to have the best is
  // scanned again, for more. Keeps all sums, with codes, from now on.
  template <class Found>
  void greatest_margins(const std::int32_t* vectors, std::size_t n, std::size_t limit,
                        Found found) {
    turn_on();
    const std::size_t dimension = graph_.dimension();
    const double least = least_threshold();
    Queries queries(kBlockMax, rows_.width());
    std::vector<std::size_t> left, again;
    for (std::size_t first = 0; first < n; first += kBlockMax) {
      left.resize(std::min(kBlockMax, n - first));
      std::iota(left.begin(), left.end(), first);
      for (std::size_t few = 4 * limit + 64; !left.empty(); few *= 8, left.swap(again)) {
        for (std::size_t i = 0; i < left.size(); ++i) {
          const std::int32_t* q = vectors + left[i] * dimension;
          queries.set(i, q, root(graph_.kernel.square(q, dimension)), dimension, kBelowAll,
                      graph_.kernel.encode_vector);
        }
        std::vector<Shortlist> near(left.size());
        search_.best_few(rows_, queries, left.size(), near.data(), few, kNoInsurance);
        again.clear();
        for (std::size_t i = 0; i < left.size(); ++i) {
          proposed_ = std::move(near[i]);
          const double bar = few < rows_.size() ? proposed_.bar - least + kRounding : kBelowAll;
          if (!rank(vectors + left[i] * dimension, limit, bar)) {
            again.push_back(left[i]);
            continue;
          }
          for (std::size_t j = 0; j < ranked_.size(); ++j)
            found(left[i], j, ranked_[j].component, ranked_[j].margin);
        }
      }
    }
  }

  // Changes. A rollback needs no memory.

  struct Record;

  void begin() {
    is_open_ = true;
    forget_product();
  }

  void commit() {
    end_saving();
    forget_all(images_);
    forget_all(sums_);
  }

  // Commits, and moves what a rollback needs to a record.
  void commit(Record& record) {
    end_saving();
    hand_over(images_, record.images);
    hand_over(sums_, record.sums);
  }

  // Takes the last change back, by its record.
  void take_back(Record& record) {
    images_ = std::move(record.images);
    sums_ = std::move(record.sums);
    rollback();
  }

  void rollback() {
    end_saving();
    for (; !images_.empty(); images_.pop_back()) {
      const Image& last = images_.back();
      std::copy_n(sums_.data() + last.sum, graph_.dimension(), rows_.sum(last.component));
      squares_[last.component] = last.square;
      encode(last.component);
    }
    sums_.clear();
  }

  // Computes all sums from the nodes of the graph.
  void read() {
    if (!on_) return;
    const auto n = static_cast<std::uint32_t>(graph_.forest.components.size());
    for (std::uint32_t component = 0; component < n; ++component) open(component);
    for (Row row = 0; row < rows_.size(); ++row) clear(row);
    graph_.each_node(
        [&](Row row) { add_sum(rows_.sum(graph_.node(row).component), graph_.rows.sum(row)); });
    for (std::uint32_t component = 0; component < n; ++component) {
      squares_[component] = square_of(component);
      encode(component);
    }
  }

  // Computes the greatest similarity of each vector to another component than `own`, by directions
  // (group_rows.hpp); -1 if there is none. Keeps all sums from now on.
  void elsewhere(const std::int32_t* vectors, std::size_t n, std::uint32_t own, double* best) {
    turn_on();
    const Hidden hidden{*this, own};
    const std::size_t dimension = graph_.dimension();
    Queries queries(kBlockMax, rows_.width());
    std::vector<Shortlist> near(kBlockMax);
    const double least = has_zero(own) ? 0.0 : -1.0;  // a sum of zero has similarity 0
    for (std::size_t first = 0; first < n; first += kBlockMax) {
      const std::size_t size = std::min(kBlockMax, n - first);
      for (std::size_t i = 0; i < size; ++i) {
        const std::int32_t* q = vectors + (first + i) * dimension;
        queries.set(i, q, root(graph_.kernel.square(q, dimension)), dimension, -2.0f,
                    graph_.kernel.encode_vector);
      }
      search_.best_few(rows_, queries, size, near.data(), rows_.size() + 1, kRoundedDirections);
      for (std::size_t i = 0; i < size; ++i) {
        best[first + i] = greatest(vectors + (first + i) * dimension, near[i], least);
      }
    }
  }

  // Computes the sums of some components, rising, from all of their nodes.
  void read(const std::vector<std::uint32_t>& components, const std::vector<Row>& nodes) {
    if (!on_) return;
    for (const std::uint32_t component : components) {
      open(component);
      save(component);
      clear(component);
    }
    for (const Row row : nodes) {
      add_sum(rows_.sum(graph_.node(row).component), graph_.rows.sum(row));
    }
    for (const std::uint32_t component : components) {
      squares_[component] = square_of(component);
      encode(component);
    }
  }

  // A block of vectors that arrive, and one of sums that are healed.
  ClusterScan arriving, healing;

  // Begins a block: what is added next is scanned by `scan_block`.
  void begin_block(ClusterScan& block) { block.begin(rows_.width()); }

  std::size_t add_query(ClusterScan& block, const Queries& from, std::size_t index) {
    return block.add(
        [&](Queries& queries, std::size_t place) { queries.copy(place, from, index, bar()); });
  }
  std::size_t add_query(ClusterScan& block, const IncomingSum& x) {
    return block.add(
        [&](Queries& queries, std::size_t place) { graph_.ask(queries, x, bar(), place); });
  }

  // Scans a block. `only_best`: rows that can hardly have the greatest margin need not be proposed.
  void scan_block(ClusterScan& block, bool only_best) {
    if (block.size() < 2) return;  // one query is scanned alone
    least_mass_ = 1.0;
    for (const ClusterStats& stats : graph_.forest.components) {
      if (stats.vectors > 0) least_mass_ = std::min(least_mass_, stats.mass());
    }
    const auto most = static_cast<float>(graph_.thresholds.edge(kHeavy, 1.0) - lowest());
    block.run(search_, rows_, only_best ? most + kInsurance : kNoInsurance);
  }

  // Returns the component with the greatest margin over s~(k', k) for k that arrive, among those that
  // reach the least s~ (tie: the older cluster).
  template <class Arriving>
  Best best(const Arriving& x, double k, std::size_t place) {
    Best best;
    by_margin(x, k, arriving, place, kNoRow,
              [&](std::uint32_t component, double score, double threshold) {
                const double margin = score - threshold, reached = best.similarity - best.threshold;
                const std::vector<ClusterStats>& all = graph_.forest.components;
                const bool older = all[component].cluster < all[best.component].cluster;
                if (!best.found || margin > reached || (margin == reached && older)) {
                  best = {component, score, threshold, true};
                }
                return best.similarity - best.threshold;
              });
    return best;
  }

  // Passes components that reach the least s~ to visit(component, similarity, s~(k', k)), which returns
  // the least margin that it needs from then on. A component may be left out if it has less, and may
  // come twice. `place` is that of the query in a block, which is right unless `unchanged` has changed.
  template <class Arriving, class Visit>
  void by_margin(const Arriving& x, double k, ClusterScan& block, std::size_t place, Row unchanged,
                 Visit visit) {
    if (block.propose(graph_.kernel, place, proposed_, unchanged)) {
      const double needed = visit_proposed(x, k, visit, lowest());
      if (!block.is_cut(place)) return;
      if (needed >= proposed_.bar - graph_.thresholds.edge(least_mass_, k)) return;
    }
    graph_.ask(query_, x, bar());
    search_.reaching(rows_, query_, 0, proposed_);
    visit_proposed(x, k, visit, lowest());
  }

 private:
  struct Image {
    std::uint32_t component;
    std::size_t sum;  // place in `sums_`
    Integer square;
  };

 public:
  struct Record {
    std::vector<Image> images;
    std::vector<std::int64_t> sums;
  };

  // Returns the memory that a record of the open change takes.
  std::size_t change_bytes() const { return bytes_of(images_) + bytes_of(sums_); }

 private:
  // A product that was computed just now, of a vector with the sum of a component.
  struct Known {
    const std::int32_t* q = nullptr;
    std::uint32_t component = 0;
    Integer product = 0;
  };

  Integer product_of(std::uint32_t component, const IncomingVector& x) const {
    const std::int64_t count = graph_.forest.components[component].vectors;
    return dot(graph_.kernel, x.q, rows_.sum(component), count, graph_.dimension());
  }

  // Saves the sum of a component; call it before any change of it.
  void save(std::uint32_t component) {
    forget_product();
    if (!is_open_) return;
    if (component >= saved_.size()) saved_.resize(component + 1 + component / 2, 0);
    if (saved_[component]) return;
    make_room_for_one(images_);
    const std::int64_t* sum = rows_.sum(component);
    images_.push_back({component, sums_.size(), squares_[component]});
    try {
      sums_.insert(sums_.end(), sum, sum + graph_.dimension());
    } catch (...) {
      images_.pop_back();
      throw;
    }
    saved_[component] = 1;
  }

  void end_saving() {
    for (const Image& image : images_) saved_[image.component] = 0;
    is_open_ = false;
  }

  struct Likely {
    std::uint32_t component;
    float margin;  // at most
    bool operator<(const Likely& other) const { return margin < other.margin; }
  };

  static constexpr float kBelowAll = -2.0f;  // less than any similarity
  static constexpr double kRounding = 1e-9;  // margins are rounded by less
  static constexpr double kHeavy = 1e6;
  static constexpr float kNoInsurance = 4.0f;  // more than any two similarities differ

  // Directions differ from the sums that the scan bounds by less than this.
  static constexpr float kRoundedDirections = 1e-4f;

  // Hides a component from scans.
  struct Hidden {
    Hidden(ClusterSums& all, std::uint32_t component) : sums(all), own(component) {
      if (own < sums.rows_.size()) sums.rows_.clear_codes(own);
    }
    ~Hidden() {
      if (own < sums.rows_.size()) sums.encode(own);
    }
    ClusterSums& sums;
    std::uint32_t own;
  };

  bool has_zero(std::uint32_t own) const {
    for (std::uint32_t component = 0; component < graph_.forest.components.size(); ++component) {
      if (component != own && graph_.forest.components[component].vectors > 0 &&
          squares_[component] == 0) {
        return true;
      }
    }
    return false;
  }

  // Returns the greatest similarity of a vector to proposed components, and at least `best`.
  double greatest(const std::int32_t* q, const Shortlist& near, double best) {
    const std::size_t dimension = graph_.dimension();
    std::vector<std::int64_t> wide(q, q + dimension);
    std::vector<std::int32_t> ours(dimension), theirs(dimension);
    std::size_t width = 1;
    while (width < dimension) width *= 2;
    std::vector<double> room(width);
    graph_.kernel.direction(wide.data(), dimension, room.data(), ours.data());
    for (const Proposal& proposal : near.rows) {
      if (static_cast<double>(proposal.upper) + kRoundedDirections < best) continue;
      graph_.kernel.direction(rows_.sum(proposal.row), dimension, room.data(), theirs.data());
      const auto product =
          static_cast<double>(graph_.kernel.dot_directions(ours.data(), theirs.data(), dimension));
      best = std::max(best, product / (kDirectionScale * kDirectionScale));
    }
    return best;
  }

  struct Ranked {
    std::uint32_t component;
    double margin;
  };

  // Ranks the components that were proposed for a vector, best first, at most `limit`. Returns whether
  // these are the best of all: others have margins below `bar`, which is -2 if there are no others.
  bool rank(const std::int32_t* q, std::size_t limit, double bar) {
    const Integer square = graph_.kernel.square(q, graph_.dimension());
    const auto better = [this](const Ranked& a, const Ranked& b) {
      if (a.margin != b.margin) return a.margin > b.margin;
      return graph_.forest.components[a.component].cluster <
             graph_.forest.components[b.component].cluster;
    };
    ranked_.clear();
    visit_proposed(
        IncomingVector{q, square, root(square)}, 1.0,
        [&](std::uint32_t component, double score, double threshold) {
          const Ranked next{component, score - threshold};
          ranked_.insert(std::upper_bound(ranked_.begin(), ranked_.end(), next, better), next);
          if (ranked_.size() > limit) ranked_.pop_back();
          return ranked_.size() < limit ? kBelowAll * 2.0 : ranked_.back().margin;
        },
        kBelowAll);
    return bar == kBelowAll || (ranked_.size() == limit && ranked_.back().margin > bar);
  }

  // The least s~(k, 1) of all components; a weight may be below one.
  double least_threshold() const {
    double mass = 1.0;
    for (const ClusterStats& stats : graph_.forest.components) {
      if (stats.vectors > 0) mass = std::min(mass, stats.mass());
    }
    return graph_.thresholds.edge(mass, 1.0);
  }

  double lowest() const { return graph_.thresholds.edge(1.0, 1.0); }
  float bar() const { return static_cast<float>(lowest()) - 1e-6f; }

  // Computes exact margins, the highest bound first, while they are needed. Returns the margin that
  // was needed at the end.
  template <class Arriving, class Visit>
  double visit_proposed(const Arriving& x, double k, Visit visit, double lowest) {
    const Thresholds::Bound least = graph_.thresholds.bound(k);
    likely_.clear();
    for (const Proposal& proposal : proposed_.rows) {
      const double mass = graph_.forest.components[proposal.row].mass();
      likely_.push_back({proposal.row, proposal.upper - least(static_cast<float>(mass))});
    }
    std::make_heap(likely_.begin(), likely_.end());
    double needed = -std::numeric_limits<double>::infinity();
    while (!likely_.empty() && likely_.front().margin >= needed) {
      const std::uint32_t component = likely_.front().component;
      std::pop_heap(likely_.begin(), likely_.end());
      likely_.pop_back();
      const ClusterStats& stats = graph_.forest.components[component];
      const Integer product = graph_.product(x, rows_.sum(component), stats.vectors);
      const double score = similarity(product, x.root, root(squares_[component]));
      if (score < lowest) continue;
      needed = visit(component, score, graph_.thresholds.edge(stats.mass(), k));
    }
    return needed;
  }

  void clear(std::uint32_t component) {
    std::fill_n(rows_.sum(component), graph_.dimension(), std::int64_t{0});
    squares_[component] = 0;
    drop(component);
  }

  // No scan may find the row from now on.
  void drop(std::uint32_t component) {
    rows_.clear_codes(component);
    arriving.drop(component);
    healing.drop(component);
  }

  void open(std::uint32_t component) {
    if (component < rows_.size()) return;
    make_room_for_one(squares_);
    const Row row = rows_.take();
    std::fill_n(rows_.sum(row), graph_.dimension(), std::int64_t{0});
    squares_.push_back(0);
  }

  void add_sum(std::int64_t* sum, const std::int64_t* more) const {
    for (std::size_t i = 0; i < graph_.dimension(); ++i) sum[i] += more[i];
  }

  Integer square_of(std::uint32_t component) const {
    const std::int64_t* sum = rows_.sum(component);
    const std::int64_t count = graph_.forest.components[component].vectors;
    return dot(graph_.kernel, sum, count, sum, count, graph_.dimension());
  }

  // A sum of zero has no direction: no scan may find it.
  void encode(std::uint32_t component) {
    if (!coded_) return;
    if (squares_[component] == 0) {
      drop(component);
      return;
    }
    float scale, residual;
    graph_.kernel.encode_sum(rows_.sum(component), root(squares_[component]), graph_.dimension(),
                             codes_.data(), room_.data(), &scale, &residual);
    rows_.codes(component).write(component % kChunkRows, codes_.data(), scale, residual);
    arriving.write(component, codes_.data(), scale, residual);
    healing.write(component, codes_.data(), scale, residual);
  }

  bool on_, coded_;
  const Graph& graph_;
  Search& search_;
  Rows rows_;
  Queries query_;
  std::vector<Integer> squares_;
  std::vector<std::int8_t> codes_;
  std::vector<float> room_;
  Shortlist proposed_;
  std::vector<Likely> likely_;
  std::vector<Ranked> ranked_;
  std::vector<Image> images_;  // of the open change, in order
  std::vector<std::int64_t> sums_;
  std::vector<std::uint8_t> saved_;  // by component
  Known known_;
  bool is_open_ = false;
  double least_mass_ = 1.0;  // of a cluster when the block was scanned
};

}  // namespace linkstream
