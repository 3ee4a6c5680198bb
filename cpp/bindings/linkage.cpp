// What: margin linkage as a Python function. It only translates; the GIL is released, Ctrl-C ends it.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "engine.hpp"
#include "linkstream/linkage.hpp"
#include "stopping.hpp"

using namespace linkstream;

namespace {

using Table = Given<double, 2>;
using Column = Given<const double, 1>;
using Lists = std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::vector<double>>;

Lists unions(Table table, Column squares, Column masses, double t_c, double t_s, double t_p) {
  const std::size_t n = masses.shape(0);
  if (table.shape(0) != n || table.shape(1) != n || squares.shape(0) != n) {
    throw nb::value_error("a table whose sides differ from the number of masses");
  }
  double* const products = table.data();
  const double *const lengths = squares.data(), *const weights = masses.data();
  std::vector<Union> found;
  {
    const nb::gil_scoped_release released;
    found = Linkage(products, lengths, weights, n, {t_c, t_s, t_p}, Signals())();
  }
  Lists lists;
  for (const Union& united : found) {
    std::get<0>(lists).push_back(united.kept);
    std::get<1>(lists).push_back(united.gone);
    std::get<2>(lists).push_back(united.margin);
  }
  return lists;
}

}  // namespace

void bind_linkage(nb::module_& m) {
  m.def("unions", &unions, nb::arg("table"), nb::arg("squares"), nb::arg("masses"),
        nb::arg("cluster_similarity"), nb::arg("subcluster_similarity"),
        nb::arg("pair_similarity_max"),
        "Return the rows united by margin, in order; the table is overwritten.");
}
