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
    while (!pairs_.empty() && !(versions_.live(pairs_[0].a) && versions_.live(pairs_[0].b))) drop();
    return pairs_.empty() ? nullptr : &pairs_[0];
  }

  Pair pop() {
    const Pair top = pairs_[0];
    drop();
    return top;
  }

  void push(const Pair& pair) {
    pairs_.push_back(pair);
    std::push_heap(pairs_.begin(), pairs_.end(), Below{versions_});
  }

  // Forgets all pairs; then more are added, and `order` is called.
  void clear() { std::vector<Pair>().swap(pairs_); }
  void add(const std::vector<Pair>& more) { pairs_.insert(pairs_.end(), more.begin(), more.end()); }
  void order() { std::make_heap(pairs_.begin(), pairs_.end(), Below{versions_}); }

 private:
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

  void drop() {
    std::pop_heap(pairs_.begin(), pairs_.end(), Below{versions_});
    pairs_.pop_back();
  }

  const Versions& versions_;
  std::vector<Pair> pairs_;
};

}  // namespace linkstream
