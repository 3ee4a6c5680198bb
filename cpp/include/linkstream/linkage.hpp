// What: margin linkage: groups of subclusters, united by the greatest margin over s~ while it is >= 0.
// Paper: equation 24 as the test of two groups. Python twin: engine/linkage.py, the definition.
// Invariants: the pairs and margins are the twin's bit for bit; ties go to the lowest rows.
// Numerics: element by element in the twin's order; no sums whose order could differ.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "thresholds.hpp"

namespace linkstream {

struct Union {
  std::int64_t kept, gone;
  double margin;
};

class Linkage {
 public:
  // `table` holds n rows of n products S_i.S_j and is overwritten. `pause` is called before each row is
  // searched; it may throw.
  Linkage(
      double* table, const double* squares, const double* masses, std::size_t n,
      const Thresholds& thresholds, std::function<void()> pause = [] {})
      : pause_(std::move(pause)),
        table_(table),
        n_(n),
        test_(thresholds),
        squares_(squares, squares + n),
        roots_(n),
        masses_(masses, masses + n),
        spread_(n),
        live_(n),
        partner_(n, 0),
        best_(n, kNone),
        margins_(n),
        united_(n) {
    for (std::size_t i = 0; i < n; ++i) {
      live_[i] = i;
      measure(i);
    }
    for (std::size_t i = 0; i < n; ++i) look(i, margins_);
  }

  std::vector<Union> operator()() {
    std::vector<Union> unions;
    while (live_.size() > 1) {
      std::size_t row = live_[0];
      for (const std::size_t i : live_) {
        if (best_[i] > best_[row]) row = i;
      }
      if (!(best_[row] >= 0.0)) break;
      const std::size_t gone = partner_[row];
      unions.push_back(
          {static_cast<std::int64_t>(row), static_cast<std::int64_t>(gone), best_[row]});
      unite(row, gone);
    }
    return unions;
  }

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  double* at(std::size_t row) { return table_ + row * n_; }

  void measure(std::size_t row) {
    roots_[row] = std::sqrt(squares_[row]);
    spread_[row] = test_.spread(masses_[row]);
  }

  // Adds one group to another, and updates the partners of all groups.
  void unite(std::size_t row, std::size_t gone) {
    squares_[row] = squares_[row] + squares_[gone] + 2.0 * at(row)[gone];
    masses_[row] += masses_[gone];
    measure(row);
    const double* more = at(gone);
    double* mine = at(row);
    for (std::size_t i = 0; i < n_; ++i) mine[i] += more[i];
    for (const std::size_t i : live_) at(i)[row] = mine[i];
    // A removed row gets an infinite length: its similarity is 0 and its margins are below 0.
    roots_[gone] = std::numeric_limits<double>::infinity();
    live_.erase(std::lower_bound(live_.begin(), live_.end(), gone));
    look(row, united_);
    for (const std::size_t i : live_) {
      if (i == row) continue;
      if (partner_[i] == row || partner_[i] == gone) {
        look(i, margins_);
      } else if (united_[i] > best_[i] || (united_[i] == best_[i] && row < partner_[i])) {
        partner_[i] = row;
        best_[i] = united_[i];
      }
    }
  }

  // Finds the partner of a row with the greatest margin (tie: the lowest row), and all its margins.
  // Only margins >= 0 matter: if all are below, any partner will do.
  void look(std::size_t row, std::vector<double>& margins) {
    pause_();
    const double* products = at(row);
    const double root = roots_[row], spread = spread_[row];
    for (std::size_t i = 0; i < n_; ++i) {
      margins[i] = products[i] / (root * roots_[i]) - test_.required(spread, spread_[i]);
    }
    margins[row] = kNone;
    double best = kNone;
    for (std::size_t i = 0; i < n_; ++i) best = margins[i] > best ? margins[i] : best;
    best_[row] = best;
    partner_[row] =
        static_cast<std::size_t>(std::find(margins.begin(), margins.end(), best) - margins.begin());
  }

  std::function<void()> pause_;
  double* table_;
  std::size_t n_;
  Thresholds test_;
  std::vector<double> squares_, roots_, masses_;
  std::vector<double> spread_;     // 1 + tan^2 / k of each
  std::vector<std::size_t> live_;  // rows that stand for a group, rising
  std::vector<std::size_t> partner_;
  std::vector<double> best_, margins_, united_;
};

}  // namespace linkstream
