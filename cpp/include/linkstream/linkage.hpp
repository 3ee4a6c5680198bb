// What: margin linkage: groups of subclusters, united by the greatest margin over s~ while it is >= 0.
// Paper: equation 24 as the test of two groups. Python twin: engine/linkage.py, the definition.
// Method: one search lists all pairs whose margin is at least a floor F; a heap holds those that may be
//   united. For a union c of a and b, u_c = x u_a + y u_b with x + y >= 1, and so, for any other d,
//   m(c, d) = x m(a, d) + y m(b, d) + (x + y - 1) C + slope reach_d (x reach_a + y reach_b - reach_c),
//   where s~(a, b) = C + slope reach_a reach_b. The partners of c are those listed with a or b, and the
//   formula bounds the margins of all others. If the bound is above F, c is pending: every later union
//   is compared with it, and it is searched for when its bound reaches the top of the heap.
// Invariants: pairs and margins are the twin's bit for bit; ties go to the lowest rows. A pair that is
//   not listed has a margin below F, or below the bound of a pending end, or may not be united.
// Memory: that of group_rows.hpp and pair_search.hpp, and lists of up to about 2 kB a row.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pair_heap.hpp"
#include "pair_search.hpp"
#include "restrictions.hpp"

namespace linkstream {

struct Union {
  std::int64_t kept, gone;
  double margin;
};

class Linkage {
 public:
  // Called now and then by the thread of the caller with the share of the work done; may throw.
  using Pause = PairSearch::Pause;

  // `listed`: how many partners to list for each row, about; 0: as memory allows. Short lists are
  // slow; they are for tests.
  Linkage(const Kernel& kernel, Pool& pool, const std::int64_t* sums, const double* masses,
          std::size_t n, std::size_t dimension, const Thresholds& thresholds,
          const Restricted& restricted, Pause pause, std::size_t listed = 0)
      : pause_(std::move(pause)),
        listed_(listed),
        pool_(pool),
        rows_(kernel, sums, masses, n, dimension, thresholds),
        restrictions_(restricted, measured()),
        search_(kernel, pool, rows_),
        versions_(n),
        heap_(versions_),
        lists_(n),
        bounds_(n, kNone),
        seen_(n, kNoVersion),
        lowest_(-search_.constant() - kBelow),
        slack_(4.0 * (std::sqrt(static_cast<double>(dimension)) * 1.2e-7 + 1e-9)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (rows_.is_zero(static_cast<Row>(i))) versions_.remove(static_cast<Row>(i));
    }
  }

  std::vector<Union> operator()() {
    list_all(sampled_floor());
    for (;;) {
      const PairHeap::Pair* const top = heap_.top();
      if (!top && floor_ > 0.0) {
        list_all(sampled_floor());
      } else if (must_search(top ? top->margin : 0.0)) {
        search_pending();
      } else if (!top) {
        return std::move(unions_);
      } else {
        unite(heap_.pop());
      }
    }
  }

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  static constexpr double kBelow = 0.02;  // the least floor is this far below -C
  static constexpr std::size_t kPendingMax = 256, kFew = 64;
  static constexpr double kScanShare = 0.6;  // of the first search in the work, for the progress
  static constexpr std::size_t kListed = std::size_t{1} << 25;  // in all lists, about
  static constexpr std::size_t kSample = std::size_t{1} << 20;

  // What one thread finds when all pairs are listed.
  struct Found {
    std::vector<std::pair<Row, Row>> pairs;
    std::vector<PairHeap::Pair> heads;  // those that may be united
  };

  // Unions

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
    std::vector<Version>().swap(lists_[gone]);
    lists_[kept].clear();
    for (const Row other : near_) {
      if (restrictions_.allow(kept, other)) list({kept, other, rows_.margin(kept, other)});
    }
    set_bound(kept, bound);
  }

  // Gathers the groups that are listed with one of two groups, and those that are pending.
  void gather(Row kept, Row gone) {
    near_.clear();
    const Version mark = versions_.next();
    seen_[kept] = seen_[gone] = mark;
    for (const std::vector<Version>* some : {&lists_[kept], &lists_[gone], &pending_}) {
      for (const Version version : *some) {
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
    bounds_[row] = std::max(bound, floor_);
    if (bound <= floor_) return;
    pending_.push_back(versions_.of(row));
    highest_ = std::max(highest_, bound);
    if (pending_.size() >= kPendingMax) search_pending();
  }

  // Lists a pair at both ends, if it reaches the floor.
  void list(const FoundPair& pair) {
    if (pair.margin < floor_) return;
    add(lists_[pair.a], versions_.of(pair.b));
    add(lists_[pair.b], versions_.of(pair.a));
    if (pair.margin >= 0.0) heap_.push({pair.margin, versions_.of(pair.a), versions_.of(pair.b)});
  }

  void add(std::vector<Version>& list, Version version) {
    if (list.size() == list.capacity()) forget_dead(list);
    list.push_back(version);
  }

  void forget_dead(std::vector<Version>& list) const {
    list.erase(std::remove_if(list.begin(), list.end(),
                              [this](Version version) { return !versions_.live(version); }),
               list.end());
  }

  // Pending groups

  // Whether a pair that is not listed may have a margin as great as the next pair to be united.
  bool must_search(double margin) {
    if (highest_ < margin) return false;
    forget_dead_pending();
    return highest_ >= margin;
  }

  void forget_dead_pending() {
    forget_dead(pending_);
    highest_ = kNone;
    for (const Version version : pending_)
      highest_ = std::max(highest_, bounds_[versions_.row(version)]);
  }

  // Compares all pending groups with all groups.
  void search_pending() {
    forget_dead_pending();
    if (pending_.size() < kFew && lowered_floor()) return;
    if (search_.n_places() > 2 * n_live_) search_.arrange(versions_.live_rows(), quiet());
    std::vector<Row> queries;
    for (const Version version : pending_) queries.push_back(versions_.row(version));
    std::vector<std::vector<FoundPair>> found(pool_.size());
    const auto take = [&](std::size_t part, const FoundPair& pair) -> std::size_t {
      if (restrictions_.allow(pair.a, pair.b)) found[part].push_back(pair);
      return 1;
    };
    search_.pairs_of(queries, floor_, take, quiet());
    for (const Row row : queries) bounds_[row] = floor_;
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
      const Row ours = pairs[i].a;
      if (i == 0 || pairs[i - 1].a != ours) {
        for (const Version version : lists_[ours]) {
          if (versions_.live(version)) seen_[versions_.row(version)] = versions_.of(ours);
        }
      }
      if (seen_[pairs[i].b] != versions_.of(ours)) list(pairs[i]);
    }
  }

  // A search for few groups takes nearly as long as one for many. When such searches have taken as
  // long as listing all pairs, a lower floor may save the next ones.
  bool lowered_floor() {
    few_ += static_cast<double>(kFew) / static_cast<double>(n_live_);
    if (few_ < 0.5 || floor_ <= lowest_) return false;
    few_ = 0.0;
    const double lower = sampled_floor();
    if (lower > floor_ - 0.005) return false;
    list_all(lower);
    return true;
  }

  // Lists

  std::size_t listed_a_row() const {
    if (listed_) return listed_;
    return std::clamp<std::size_t>(kListed / std::max<std::size_t>(n_live_, 1), 64, 256);
  }

  // Returns a floor that lists about as many pairs as memory allows, judged by random pairs.
  double sampled_floor() {
    const std::vector<Row> rows = versions_.live_rows();
    n_live_ = rows.size();
    if (n_live_ <= listed_a_row()) return lowest_;
    std::vector<double> margins;
    std::uint64_t random = 88172645463325252u;
    const auto any = [&] {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      return rows[(random >> 11) % rows.size()];
    };
    const std::size_t n = std::min(kSample, 64 * n_live_);
    for (std::size_t i = 0; i < n; ++i) {
      const Row a = any(), b = any();
      if (a != b && restrictions_.allow(a, b)) margins.push_back(rows_.margin(a, b));
      pause_(share_);
    }
    return std::max(lowest_, greatest(margins, static_cast<double>(listed_a_row()) /
                                                   static_cast<double>(n_live_)));
  }

  // Returns the least of a share of the numbers, the greatest ones.
  static double greatest(std::vector<double>& numbers, double share) {
    const auto wanted = static_cast<std::size_t>(share * static_cast<double>(numbers.size()));
    if (wanted >= numbers.size()) return kNone;
    const auto place = numbers.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(numbers.begin(), place, numbers.end(), std::greater<double>());
    return *place;
  }

  // Lists all pairs of groups from a floor on. If they are too many, the floor rises.
  void list_all(double floor) {
    const std::vector<Row> rows = versions_.live_rows();
    for (const Row row : rows) std::vector<Version>().swap(lists_[row]);
    heap_.clear();
    pending_.clear();
    highest_ = kNone;
    n_live_ = rows.size();
    search_.arrange(rows, quiet());
    std::vector<Found> found(pool_.size());
    std::size_t limit = n_live_ * listed_a_row();
    for (floor_ = floor;;) {
      const double done = search_.all_pairs(floor_, limit, takes(found), scanning());
      if (done >= 1.0) break;
      const double higher = raised_floor(found, done);
      if (higher <= floor_) limit = ~std::size_t{0};  // equal margins: no floor divides them
      floor_ = higher;
      for (Found& some : found) some = Found();
    }
    least_reach_ = 1.0;
    for (const Row row : rows) {
      bounds_[row] = floor_;
      least_reach_ = std::min(least_reach_, rows_.reach(row));
    }
    build(found);
  }

  // Returns a floor above which there are about half as many pairs as the limit.
  double raised_floor(const std::vector<Found>& found, double done) const {
    std::size_t n = 0;
    std::vector<double> margins;
    for (const Found& some : found) {
      for (const auto& [a, b] : some.pairs) {
        if (n++ % 64 == 0) margins.push_back(rows_.margin(a, b));
      }
    }
    const double wanted = done * static_cast<double>(n_live_ * listed_a_row()) / 2.0;
    return greatest(margins, wanted / static_cast<double>(n));
  }

  void build(std::vector<Found>& found) {
    std::vector<std::uint32_t> counts(lists_.size(), 0);
    for (const Found& some : found) {
      for (const auto& [a, b] : some.pairs) {
        ++counts[a];
        ++counts[b];
      }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) lists_[i].reserve(counts[i]);
    for (Found& some : found) {
      for (const auto& [a, b] : some.pairs) {
        lists_[a].push_back(versions_.of(b));
        lists_[b].push_back(versions_.of(a));
        pause_(share_);
      }
      heap_.add(some.heads);
      some = Found();
    }
    heap_.order();
  }

  // Returns what a search does with the pairs that it finds.
  PairSearch::Take takes(std::vector<Found>& found) const {
    return [this, &found](std::size_t part, const FoundPair& pair) -> std::size_t {
      if (!restrictions_.allow(pair.a, pair.b)) return 0;
      found[part].pairs.emplace_back(pair.a, pair.b);
      if (pair.margin >= 0.0) {
        found[part].heads.push_back({pair.margin, versions_.of(pair.a), versions_.of(pair.b)});
      }
      return 1;
    };
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
    if (rows_.size() * rows_.dimension() < kSample) {
      work(0);
    } else {
      pool_.run(work);
    }
    return rows_;
  }

  // Progress

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
  std::size_t listed_;
  Pool& pool_;
  GroupRows rows_;
  Restrictions restrictions_;
  PairSearch search_;
  Versions versions_;
  PairHeap heap_;
  std::vector<std::vector<Version>>
      lists_;                   // of each group: partners with margins from the floor on
  std::vector<double> bounds_;  // on the margins of each group with those not listed
  std::vector<Version> seen_, pending_;
  std::vector<Row> near_;
  std::vector<Union> unions_;
  double lowest_, slack_;
  double floor_ = 0.0;
  double highest_ = kNone;    // bound of a pending group
  double least_reach_ = 0.0;  // of all groups when they were listed; weights only grow
  double few_ = 0.0;          // searches for few groups, as a share of listing all pairs
  double first_ = 1.0, share_ = 0.0;
  std::size_t n_live_ = 0;
};

}  // namespace linkstream
