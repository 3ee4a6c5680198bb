// What: which rows may not share a group. A group has the restrictions of all its rows.
// Python twin: `Restrictions` and `_Likeness` of engine/linkage.py.
// Invariants: bars are symmetric, sorted, and name groups by their lowest row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "group_rows.hpp"

namespace linkstream {

// What the caller asks for; pointers may be null.
struct Restricted {
  const std::int64_t* pairs = nullptr;  // of rows
  std::size_t n_pairs = 0;
  const std::int64_t* labels = nullptr;  // of each row, -1 for none
  double alike = 0.0;                    // least similarity between rows over that within them
  bool test_alike = false;
};

class Restrictions {
 public:
  // `rows` have been measured.
  Restrictions(const Restricted& given, const GroupRows& rows)
      : rows_(rows), alike_(given.alike), test_alike_(given.test_alike) {
    const std::size_t n = rows.size();
    if (given.labels) labels_.assign(given.labels, given.labels + n);
    if (given.n_pairs || test_alike_) bars_.resize(n);
    for (std::size_t i = 0; i < given.n_pairs; ++i) {
      bar(static_cast<Row>(given.pairs[2 * i]), static_cast<Row>(given.pairs[2 * i + 1]));
    }
    if (test_alike_) begin_alike(n);
  }

  // Whether no label and no bar keeps two groups apart.
  bool allow(Row a, Row b) const {
    if (!labels_.empty() && labels_[a] >= 0 && labels_[b] >= 0 && labels_[a] != labels_[b]) {
      return false;
    }
    return bars_.empty() || !std::binary_search(bars_[a].begin(), bars_[a].end(), b);
  }

  // Whether each row of one group is alike to each row of the other.
  bool alike(Row a, Row b) const {
    if (!test_alike_) return true;
    Row i = a;
    do {
      Row j = b;
      do {
        if (!alike_rows(i, j)) return false;
        j = next_[j];
      } while (j != b);
      i = next_[i];
    } while (i != a);
    return true;
  }

  void bar(Row a, Row b) {
    insert(bars_[a], b);
    insert(bars_[b], a);
  }

  void unite(Row kept, Row gone) {
    if (!labels_.empty()) labels_[kept] = std::max(labels_[kept], labels_[gone]);
    if (!bars_.empty()) {
      for (const Row other : bars_[gone]) {
        std::vector<Row>& bars = bars_[other];
        bars.erase(std::lower_bound(bars.begin(), bars.end(), gone));
        bar(kept, other);
      }
      std::vector<Row>().swap(bars_[gone]);
    }
    if (test_alike_) std::swap(next_[kept], next_[gone]);
  }

 private:
  static constexpr double kUnit = 1073741824.0;  // 2^30, the length of one vector

  static void insert(std::vector<Row>& bars, Row row) {
    const auto place = std::lower_bound(bars.begin(), bars.end(), row);
    if (place == bars.end() || *place != row) bars.insert(place, row);
  }

  // Keeps the rows as they are at the beginning, because groups change their directions.
  void begin_alike(std::size_t n) {
    const std::size_t dimension = rows_.dimension();
    directions_ = aligned_block<std::int32_t>(n * dimension);
    std::copy_n(rows_.direction(0), n * dimension, directions_.get());
    masses_.resize(n);
    lengths_.resize(n);
    within_.resize(n);
    next_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = static_cast<Row>(i);
      const double k = rows_.mass(row), length = std::max(rows_.length(row), 1.0) / kUnit;
      masses_[i] = k;
      lengths_[i] = length;
      within_[i] = (length * length - k) / (k * std::max(k - 1.0, 1.0));
      next_[i] = row;
    }
  }

  bool alike_rows(Row a, Row b) const {
    const std::size_t dimension = rows_.dimension();
    const double product =
        rows_.similarity(directions_.get() + a * dimension, directions_.get() + b * dimension) *
        (lengths_[a] * lengths_[b]);
    return !(product / (masses_[a] * masses_[b]) < alike_ * std::max(within_[a], within_[b]));
  }

  const GroupRows& rows_;
  std::vector<std::int64_t> labels_;
  std::vector<std::vector<Row>> bars_;
  double alike_;
  bool test_alike_;
  Block<std::int32_t> directions_;
  std::vector<double> masses_, lengths_, within_;
  std::vector<Row> next_;  // the next row of the same group, in a circle
};

}  // namespace linkstream
