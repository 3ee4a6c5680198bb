// What: margin linkage: groups of subclusters, united by the greatest margin over s~ while it is >= 0.
// Paper: equation 24 as the test of two groups. Python twin: engine/linkage.py, the definition.
// Method: pairs of margins from a floor F on are listed (pair_lists.hpp). For a union c of a and b,
//   u_c = x u_a + y u_b with x + y >= 1, and so, for any other d,
//   m(c, d) = x m(a, d) + y m(b, d) + (x + y - 1) C + slope reach_d (x reach_a + y reach_b - reach_c),
//   where s~(a, b) = C + slope reach_a reach_b. The partners of c are those listed with a or b, and the
//   formula bounds the margins of all others. If the bound is above F, c is pending: every later union
//   is compared with it, and it is searched for when its bound reaches the top of the heap.
// Invariants: pairs and margins are the twin's bit for bit; ties go to the lowest rows. A pair that is
//   not listed has a margin below F, or below the bound of a pending end, or may not be united.
// Memory: that of group_rows.hpp, pair_search.hpp and pair_lists.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pair_lists.hpp"

namespace linkstream {

struct Union {
  std::int64_t kept, gone;
  double margin;
};

// The rows to unite: sums of a dimension, which stay as they are meanwhile, and their weights.
struct GivenRows {
  std::vector<const std::int64_t*> sums;
  const double* masses;
  std::size_t dimension;
};

class Linkage {
 public:
  // Called now and then by the thread of the caller with the share of the work done; may throw.
  using Pause = PairSearch<GroupRows>::Pause;

  // `listed`: how many partners to list for each row, about; 0: as memory allows. Short lists are
  // slow; they are for tests.
  Linkage(const Kernel& kernel, Pool& pool, const GivenRows& given, const Thresholds& thresholds,
          const Restricted& restricted, Pause pause, std::size_t listed = 0)
      : pause_(std::move(pause)),
        pool_(pool),
        rows_(kernel, given.sums, given.masses, given.dimension, thresholds),
        restrictions_(restricted, measured()),
        search_(kernel, pool, rows_),
        versions_(given.sums.size()),
        lists_(rows_, restrictions_, versions_, search_, pool.size(), listed),
        bounds_(given.sums.size(), kNone),
        seen_(given.sums.size(), kNoVersion),
        slack_(4.0 * (std::sqrt(static_cast<double>(given.dimension)) * 1.2e-7 + 1e-9)) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_.is_zero(static_cast<Row>(i))) versions_.remove(static_cast<Row>(i));
    }
  }

  std::vector<Union> operator()() {
    list_all(lists_.sampled_floor(quiet()));
    for (;;) {
      const PairHeap::Pair* const top = lists_.heap().top();
      if (!top && lists_.floor() > 0.0) {
        list_all(lists_.sampled_floor(quiet()));
      } else if (must_search(top ? top->margin : 0.0)) {
        search_pending();
      } else if (!top) {
        return std::move(unions_);
      } else {
        unite(lists_.heap().pop());
      }
    }
  }

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  static constexpr std::size_t kPendingMax = 256, kFew = 64;
  static constexpr double kScanShare = 0.6;  // of the first search in the work, for the progress

  // Lists all pairs, so that no group is pending.
  void list_all(double floor) {
    lists_.list_all(floor, scanning());
    pending_.clear();
    highest_ = kNone;
    least_reach_ = 1.0;
    const std::vector<Row> rows = versions_.live_rows();
    n_live_ = rows.size();
    for (const Row row : rows) {
      bounds_[row] = lists_.floor();
      least_reach_ = std::min(least_reach_, rows_.reach(row));
    }
  }

  void unite(const PairHeap::Pair& pair) {
    const auto [kept, gone] = std::minmax({versions_.row(pair.a), versions_.row(pair.b)});
    if (!restrictions_.alike(kept, gone)) {
      restrictions_.bar(kept, gone);
      return;
    }
    tell(pair.margin);
    unions_.push_back({kept, gone, pair.margin});
    gather(kept, gone);
    const double ours = bounds_[kept], theirs = bounds_[gone];
    const double bound = bound_after(rows_.unite(kept, gone), ours, theirs);
    restrictions_.unite(kept, gone);
    search_.remove(gone);
    search_.update(kept);
    versions_.remove(gone);
    versions_.renew(kept);
    --n_live_;
    PairLists::List().swap(lists_.of(gone));
    lists_.of(kept).clear();
    for (const Row other : near_) {
      if (restrictions_.allow(kept, other)) lists_.list({kept, other, rows_.margin(kept, other)});
    }
    set_bound(kept, bound);
  }

  // Gathers the groups that are listed with one of two groups, and those that are pending.
  void gather(Row kept, Row gone) {
    near_.clear();
    const Version mark = versions_.next();
    seen_[kept] = seen_[gone] = mark;
    for (const PairLists::List* list : {&lists_.of(kept), &lists_.of(gone), &pending_}) {
      for (const Version version : *list) {
        const Row row = versions_.row(version);
        if (!versions_.live(version) || seen_[row] == mark) continue;
        seen_[row] = mark;
        near_.push_back(row);
      }
    }
  }

  // Returns the bound on the margins of a union with groups that are listed with neither part.
  double bound_after(const Turn& turn, double ours, double theirs) const {
    const double turned =
        turn.ours * turn.reach_ours + turn.theirs * turn.reach_theirs - turn.reach;
    return turn.ours * ours + turn.theirs * theirs +
           (turn.ours + turn.theirs - 1.0) * search_.constant() +
           search_.slope() * turned * (turned > 0.0 ? 1.0 : least_reach_) + slack_;
  }

  void set_bound(Row row, double bound) {
    bounds_[row] = std::max(bound, lists_.floor());
    if (bound <= lists_.floor()) return;
    pending_.push_back(versions_.of(row));
    highest_ = std::max(highest_, bound);
    if (pending_.size() >= kPendingMax) search_pending();
  }

  // Whether a pair that is not listed may have a margin as great as the next pair to be united.
  bool must_search(double margin) {
    if (highest_ < margin) return false;
    forget_gone_pending();
    return highest_ >= margin;
  }

  void forget_gone_pending() {
    lists_.forget_gone(pending_);
    highest_ = kNone;
    for (const Version version : pending_) {
      highest_ = std::max(highest_, bounds_[versions_.row(version)]);
    }
  }

  // Compares all pending groups with all groups.
  void search_pending() {
    forget_gone_pending();
    if (pending_.size() < kFew && lowered_floor()) return;
    if (search_.n_places() > 2 * n_live_) search_.arrange(versions_.live_rows(), quiet());
    std::vector<Row> queries;
    for (const Version version : pending_) queries.push_back(versions_.row(version));
    std::vector<std::vector<FoundPair>> found(pool_.size());
    const auto take = [&](std::size_t part, const FoundPair& pair) -> std::size_t {
      if (restrictions_.allow(pair.a, pair.b)) found[part].push_back(pair);
      return 1;
    };
    search_.pairs_of(queries, lists_.floor(), take, quiet());
    for (const Row row : queries) bounds_[row] = lists_.floor();
    pending_.clear();
    highest_ = kNone;
    list_new(found);
  }

  // Lists pairs whose first ends were searched for, except those that are listed already.
  void list_new(const std::vector<std::vector<FoundPair>>& found) {
    std::vector<FoundPair> pairs;
    for (const auto& some : found) pairs.insert(pairs.end(), some.begin(), some.end());
    std::sort(pairs.begin(), pairs.end(),
              [](const FoundPair& one, const FoundPair& other) { return one.a < other.a; });
    std::fill(seen_.begin(), seen_.end(), kNoVersion);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Version ours = versions_.of(pairs[i].a);
      if (i == 0 || pairs[i - 1].a != pairs[i].a) {
        for (const Version version : lists_.of(pairs[i].a)) {
          if (versions_.live(version)) seen_[versions_.row(version)] = ours;
        }
      }
      if (seen_[pairs[i].b] != ours) lists_.list(pairs[i]);
    }
  }

  // A search for few groups takes nearly as long as one for many. When such searches have taken as
  // long as listing all pairs, a lower floor may save the next ones.
  bool lowered_floor() {
    few_ += static_cast<double>(kFew) / static_cast<double>(n_live_);
    if (few_ < 0.5 || lists_.floor() <= lists_.lowest_floor()) return false;
    few_ = 0.0;
    const double lower = lists_.sampled_floor(quiet());
    if (lower > lists_.floor() - 0.005) return false;
    list_all(lower);
    return true;
  }

  // Computes the directions of all rows.
  const GroupRows& measured() {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stopped{false};
    const auto work = [&](std::size_t part) {
      try {
        std::vector<double> room;
        for (std::size_t i; !stopped && (i = next++) < rows_.size();) {
          rows_.measure(static_cast<Row>(i), room);
          if (part == 0) pause_(0.0);
        }
      } catch (...) {
        stopped = true;
        throw;
      }
    };
    constexpr std::size_t kWorthThreads = std::size_t{1} << 20;
    if (rows_.size() * rows_.dimension() < kWorthThreads) {
      work(0);
    } else {
      pool_.run(work);
    }
    return rows_;
  }

  // Progress: the first search, then the fall of the margin from the first union to 0.

  void tell(double margin) {
    if (unions_.empty()) first_ = std::max(margin, 1e-9);
    share_ = std::max(share_, 1.0 - (1.0 - kScanShare) * margin / first_);
    pause_(share_);
  }

  Pause quiet() {
    return [this](double) { pause_(share_); };
  }

  Pause scanning() {
    return [this](double done) {
      if (unions_.empty()) share_ = std::max(share_, kScanShare * std::min(done, 1.0));
      pause_(share_);
    };
  }

  Pause pause_;
  Pool& pool_;
  GroupRows rows_;
  Restrictions restrictions_;
  PairSearch<GroupRows> search_;
  Versions versions_;
  PairLists lists_;
  std::vector<double> bounds_;  // on the margins of each group with those not listed
  std::vector<Version> seen_;
  std::vector<Row> near_;
  PairLists::List pending_;
  double highest_ = kNone;    // bound of a pending group
  double least_reach_ = 0.0;  // of all groups when they were listed; weights only grow
  double few_ = 0.0;          // searches for few groups, as a share of listing all pairs
  double slack_;              // of the rounding of directions
  double first_ = 1.0, share_ = 0.0;
  std::size_t n_live_ = 0;
  std::vector<Union> unions_;
};

}  // namespace linkstream
