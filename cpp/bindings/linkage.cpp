// What: margin linkage of a table of sums as a Python function. It only translates.
#include "linkage.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <utility>

#include "engine.hpp"

using namespace linkstream;

namespace {

UnionColumns unions(Given<const std::int64_t, 2> sums, Given<const double, 1> masses, double t_c,
                    double t_s, double t_p, Given<const std::int64_t, 2> barred,
                    Given<const std::int64_t, 1> labels, double alike, std::size_t threads,
                    const std::string& kernel, nb::handle progress, std::size_t listed) {
  const std::size_t n = masses.shape(0), dimension = sums.shape(1);
  if (sums.shape(0) != n) throw nb::value_error("columns of different lengths");
  const Kernel* const chosen = kernel.empty() ? kernel_best() : kernel_named(kernel.c_str());
  if (!chosen) throw nb::value_error("no such kernel on this machine");
  UnionOptions options{{t_c, t_s, t_p}, std::move(barred), std::move(labels),
                       alike,           progress,          listed};
  return united(*chosen, bounded("threads", threads, 1, kThreadsMax),
                {GroupRows::rows_of(sums.data(), n, dimension), masses.data(), dimension}, options);
}

}  // namespace

void bind_linkage(nb::module_& m) {
  m.def("unions", &unions, nb::arg("sums"), nb::arg("masses"), nb::arg("cluster_similarity"),
        nb::arg("subcluster_similarity"), nb::arg("pair_similarity_max"), nb::arg("barred"),
        nb::arg("labels"), nb::arg("alike"), nb::arg("threads"), nb::arg("kernel"),
        nb::arg("progress").none(), nb::arg("listed") = 0,
        "Return the rows united by margin, in order, as three columns.");
}
