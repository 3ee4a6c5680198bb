// What: which clusters may not be compared: those that are left out, pairs that corrections keep apart,
//   and clusters of different labels.
// Python twin: `barred`, `labels` and `left_out` of `Comparison` (engine/comparison.py).
// Invariants: `set` passes each cluster of which this has changed.
// Memory: 9 bytes for each cluster, about 48 for each barred pair.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "cluster_table.hpp"

namespace linkstream {

// By cluster ID; a label is any number from 0 on.
struct ClusterRestrictions {
  std::vector<std::pair<std::int64_t, std::int64_t>> barred, labels;
  std::vector<std::int64_t> left_out;
};

class ClusterBars {
 public:
  explicit ClusterBars(const ClusterTable& table) : table_(table) {}

  bool takes_part(Row row) const {
    return table_.is_there(row) && !(row < left_out_.size() && left_out_[row]);
  }

  bool allow(Row a, Row b) const {
    if (!takes_part(a) || !takes_part(b)) return false;
    const std::int64_t ours = label(a), theirs = label(b);
    if (ours >= 0 && theirs >= 0 && ours != theirs) return false;
    return barred_.empty() || !barred_.count(std::minmax(a, b));
  }

  template <class Changed>
  void set(const ClusterRestrictions& given, Changed changed) {
    std::vector<std::int64_t> labels(table_.size(), -1);
    std::vector<std::uint8_t> left_out(table_.size(), 0);
    Pairs barred;
    for (const auto& [cluster, label] : given.labels) put(labels, cluster, label);
    for (const std::int64_t cluster : given.left_out) put(left_out, cluster, std::uint8_t{1});
    for (const auto& [one, other] : given.barred) {
      const Row a = table_.row_of(one), b = table_.row_of(other);
      if (a != kNoRow && b != kNoRow) barred.insert(std::minmax(a, b));
    }
    labels_.resize(table_.size(), -1);
    left_out_.resize(table_.size(), 0);
    for (Row row = 0; row < table_.size(); ++row) {
      if (labels[row] != labels_[row] || left_out[row] != left_out_[row]) changed(row);
    }
    for (const auto* pairs : {&barred, &barred_}) {
      for (const auto& pair : *pairs) {
        if (barred.count(pair) == barred_.count(pair)) continue;
        changed(pair.first);
        changed(pair.second);
      }
    }
    labels_.swap(labels);
    left_out_.swap(left_out);
    barred_.swap(barred);
  }

 private:
  using Pairs = std::set<std::pair<Row, Row>>;

  std::int64_t label(Row row) const { return row < labels_.size() ? labels_[row] : -1; }

  template <class Value>
  void put(std::vector<Value>& values, std::int64_t cluster, Value value) const {
    const Row row = table_.row_of(cluster);
    if (row != kNoRow) values[row] = value;
  }

  const ClusterTable& table_;
  std::vector<std::int64_t> labels_;
  std::vector<std::uint8_t> left_out_;
  Pairs barred_;
};

}  // namespace linkstream
