// What: margin linkage as a Python function. It only translates; the GIL is released, Ctrl-C ends it.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "engine.hpp"
#include "linkstream/linkage.hpp"
#include "stopping.hpp"

using namespace linkstream;

namespace {

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

using Columns = std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<double>>;

Columns unions(Given<const std::int64_t, 2> sums, Given<const double, 1> masses, double t_c,
               double t_s, double t_p, Given<const std::int64_t, 2> barred,
               Given<const std::int64_t, 1> labels, double alike, std::size_t threads,
               const std::string& kernel, nb::handle progress, std::size_t listed) {
  const std::size_t n = masses.shape(0), dimension = sums.shape(1);
  const bool wrong = sums.shape(0) != n || (labels.size() && labels.shape(0) != n);
  if (wrong || barred.shape(1) != 2) throw nb::value_error("columns of different lengths");
  for (std::size_t i = 0; i < barred.size(); ++i) {
    const std::int64_t row = barred.data()[i];
    if (row < 0 || row >= static_cast<std::int64_t>(n)) throw nb::value_error("no such row");
  }
  const Kernel* const chosen = kernel.empty() ? kernel_best() : kernel_named(kernel.c_str());
  if (!chosen) throw nb::value_error("no such kernel on this machine");
  const Restricted restricted{barred.data(), barred.shape(0),
                              labels.size() ? labels.data() : nullptr, alike, alike > 0.0};
  const std::int64_t* const totals = sums.data();
  const double* const weights = masses.data();
  std::vector<Union> found;
  {
    const nb::gil_scoped_release released;
    Pool pool(bounded("threads", threads, 1, kThreadsMax));
    found = Linkage(*chosen, pool, {totals, weights, n, dimension}, {t_c, t_s, t_p}, restricted,
                    Reports(progress), listed)();
  }
  Reports(progress).tell(1.0);
  Columns columns(Array<std::int64_t>({found.size()}), Array<std::int64_t>({found.size()}),
                  Array<double>({found.size()}));
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::get<0>(columns).data()[i] = found[i].kept;
    std::get<1>(columns).data()[i] = found[i].gone;
    std::get<2>(columns).data()[i] = found[i].margin;
  }
  return columns;
}

}  // namespace

void bind_linkage(nb::module_& m) {
  m.def("unions", &unions, nb::arg("sums"), nb::arg("masses"), nb::arg("cluster_similarity"),
        nb::arg("subcluster_similarity"), nb::arg("pair_similarity_max"), nb::arg("barred"),
        nb::arg("labels"), nb::arg("alike"), nb::arg("threads"), nb::arg("kernel"),
        nb::arg("progress").none(), nb::arg("listed") = 0,
        "Return the rows united by margin, in order, as three columns.");
}
