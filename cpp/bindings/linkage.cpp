// What: margin linkage as a Python function. Only translation; the GIL is released, and Ctrl-C ends it.
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "engine.hpp"
#include "linkstream/linkage.hpp"
#include "stopping.hpp"

namespace nb = nanobind;
using namespace linkstream;

namespace {

using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Lists = std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::vector<double>>;

Lists unions(Table table, Column squares, Column masses, double t_c, double t_s, double t_p) {
  const std::size_t n = masses.shape(0);
  if (table.shape(0) != n || table.shape(1) != n || squares.shape(0) != n) {
    throw nb::value_error("a table whose sides are not the number of masses");
  }
  std::vector<Union> found;
  {
    const nb::gil_scoped_release released;
    found = Linkage(table.data(), squares.data(), masses.data(), n, {t_c, t_s, t_p}, Signals())();
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
  m.def("unions", &unions, nb::arg("table").noconvert(), nb::arg("squares").noconvert(),
        nb::arg("masses").noconvert(), nb::arg("cluster_similarity"),
        nb::arg("subcluster_similarity"), nb::arg("pair_similarity_max"),
        "Rows united by margin, in order; the table is used up.");
}
