// What: pairs of subclusters that corrections keep apart, found by the clusters that take part.
// Paper: beyond it (docs/identity.md). Python twin: engine/bars.py.
// Invariants: pairs are kept as they were given. A subcluster that was merged leads to the one that
//   holds it, so that a merge costs the same however many pairs there are. The component of each
//   subcluster is known, or `placed` is false. While a change is open, merges are recorded; a rollback
//   needs no memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "room.hpp"

namespace linkstream {

// What corrections require of groups: subclusters that stay apart, by number, and labels of clusters.
struct Requirements {
  std::vector<std::pair<std::int64_t, std::int64_t>> barred;
  std::unordered_map<std::int64_t, std::int64_t> labels;
};

class Bars {
 public:
  using Number = std::int64_t;
  using Component = std::uint32_t;

  bool empty() const { return subclusters_.empty(); }

  // Whether the component of each subcluster is known; if not, call `unplace`, then `moved` for all.
  bool placed() const { return placed_; }

  // Replaces all pairs.
  void set_pairs(const std::vector<std::pair<Number, Number>>& pairs) {
    std::unordered_map<Number, Subcluster> given;
    for (const auto& [a, b] : pairs) {
      given[a].apart.push_back(b);
      given[b].apart.push_back(a);
    }
    subclusters_.swap(given);
    inside_.clear();
    merges_.clear();
    placed_ = subclusters_.empty();
  }

  // What happens to subclusters

  void merged(Number absorbed, Number survivor, Component component) {
    const auto gone = subclusters_.find(absorbed);
    if (gone == subclusters_.end()) return;
    const auto [kept, is_new] = subclusters_.try_emplace(survivor);
    merges_.push_back(absorbed);
    kept->second.merged.push_back(absorbed);
    gone->second.holder = survivor;
    if (is_new) moved(survivor, component);
  }

  void moved(Number number, Component to) {
    const auto found = subclusters_.find(number);
    if (found == subclusters_.end()) return;
    found->second.component = to;
    inside_[to].push_back(number);
  }

  void vanished(Number number) {
    const auto found = subclusters_.find(number);
    if (found != subclusters_.end()) found->second.component = kNowhere;
  }

  void unplace() {
    for (auto& [_, subcluster] : subclusters_) subcluster.component = kNowhere;
    inside_.clear();
    placed_ = true;
  }

  // Changes

  void commit() { forget_all(merges_); }

  void rollback() {
    for (; !merges_.empty(); merges_.pop_back()) {
      Subcluster& gone = subclusters_.find(merges_.back())->second;
      if (gone.holder == kNone) continue;  // memory ran out within `merged`
      subclusters_.find(gone.holder)->second.merged.pop_back();
      gone.holder = kNone;
    }
    placed_ = subclusters_.empty();
  }

  // Answers

  // Returns the subclusters of a component that have to stay apart from others.
  const std::vector<Number>& inside(Component component) {
    static const std::vector<Number> none;
    const auto found = inside_.find(component);
    if (found == inside_.end()) return none;
    std::vector<Number>& all = found->second;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const auto is_elsewhere = [&](Number number) {
      const auto one = subclusters_.find(number);
      return one->second.component != component || one->second.holder != kNone;
    };
    all.erase(std::remove_if(all.begin(), all.end(), is_elsewhere), all.end());
    return all;
  }

  bool has(Number number) const { return subclusters_.count(number) > 0; }

  // Calls `visit` with each subcluster that must stay apart from one.
  template <class Visit>
  void each_apart(Number number, Visit visit) const {
    std::vector<Number> todo{number};
    while (!todo.empty()) {
      const auto found = subclusters_.find(todo.back());
      todo.pop_back();
      if (found == subclusters_.end()) continue;
      for (const Number other : found->second.apart) visit(holder(other));
      todo.insert(todo.end(), found->second.merged.begin(), found->second.merged.end());
    }
  }

 private:
  static constexpr Number kNone = -1;
  static constexpr Component kNowhere = 0xffffffff;

  struct Subcluster {
    std::vector<Number> apart;   // as they were given
    std::vector<Number> merged;  // those it has absorbed
    Number holder = kNone;       // the one that has absorbed it
    Component component = kNowhere;
  };

  Number holder(Number number) const {
    for (;;) {
      const Number next = subclusters_.find(number)->second.holder;
      if (next == kNone) return number;
      number = next;
    }
  }

  std::unordered_map<Number, Subcluster> subclusters_;
  std::unordered_map<Component, std::vector<Number>> inside_;  // some have moved on
  std::vector<Number> merges_;                                 // of the open change
  bool placed_ = true;
};

}  // namespace linkstream
