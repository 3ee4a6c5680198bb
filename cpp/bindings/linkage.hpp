// What: runs margin linkage for a Python function: the GIL is released, Ctrl-C ends it.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "linkstream/linkage.hpp"
#include "stopping.hpp"

// Lets Python handle its signals now and then, and reports the share of the work done.
class Reports {
 public:
  explicit Reports(nb::handle progress) : progress_(progress) {}

  void operator()(double share) {
    if (!signals_.due()) return;
    const nb::gil_scoped_acquire held;
    signals_.check();
    tell(share);
  }

  // With the GIL held.
  void tell(double share) const {
    if (!progress_.is_none()) progress_(share);
  }

 private:
  nb::handle progress_;
  Signals signals_;
};

// The rows united, in order: kept, gone, margin.
using UnionColumns = std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<double>>;

// How to unite rows: thresholds, the rows that may not share a group, and what carries it out.
struct UnionOptions {
  linkstream::Thresholds thresholds;
  Given<const std::int64_t, 2> barred;
  Given<const std::int64_t, 1> labels;
  double alike;
  nb::handle progress;
  std::size_t listed;

  linkstream::Restricted restricted(std::size_t n) {
    if (barred.shape(1) != 2 || (labels.size() && labels.shape(0) != n)) {
      throw nb::value_error("columns of different lengths");
    }
    for (std::size_t i = 0; i < barred.size(); ++i) {
      const std::int64_t row = barred.data()[i];
      if (row < 0 || row >= static_cast<std::int64_t>(n)) throw nb::value_error("no such row");
    }
    return {barred.data(), barred.shape(0), labels.size() ? labels.data() : nullptr, alike,
            alike > 0.0};
  }
};

inline UnionColumns united(const linkstream::Kernel& kernel, std::size_t threads,
                           const linkstream::GivenRows& rows, UnionOptions& options) {
  const linkstream::Restricted restricted = options.restricted(rows.sums.size());
  std::vector<linkstream::Union> found;
  {
    const nb::gil_scoped_release released;
    linkstream::Pool pool(threads);
    found = linkstream::Linkage(kernel, pool, rows, options.thresholds, restricted,
                                Reports(options.progress), options.listed)();
  }
  Reports(options.progress).tell(1.0);
  UnionColumns columns(Array<std::int64_t>({found.size()}), Array<std::int64_t>({found.size()}),
                       Array<double>({found.size()}));
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::get<0>(columns).data()[i] = found[i].kept;
    std::get<1>(columns).data()[i] = found[i].gone;
    std::get<2>(columns).data()[i] = found[i].margin;
  }
  return columns;
}
