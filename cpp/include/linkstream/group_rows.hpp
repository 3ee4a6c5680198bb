// What: groups of rows for margin linkage: sum, weight and direction of each, and the margin of two.
// Paper: equation 24 as the test of two groups. Python twin: `_Groups` of engine/linkage.py.
// Invariants: a group has the number of its lowest row, the exact sum of its rows' sums and the sum of
//   their weights. The sums of the caller are only read; a group of several rows has a sum of its own.
// Numerics: a direction is u = rint(S / |S| * 2^25), with |S| in the order of the twin; products of
//   directions are exact integers.
// Memory at dimension d: 4 d + 36 bytes for each row, 8 d for each group of several rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "rows.hpp"
#include "thresholds.hpp"

namespace linkstream {

inline constexpr double kDirectionScale = 33554432.0;  // 2^25

// How a union turned two directions into one: u_c = ours * u_a + theirs * u_b.
struct Turn {
  double ours, theirs;
  double reach_ours, reach_theirs, reach;  // 1 / sqrt(spread) of a, b and c
};

class GroupRows {
 public:
  GroupRows(const Kernel& kernel, std::vector<const std::int64_t*> sums, const double* masses,
            std::size_t dimension, const Thresholds& thresholds)
      : kernel_(kernel),
        given_(std::move(sums)),
        dimension_(dimension),
        test_(thresholds),
        directions_(aligned_block<std::int32_t>(given_.size() * dimension)),
        masses_(masses, masses + given_.size()),
        lengths_(given_.size()),
        spreads_(given_.size()),
        united_at_(given_.size(), kGiven) {}

  // The same for sums that lie one after the other.
  GroupRows(const Kernel& kernel, const std::int64_t* sums, const double* masses, std::size_t n,
            std::size_t dimension, const Thresholds& thresholds)
      : GroupRows(kernel, rows_of(sums, n, dimension), masses, dimension, thresholds) {}

  // Returns the rows of a table.
  static std::vector<const std::int64_t*> rows_of(const std::int64_t* table, std::size_t n,
                                                  std::size_t dimension) {
    std::vector<const std::int64_t*> rows(n);
    for (std::size_t i = 0; i < n; ++i) rows[i] = table + i * dimension;
    return rows;
  }

  std::size_t size() const { return masses_.size(); }
  std::size_t dimension() const { return dimension_; }
  const Thresholds& thresholds() const { return test_; }
  const std::int32_t* direction(Row row) const { return directions_.get() + row * dimension_; }
  double mass(Row row) const { return masses_[row]; }
  double size_of(Row row) const { return masses_[row]; }
  double length(Row row) const { return lengths_[row]; }
  bool is_zero(Row row) const { return lengths_[row] == 0.0; }
  double reach(Row row) const { return 1.0 / std::sqrt(spreads_[row]); }

  // Computes length and direction; `room` is for a power of two of numbers, at least the dimension.
  void measure(Row row, std::vector<double>& room) {
    std::size_t width = 1;
    while (width < dimension_) width *= 2;
    room.resize(std::max(room.size(), width));
    lengths_[row] =
        kernel_.direction(sum(row), dimension_, room.data(), directions_.get() + row * dimension_);
    spreads_[row] = test_.spread(masses_[row]);
  }

  double similarity(const std::int32_t* a, const std::int32_t* b) const {
    return static_cast<double>(kernel_.dot_directions(a, b, dimension_)) /
           (kDirectionScale * kDirectionScale);
  }

  double margin(Row a, Row b) const {
    return similarity(direction(a), direction(b)) - test_.required(spreads_[a], spreads_[b]);
  }

  // Adds one group to another.
  Turn unite(Row kept, Row gone) {
    add_sum(kept, gone);
    masses_[kept] += masses_[gone];
    Turn turn{lengths_[kept], lengths_[gone], reach(kept), reach(gone), 0.0};
    measure(kept, room_);
    turn.ours /= lengths_[kept];
    turn.theirs /= lengths_[kept];
    turn.reach = reach(kept);
    return turn;
  }

 private:
  static constexpr std::uint32_t kGiven = 0xffffffff;
  static constexpr std::size_t kBlock = 256;  // sums allocated at a time

  const std::int64_t* sum(Row row) const {
    return united_at_[row] == kGiven ? given_[row] : united(united_at_[row]);
  }

  std::int64_t* united(std::uint32_t at) const {
    return united_[at / kBlock].get() + at % kBlock * dimension_;
  }

  void add_sum(Row kept, Row gone) {
    const std::int64_t* more = sum(gone);
    if (united_at_[kept] == kGiven && united_at_[gone] != kGiven) {
      more = sum(kept);
      std::swap(united_at_[kept], united_at_[gone]);
    } else if (united_at_[kept] == kGiven) {
      const std::uint32_t place = take();
      std::copy_n(sum(kept), dimension_, united(place));
      united_at_[kept] = place;
    }
    std::int64_t* const total = united(united_at_[kept]);
    for (std::size_t i = 0; i < dimension_; ++i) total[i] += more[i];
    if (united_at_[gone] != kGiven) free_.push_back(united_at_[gone]);
  }

  // Returns a place for the sum of a group.
  std::uint32_t take() {
    if (free_.empty()) {
      united_.push_back(aligned_block<std::int64_t>(kBlock * dimension_));
      for (std::size_t i = kBlock; i-- > 0;) {
        free_.push_back(static_cast<std::uint32_t>((united_.size() - 1) * kBlock + i));
      }
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }

  const Kernel& kernel_;
  std::vector<const std::int64_t*> given_;
  std::size_t dimension_;
  Thresholds test_;
  Block<std::int32_t> directions_;
  std::vector<double> masses_, lengths_, spreads_;
  std::vector<std::uint32_t> united_at_;  // where the sum of a group of several rows is
  std::vector<Block<std::int64_t>> united_;
  std::vector<std::uint32_t> free_;
  std::vector<double> room_;
};

}  // namespace linkstream
