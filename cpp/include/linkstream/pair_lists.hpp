// What: for each group, the partners whose margin with it is at least a floor F; and a heap of the pairs
//   that may be united. The floor is as low as the room for lists allows.
// Python twin: none; the reference engine keeps the best partner only.
// Invariants: when all pairs have been listed, a pair that is not listed has a margin below F, or may
//   not be united. Lists may name groups that are gone.
// Memory: lists of about 64 to 256 partners of 4 bytes a row, and 16 bytes for each pair in the heap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "pair_heap.hpp"
#include "pair_search.hpp"
#include "restrictions.hpp"

namespace linkstream {

class PairLists {
 public:
  using Pause = PairSearch<GroupRows>::Pause;
  using List = std::vector<Version>;

  // `listed`: how many partners to list for each row, about; 0: as memory allows.
  PairLists(const GroupRows& rows, const Restrictions& restrictions, const Versions& versions,
            PairSearch<GroupRows>& search, std::size_t n_threads, std::size_t listed)
      : rows_(rows),
        restrictions_(restrictions),
        versions_(versions),
        search_(search),
        n_threads_(n_threads),
        listed_(listed),
        heap_(versions),
        lists_(rows.size()) {}

  double floor() const { return floor_; }
  double lowest_floor() const { return -search_.constant() - kBelow; }
  PairHeap& heap() { return heap_; }
  List& of(Row row) { return lists_[row]; }

  // Lists a pair at both ends, if it reaches the floor.
  void list(const FoundPair& pair) {
    if (pair.margin < floor_) return;
    add(lists_[pair.a], versions_.of(pair.b));
    add(lists_[pair.b], versions_.of(pair.a));
    if (pair.margin >= 0.0) heap_.push({pair.margin, versions_.of(pair.a), versions_.of(pair.b)});
  }

  void forget_gone(List& list) const {
    const auto gone = [this](Version version) { return !versions_.live(version); };
    list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
  }

  // Returns a floor that lists about as many pairs as there is room for, judged by random pairs.
  double sampled_floor(const Pause& pause) const {
    const std::vector<Row> rows = versions_.live_rows();
    const std::size_t wanted = partners(rows.size());
    if (rows.size() <= wanted) return lowest_floor();
    std::vector<double> margins;
    std::uint64_t random = 88172645463325252u;
    const auto any = [&] {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      return rows[(random >> 11) % rows.size()];
    };
    for (std::size_t i = 0; i < std::min(kSample, 64 * rows.size()); ++i) {
      const Row a = any(), b = any();
      if (a != b && restrictions_.allow(a, b)) margins.push_back(rows_.margin(a, b));
      pause(0.0);
    }
    const double share = static_cast<double>(wanted) / static_cast<double>(rows.size());
    return std::max(lowest_floor(), least_of_greatest(margins, share));
  }

  // Lists all pairs of groups from a floor on. If they are too many, the floor rises.
  void list_all(double floor, const Pause& pause) {
    const std::vector<Row> rows = versions_.live_rows();
    for (List& list : lists_) List().swap(list);
    heap_.clear();
    search_.arrange(rows, pause);
    std::vector<Found> found(n_threads_);
    std::size_t limit = rows.size() * partners(rows.size());
    for (floor_ = floor;;) {
      const double done = search_.all_pairs(floor_, limit, takes(found), pause);
      if (done >= 1.0) break;
      const double wanted = done * static_cast<double>(limit) / 2.0;
      const double higher = raised_floor(found, wanted);
      if (higher <= floor_) limit = ~std::size_t{0};  // equal margins: no floor divides them
      floor_ = higher;
      for (Found& some : found) some = Found();
    }
    build(found, pause);
  }

 private:
  static constexpr double kBelow = 0.02;  // the least floor is this far below -C
  static constexpr std::size_t kPartners = std::size_t{1} << 25;  // in all lists, about
  static constexpr std::size_t kSample = std::size_t{1} << 20;

  // What one thread finds.
  struct Found {
    std::vector<std::pair<Row, Row>> pairs;
    std::vector<PairHeap::Pair> heads;  // those that may be united
  };

  std::size_t partners(std::size_t n) const {
    return listed_ ? listed_
                   : std::clamp<std::size_t>(kPartners / std::max<std::size_t>(n, 1), 64, 256);
  }

  void add(List& list, Version version) {
    if (list.size() == list.capacity()) forget_gone(list);
    list.push_back(version);
  }

  // Returns the least of the greatest numbers, which are this share of all.
  static double least_of_greatest(std::vector<double>& numbers, double share) {
    const auto wanted = static_cast<std::size_t>(share * static_cast<double>(numbers.size()));
    if (wanted >= numbers.size()) return -std::numeric_limits<double>::infinity();
    const auto place = numbers.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(numbers.begin(), place, numbers.end(), std::greater<double>());
    return *place;
  }

  PairSearch<GroupRows>::Take takes(std::vector<Found>& found) const {
    return [this, &found](std::size_t part, const FoundPair& pair) -> std::size_t {
      if (!restrictions_.allow(pair.a, pair.b)) return 0;
      found[part].pairs.emplace_back(pair.a, pair.b);
      if (pair.margin >= 0.0) {
        found[part].heads.push_back({pair.margin, versions_.of(pair.a), versions_.of(pair.b)});
      }
      return 1;
    };
  }

  // Returns a floor that about so many of the pairs reach.
  double raised_floor(const std::vector<Found>& found, double wanted) const {
    std::size_t n = 0;
    std::vector<double> margins;
    for (const Found& some : found) {
      for (const auto& [a, b] : some.pairs) {
        if (n++ % 64 == 0) margins.push_back(rows_.margin(a, b));
      }
    }
    return std::max(floor_, least_of_greatest(margins, wanted / static_cast<double>(n)));
  }

  void build(std::vector<Found>& found, const Pause& pause) {
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
        pause(0.0);
      }
      heap_.add(some.heads, pause);
      some = Found();
    }
  }

  const GroupRows& rows_;
  const Restrictions& restrictions_;
  const Versions& versions_;
  PairSearch<GroupRows>& search_;
  std::size_t n_threads_, listed_;
  double floor_ = 0.0;
  PairHeap heap_;
  std::vector<List> lists_;
};

}  // namespace linkstream
