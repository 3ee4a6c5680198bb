// What: the pairs of clusters that are worth most, kept up as clusters change.
// Paper: beyond it (docs/identity.md, "Reviews"). Python twin: `Comparison.best` of
//   engine/comparison.py, the definition.
// Method: one scan of all clusters against each other lists the best pairs; a floor bounds the worth of all
//   others. The floor rises during the scan, and is part of its bar. When clusters have changed, their
//   pairs are dropped, and only these clusters are scanned again, from the floor on. Another midpoint
//   of the gain gives another bound of what is not listed. If the bound is too weak, all are scanned again.
// Invariants: a pair that is not listed is worth less than the floor, or as much and comes later, or is
//   barred, or has an end that is pending. What `best` returns does not depend on what was asked before.
// Memory: about 48 bytes for each of twice the pairs that are listed, in each thread that scans.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "best_few.hpp"
#include "cluster_bars.hpp"
#include "cluster_table.hpp"
#include "pair_search.hpp"

namespace linkstream {

// What a pair is worth: its margin; or the gain of asking about it, the size of the smaller cluster times
// logistic((margin - even) / spread). The exponent is at most kSteepest, as in review.py.
struct Worth {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kSteepest = 60.0;

  bool of_margin = true;
  double even = 0.0, spread = 1.0;

  double operator()(double size, double margin) const {
    if (of_margin) return margin;
    const double exponent = std::clamp((even - margin) / spread, -kSteepest, kSteepest);
    return size / (1.0 + std::exp(exponent));
  }

  // Returns a lower bound of the margins of pairs of this size that are worth so much.
  double margin_of(double size, double worth) const {
    if (of_margin || worth == -kInfinity) return worth;
    const double odds = size / worth - 1.0;
    if (odds < -1e-9) return kInfinity;
    const double exponent = std::log(std::max(odds, 1e-30));
    return exponent >= kSteepest - 1e-6 ? -kInfinity : even - spread * exponent - 1e-9;
  }

  // Returns a bound of what pairs of at most this size are worth that, by another worth, have `bound`.
  double moved(const Worth& before, double bound, double most) const {
    if (!of_margin && spread != before.spread) return most;
    if (of_margin || even >= before.even || bound >= most) return bound;
    const double odds = (most / bound - 1.0) * std::exp((even - before.even) / spread);
    return std::max(bound, most / (1.0 + odds));
  }
};

struct RankedPair {
  Row a, b;  // the older cluster first
  std::int64_t one, other;
  double size, margin, worth;

  std::pair<std::int64_t, std::int64_t> numbers() const { return {one, other}; }
  std::pair<double, double> figures() const { return {size, margin}; }
};

class PairRanking {
 public:
  using Search = PairSearch<ClusterTable>;
  using Pause = Search::Pause;

  // `listed`: how many pairs to list, about.
  PairRanking(const ClusterTable& table, const ClusterBars& bars, Search& search,
              std::size_t n_threads, std::size_t listed)
      : table_(table), bars_(bars), search_(search), n_threads_(n_threads), listed_(listed) {}

  // Notes that a cluster has changed, or what it may not be joined with.
  void changed(Row row) {
    if (row >= pending_.size()) pending_.resize(row + 1 + row / 2, 0);
    pending_[row] = 1;
  }

  // Returns the pairs that are worth most, and those of about the same worth as the last, in any order.
  // The search has the directions of all clusters.
  std::vector<RankedPair> best(const Worth& worth, std::size_t limit, const Pause& pause) {
    if (made_) update(limit, pause);
    if (made_) {
      std::vector<RankedPair> found = best_listed(worth, limit);
      if (suffices(found, worth, limit)) return found;
    }
    list_all(worth, limit, pause);
    return best_listed(worth, limit);
  }

  std::int64_t n_scanned = 0;  // clusters that were scanned against all others; a test counts them

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  struct Listing {
    Worth worth;
    double floor = kNone;  // none: all pairs are listed
    std::vector<RankedPair> pairs;
  };

  // Collects pairs from the floor on, which rises once there are enough.
  class Collector {
   public:
    Collector(const PairRanking& ranking, const Worth& worth, double floor, std::size_t wanted)
        : ranking_(ranking), worth_(worth), floor_(floor), wanted_(wanted) {
      found_.resize(ranking.n_threads_);
      room_.assign(ranking.n_threads_, 2 * wanted);
    }

    double floor(double size) const { return worth_.margin_of(size, least()); }

    std::size_t visit(std::size_t part, Row a, Row b) const {
      if (!ranking_.bars_.allow(a, b)) return 0;
      const RankedPair pair = ranking_.ranked(a, b, worth_);
      if (pair.worth < least()) return 0;
      std::vector<RankedPair>& pairs = found_[part];
      pairs.push_back(pair);
      if (pairs.size() >= room_[part]) raise(part);
      return 1;
    }

    // Returns all that was found; the floor is that of `floor_now`.
    std::vector<RankedPair> take() {
      std::vector<RankedPair> all;
      for (auto& some : found_) {
        all.insert(all.end(), some.begin(), some.end());
        std::vector<RankedPair>().swap(some);
      }
      return all;
    }
    double floor_now() const { return floor_; }

   private:
    double least() const { return about(floor_, worth_.of_margin); }

    void raise(std::size_t part) const {
      std::vector<RankedPair>& pairs = found_[part];
      const double least = ranking_.prune(pairs, wanted_, worth_);
      double before = floor_;
      while (before < least && !floor_.compare_exchange_weak(before, least)) {
      }
      room_[part] = 2 * std::max(wanted_, pairs.size());
    }

    const PairRanking& ranking_;
    const Worth worth_;
    mutable std::atomic<double> floor_;
    std::size_t wanted_;
    mutable std::vector<std::vector<RankedPair>> found_;  // by each thread
    mutable std::vector<std::size_t> room_;
  };

  RankedPair ranked(Row a, Row b, const Worth& worth) const {
    if (table_.cluster(a) > table_.cluster(b)) std::swap(a, b);
    const double size = std::min(table_.size_of(a), table_.size_of(b));
    const double margin = table_.margin(a, b);
    return {a, b, table_.cluster(a), table_.cluster(b), size, margin, worth(size, margin)};
  }

  // Keeps the best pairs. Returns the least worth of the wanted ones; all that is dropped is worth less,
  // or as much and comes later.
  double prune(std::vector<RankedPair>& pairs, std::size_t wanted, const Worth& worth) const {
    keep_best(pairs, wanted, worth.of_margin);
    return pairs[wanted - 1].worth;
  }

  std::size_t wanted(std::size_t limit) const { return std::max(listed_, 2 * limit); }
  bool is_pending(Row row) const { return row < pending_.size() && pending_[row]; }

  // Lists the best pairs of all clusters.
  void list_all(const Worth& worth, std::size_t limit, const Pause& pause) {
    std::vector<Row> all, zeros;  // with those that are left out, which may take part later
    for (Row row = 0; row < table_.size(); ++row) {
      if (table_.is_there(row)) (table_.is_zero(row) ? zeros : all).push_back(row);
    }
    Collector found(*this, worth, kNone, wanted(limit));
    n_scanned += static_cast<std::int64_t>(all.size());
    search_.arrange(all, pause);
    search_.each_pair(found, ~std::size_t{0}, pause);
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      for (const Row row : all) found.visit(0, zeros[i], row);
      for (std::size_t j = 0; j < i; ++j) found.visit(0, zeros[i], zeros[j]);
      pause(1.0);
    }
    set({worth, kNone, found.take()}, found.floor_now(), limit);
    fresh_ = true;
  }

  // Lists the pairs of the clusters that changed again.
  void update(std::size_t limit, const Pause& pause) {
    std::vector<Row> changed, queries;
    for (Row row = 0; row < table_.size(); ++row) {
      if (is_pending(row) && bars_.takes_part(row)) changed.push_back(row);
    }
    if (changed.empty() && listing_.pairs.empty()) return;
    for (const Row row : changed) {
      if (!table_.is_zero(row)) queries.push_back(row);
    }
    if (2 * changed.size() > table_.size() + 8) {  // a scan of all takes less time
      made_ = false;
      return;
    }
    Collector found(*this, listing_.worth, listing_.floor, wanted(limit));
    n_scanned += static_cast<std::int64_t>(changed.size());
    search_.each_pair_of(queries, found, pause);
    visit_zeros(changed, found);
    Listing next{listing_.worth, listing_.floor, found.take()};
    drop_repeated(next.pairs);
    for (const RankedPair& pair : listing_.pairs) {
      if (!is_pending(pair.a) && !is_pending(pair.b)) next.pairs.push_back(pair);
    }
    set(std::move(next), found.floor_now(), limit);
    fresh_ = fresh_ && changed.empty();
  }

  // Visits pairs with clusters that have no direction, which no scan finds.
  void visit_zeros(const std::vector<Row>& changed, const Collector& found) const {
    for (Row other = 0; other < table_.size(); ++other) {
      if (!bars_.takes_part(other)) continue;
      for (const Row row : changed) {
        if (row == other) continue;
        if (table_.is_zero(row) || table_.is_zero(other)) found.visit(0, row, other);
      }
    }
  }

  static void drop_repeated(std::vector<RankedPair>& pairs) {
    std::sort(pairs.begin(), pairs.end(), [](const RankedPair& one, const RankedPair& other) {
      return one.numbers() < other.numbers();
    });
    const auto same = [](const RankedPair& one, const RankedPair& other) {
      return one.numbers() == other.numbers();
    };
    pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
  }

  void set(Listing next, double floor, std::size_t limit) {
    next.floor = floor;
    if (next.pairs.size() > 2 * wanted(limit)) {
      next.floor = std::max(floor, prune(next.pairs, wanted(limit), next.worth));
    }
    std::swap(listing_, next);
    std::fill(pending_.begin(), pending_.end(), std::uint8_t{0});
    made_ = true;
  }

  std::vector<RankedPair> best_listed(const Worth& worth, std::size_t limit) const {
    std::vector<RankedPair> found = listing_.pairs;
    for (RankedPair& pair : found) pair.worth = worth(pair.size, pair.margin);
    keep_best(found, limit, worth.of_margin);
    return found;
  }

  // Whether no pair that is not listed can be among the best.
  bool suffices(const std::vector<RankedPair>& found, const Worth& worth, std::size_t limit) const {
    if (listing_.floor == kNone) return true;
    if (found.size() < limit) return false;
    const bool same = worth.even == listing_.worth.even && worth.spread == listing_.worth.spread;
    if (fresh_ && same) return true;  // equals are in order, too
    double most = 0.0, least = Worth::kInfinity;
    for (Row row = 0; row < table_.size(); ++row) most = std::max(most, table_.size_of(row));
    for (const RankedPair& pair : found) least = std::min(least, pair.worth);
    const double bound = worth.moved(listing_.worth, listing_.floor, most);
    return about(least, worth.of_margin) > bound;
  }

  const ClusterTable& table_;
  const ClusterBars& bars_;
  Search& search_;
  std::size_t n_threads_, listed_;
  Listing listing_;
  bool made_ = false, fresh_ = false;  // there is a listing, and nothing has changed since
  std::vector<std::uint8_t> pending_;
};

}  // namespace linkstream
