// What: pairs of groups in the order in which they may be united, and which groups there still are.
// Python twin: `best` of `_Groups` in engine/linkage.py.
// Invariants: a union is a new version, so that older pairs of its parts are recognised as gone. The greatest
//   margin is on top; of equal ones, the lowest pair of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace linkstream {

using Version = std::uint32_t;  // a group as it is now
inline constexpr Version kNoVersion = 0xffffffff;

class Versions {
 public:
  explicit Versions(std::size_t n) : current_(n), row_(n) {
    for (std::size_t i = 0; i < n; ++i) current_[i] = row_[i] = static_cast<Row>(i);
  }

  Version of(Row row) const { return current_[row]; }
  Row row(Version version) const { return row_[version]; }
  bool live(Version version) const { return current_[row_[version]] == version; }
  Version next() const { return static_cast<Version>(row_.size()); }

  void remove(Row row) { current_[row] = kNoVersion; }

  // Gives a row, whose group has changed, a new version.
  void renew(Row row) {
    row_.push_back(row);
    current_[row] = static_cast<Version>(row_.size() - 1);
  }

  std::vector<Row> live_rows() const {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < current_.size(); ++i) {
      if (current_[i] != kNoVersion) rows.push_back(static_cast<Row>(i));
    }
    return rows;
  }

 private:
  std::vector<Version> current_;  // of each row that stands for a group
  std::vector<Row> row_;          // of each version
};

class PairHeap {
 public:
  struct Pair {
    double margin;
    Version a, b;
  };

  explicit PairHeap(const Versions& versions) : versions_(versions) {}

  // Returns the next pair of groups that are still there, or null.
  const Pair* top() {
    for (const Pair* pair; (pair = best()); drop()) {
      if (versions_.live(pair->a) && versions_.live(pair->b)) return pair;
    }
    return nullptr;
  }

  // Removes and returns the next pair; `top` has found one.
  Pair pop() {
    const Pair pair = *best();
    drop();
    return pair;
  }

  void push(const Pair& pair) {
    pairs_.push_back(pair);
    std::push_heap(pairs_.begin(), pairs_.end(), Below{versions_});
  }

  // Forgets all pairs.
  void clear() {
    std::vector<Pair>().swap(pairs_);
    runs_.clear();
  }

  // Adds many pairs at once, as sorted runs: faster than a heap, and in short steps.
  template <class Pause>
  void add(const std::vector<Pair>& more, const Pause& pause) {
    for (std::size_t first = 0; first < more.size(); first += kRun) {
      const std::size_t end = std::min(first + kRun, more.size());
      runs_.emplace_back(more.begin() + static_cast<std::ptrdiff_t>(first),
                         more.begin() + static_cast<std::ptrdiff_t>(end));
      std::sort(runs_.back().begin(), runs_.back().end(), Below{versions_});
      std::push_heap(runs_.begin(), runs_.end(), LowerRun{{versions_}});
      pause(0.0);
    }
  }

 private:
  static constexpr std::size_t kRun = std::size_t{1} << 17;
  using Run = std::vector<Pair>;  // the greatest last

  struct Below {
    const Versions& versions;

    std::pair<Row, Row> names(const Pair& pair) const {
      return std::minmax({versions.row(pair.a), versions.row(pair.b)});
    }
    bool operator()(const Pair& one, const Pair& other) const {
      if (one.margin != other.margin) return one.margin < other.margin;
      return names(other) < names(one);
    }
  };

  struct LowerRun {
    Below below;
    bool operator()(const Run& one, const Run& other) const {
      return below(one.back(), other.back());
    }
  };

  bool next_is_in_run() const {
    return !runs_.empty() &&
           (pairs_.empty() || !Below{versions_}(runs_.front().back(), pairs_.front()));
  }

  const Pair* best() const {
    if (next_is_in_run()) return &runs_.front().back();
    return pairs_.empty() ? nullptr : &pairs_.front();
  }

  void drop() {
    if (next_is_in_run()) {
      std::pop_heap(runs_.begin(), runs_.end(), LowerRun{{versions_}});
      runs_.back().pop_back();
      if (runs_.back().empty()) {
        runs_.pop_back();
      } else {
        std::push_heap(runs_.begin(), runs_.end(), LowerRun{{versions_}});
      }
    } else {
      std::pop_heap(pairs_.begin(), pairs_.end(), Below{versions_});
      pairs_.pop_back();
    }
  }

  const Versions& versions_;
  std::vector<Pair> pairs_;  // a heap
  std::vector<Run> runs_;    // a heap by their last pairs
};

}  // namespace linkstream
