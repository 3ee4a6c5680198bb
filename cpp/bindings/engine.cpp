// What: the engine as a Python class. Only translation: arrays in, arrays out, the GIL released
//   while the engine works, one caller at a time.
#include "engine.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "linkstream/engine.hpp"

namespace nb = nanobind;
using namespace linkstream;

namespace {

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::c_contig>;
using Vectors = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats1 = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
Array<T> fresh(std::initializer_list<std::size_t> shape) {
  std::size_t size = 1;
  for (const std::size_t side : shape) size *= side;
  auto memory = std::make_unique<T[]>(size ? size : 1);
  T* data = memory.get();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  memory.release();
  return Array<T>(data, shape, owner);
}

Array<std::int64_t> column(const std::vector<std::int64_t>& values) {
  Array<std::int64_t> array = fresh<std::int64_t>({values.size()});
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

template <std::size_t Width>
Array<std::int64_t> table(const std::vector<std::array<std::int64_t, Width>>& rows) {
  Array<std::int64_t> array = fresh<std::int64_t>({rows.size(), Width});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), array.data() + i * Width);
  }
  return array;
}

constexpr std::size_t kDimensionMax = std::size_t{1} << 16;
constexpr std::size_t kThreadsMax = 1024;
constexpr std::int64_t kVectorsMax = 0xffffffff;  // numbers of 32 bits name them

// A number of the caller's within bounds, or ValueError.
std::size_t bounded(const char* name, std::size_t value, std::size_t low, std::size_t high) {
  if (value < low || value > high) {
    throw nb::value_error((std::string(name) + " is " + std::to_string(value) + ", not from " +
                           std::to_string(low) + " to " + std::to_string(high)).c_str());
  }
  return value;
}

const Kernel& chosen_kernel(const std::string& name) {
  const Kernel* kernel = name.empty() ? kernel_best() : kernel_named(name.c_str());
  if (!kernel) throw nb::value_error(("no kernel named '" + name + "' on this machine").c_str());
  return *kernel;
}

// The sequence number of the first vector, and the decisions as columns.
using Columns = std::tuple<std::int64_t, Array<std::int64_t>, Array<std::int64_t>,
                           Array<std::int8_t>, Array<double>, Array<double>>;

// Lengths of rows.
void measure(const Kernel& kernel, const float* x, std::size_t n, std::size_t dimension,
             double* norms) {
  std::size_t width = 1;
  while (width < dimension) width *= 2;
  std::vector<double> room(width);
  for (std::size_t i = 0; i < n; ++i) {
    norms[i] = kernel.norm(x + i * dimension, dimension, room.data());
  }
}

class BoundEngine {
  // The engine's work, with the GIL released and one caller at a time.
  template <class Work>
  auto locked(Work work) {
    const nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> lock(mutex_);
    return work();
  }

 public:
  BoundEngine(double t_c, double t_s, double t_p, std::size_t dimension, bool track_vectors,
              bool cluster_evidence, std::size_t threads, const std::string& kernel, bool check_all_edges)
      : dimension_(bounded("dimension", dimension, 2, kDimensionMax)),
        kernel_(chosen_kernel(kernel)),
        engine_(Thresholds{t_c, t_s, t_p}, dimension, track_vectors, cluster_evidence, kernel_,
                bounded("threads", threads, 1, kThreadsMax),
                check_all_edges ? Skip::kNever : Skip::kWithinBudget),
        track_vectors_(track_vectors) {}

  Columns add(Vectors vectors) {
    return decide(vectors, [this](const std::int32_t* q, std::size_t n, Decision* decisions) {
      engine_.add(q, n, decisions);
    });
  }

  // Vectors as they come: all are taken, or none if a length is out of bounds (then null).
  std::optional<Columns> add_floats(Floats rows, double least, double most) {
    if (rows.shape(1) != dimension_) return std::nullopt;
    const std::size_t n = rows.shape(0);
    const float* x = rows.data();
    std::vector<double> norms(n);
    std::vector<Decision> decisions(n);
    std::int64_t first = 0;
    const bool taken = locked([&] {
      first = engine_.n_vectors();
      measure(kernel_, x, n, dimension_, norms.data());
      for (const double norm : norms) {
        if (!(norm >= least && norm <= most)) return false;
      }
      engine_.add(x, norms.data(), n, decisions.data());
      return true;
    });
    if (!taken) return std::nullopt;
    return columns_of(first, decisions);
  }

  // One vector, if it is a row of float32 in bounds; else null and nothing has changed. A call with
  // the GIL held: releasing it would take longer than deciding.
  nb::object add_one(nb::handle given, double least, double most) {
    Floats1 x;
    if (!nb::try_cast<Floats1>(given, x, false) || x.shape(0) != dimension_) return nb::none();
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return nb::none();  // another thread is at work: wait the usual way
    if (engine_.n_vectors() >= kVectorsMax) return nb::none();
    double norm;
    measure(kernel_, x.data(), 1, dimension_, &norm);
    if (!(norm >= least && norm <= most)) return nb::none();
    const std::int64_t sequence = engine_.n_vectors();
    Decision d;
    engine_.add(x.data(), &norm, 1, &d);
    const bool near = d.similarity == d.similarity;
    return nb::make_tuple(d.cluster, d.subcluster, static_cast<int>(d.kind),
                          near ? nb::cast(d.similarity) : nb::none(),
                          near ? nb::cast(d.threshold) : nb::none(), sequence);
  }

  Columns ask(Vectors vectors) {
    return decide(vectors, [this](const std::int32_t* q, std::size_t n, Decision* decisions) {
      engine_.ask(q, n, decisions);
    });
  }

  auto ranked(Vectors vector, std::size_t limit) {
    check(vector);
    if (vector.shape(0) != 1) throw nb::value_error("one vector is ranked at a time");
    const std::int32_t* q = vector.data();
    const std::vector<Candidate> ranked = locked([&] { return engine_.ranked(q, limit); });
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, double, double>> result;
    for (const Candidate& c : ranked) {
      result.emplace_back(c.subcluster, c.cluster, c.count, c.similarity, c.link_threshold);
    }
    return result;
  }

  Array<std::int64_t> labels() { return column(locked([&] { return engine_.labels(); })); }
  std::int64_t oldest_event() { return locked([&] { return engine_.log().oldest(); }); }
  Array<std::int64_t> event_rows(std::int64_t since) {
    return table<kEventWidth>(locked([&] {
      if (since < engine_.log().oldest()) throw nb::value_error("events that are not kept");
      return engine_.log().rows(since);
    }));
  }

  nb::dict state() {
    const State state = locked([&] { return engine_.state(); });
    nb::dict result;
    result["n_vectors"] = state.n_vectors;
    result["n_events"] = state.n_events;
    result["next_subcluster"] = state.next_subcluster;
    result["next_cluster"] = state.next_cluster;
    result["numbers"] = column(state.numbers);
    result["clusters"] = column(state.clusters);
    result["counts"] = column(state.counts);
    result["first_seen"] = column(state.first_seen);
    result["last_seen"] = column(state.last_seen);
    Array<std::int64_t> sums = fresh<std::int64_t>({state.numbers.size(), dimension_});
    std::copy(state.sums.begin(), state.sums.end(), sums.data());
    result["sums"] = sums;
    result["edges"] = table<2>(state.edges);
    result["firm"] = column(state.firm);
    result["vectors"] = column(state.vectors);
    result["events"] = table<kEventWidth>(state.events);
    return result;
  }

  void restore(const nb::dict& given) {
    State state;
    state.n_vectors = nb::cast<std::int64_t>(given["n_vectors"]);
    state.n_events = nb::cast<std::int64_t>(given["n_events"]);
    state.next_subcluster = nb::cast<std::int64_t>(given["next_subcluster"]);
    state.next_cluster = nb::cast<std::int64_t>(given["next_cluster"]);
    state.numbers = taken(given, "numbers");
    state.clusters = taken(given, "clusters");
    state.counts = taken(given, "counts");
    state.first_seen = taken(given, "first_seen");
    state.last_seen = taken(given, "last_seen");
    state.sums = taken(given, "sums");
    state.vectors = taken(given, "vectors");
    state.edges = taken_rows<2>(given, "edges");
    state.firm = taken(given, "firm");
    state.events = taken_rows<kEventWidth>(given, "events");
    locked([&] {
      if (engine_.n_vectors() || engine_.n_cluster_ids()) {
        throw nb::value_error("a state is for an engine that is new");
      }
      if (!hangs_together(state)) throw nb::value_error("a state whose parts do not fit");
      engine_.restore(state);
    });
  }

  std::int64_t n_vectors() { return locked([&] { return engine_.n_vectors(); }); }
  std::int64_t n_subclusters() { return locked([&] { return engine_.n_subclusters(); }); }
  std::int64_t n_clusters() { return locked([&] { return engine_.n_clusters(); }); }
  std::int64_t n_cluster_ids() { return locked([&] { return engine_.n_cluster_ids(); }); }
  std::string kernel() const { return kernel_.name; }

 private:
  void check(const Vectors& vectors) const {
    if (vectors.shape(1) != dimension_) throw nb::value_error("vectors of another dimension");
  }

  // What keeps the engine within its memory; the rest is for state.py to check.
  bool hangs_together(const State& state) const {
    const std::size_t n = state.numbers.size();
    for (const auto* column : {&state.clusters, &state.counts, &state.first_seen, &state.last_seen}) {
      if (column->size() != n) return false;
    }
    const auto given = [&](std::int64_t number) {
      return number >= 0 && number < state.next_subcluster;
    };
    const auto live = [&](std::int64_t number) {
      return std::binary_search(state.numbers.begin(), state.numbers.end(), number);
    };
    const auto lives = [&](const std::array<std::int64_t, 2>& edge) {
      return edge[0] < edge[1] && live(edge[0]) && live(edge[1]);
    };
    const auto rising = [](std::int64_t a, std::int64_t b) { return a >= b; };
    return state.sums.size() == n * dimension_ && state.firm.size() == state.edges.size() && state.n_vectors >= 0 && state.next_cluster >= 0 &&
           state.next_subcluster >= 0 && state.next_subcluster <= state.n_vectors &&
           state.n_events >= static_cast<std::int64_t>(state.events.size()) &&
           state.vectors.size() == (track_vectors_ ? static_cast<std::size_t>(state.n_vectors) : 0) &&
           std::all_of(state.numbers.begin(), state.numbers.end(), given) &&
           std::adjacent_find(state.numbers.begin(), state.numbers.end(), rising) ==
               state.numbers.end() &&
           std::all_of(state.counts.begin(), state.counts.end(), [](auto k) { return k > 0; }) &&
           std::all_of(state.vectors.begin(), state.vectors.end(), live) &&
           std::all_of(state.edges.begin(), state.edges.end(), lives);
  }

  template <class Work>
  Columns decide(const Vectors& vectors, Work work) {
    check(vectors);
    const std::size_t n = vectors.shape(0);
    std::vector<Decision> decisions(n);
    const std::int32_t* q = vectors.data();
    const std::int64_t first = locked([&] {
      const std::int64_t before = engine_.n_vectors();
      work(q, n, decisions.data());
      return before;
    });
    return columns_of(first, decisions);
  }

  static Columns columns_of(std::int64_t first, const std::vector<Decision>& decisions) {
    const std::size_t n = decisions.size();
    Columns columns(first, fresh<std::int64_t>({n}), fresh<std::int64_t>({n}), fresh<std::int8_t>({n}),
                    fresh<double>({n}), fresh<double>({n}));
    for (std::size_t i = 0; i < n; ++i) {
      std::get<1>(columns).data()[i] = decisions[i].cluster;
      std::get<2>(columns).data()[i] = decisions[i].subcluster;
      std::get<3>(columns).data()[i] = static_cast<std::int8_t>(decisions[i].kind);
      std::get<4>(columns).data()[i] = decisions[i].similarity;
      std::get<5>(columns).data()[i] = decisions[i].threshold;
    }
    return columns;
  }

  static std::vector<std::int64_t> taken(const nb::dict& given, const char* name) {
    const nb::object value = given[name];
    nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(value, array, false)) {
      throw nb::type_error((std::string(name) + " is no array of int64").c_str());
    }
    return {array.data(), array.data() + array.size()};
  }

  template <std::size_t Width>
  static std::vector<std::array<std::int64_t, Width>> taken_rows(const nb::dict& given,
                                                                 const char* name) {
    const std::vector<std::int64_t> flat = taken(given, name);
    if (flat.size() % Width) throw nb::value_error("rows of another width");
    std::vector<std::array<std::int64_t, Width>> rows(flat.size() / Width);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>(i * Width), Width, rows[i].begin());
    }
    return rows;
  }

  std::size_t dimension_;
  const Kernel& kernel_;
  Engine engine_;
  bool track_vectors_;
  std::mutex mutex_;
};

// Fixed-point rows of float32 rows, and their lengths; rows whose length is zero or not finite come
// out as nothing to rely on.
std::tuple<Array<std::int32_t>, Array<double>> quantise(Floats rows) {
  const std::size_t n = rows.shape(0), dimension = rows.shape(1);
  Array<std::int32_t> fixed = fresh<std::int32_t>({n, dimension});
  Array<double> lengths = fresh<double>({n});
  const float* x = rows.data();
  std::int32_t* q = fixed.data();
  double* norms = lengths.data();
  const nb::gil_scoped_release released;
  const Kernel& kernel = *kernel_best();
  measure(kernel, x, n, dimension, norms);
  for (std::size_t i = 0; i < n; ++i) {
    if (norms[i] > 0.0 && std::isfinite(norms[i])) {
      kernel.quantise(x + i * dimension, norms[i], dimension, q + i * dimension);
    }
  }
  return {fixed, lengths};
}

std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (const char* name : {"portable", "avx2", "avx512", "amx"}) {
    if (kernel_named(name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace

void bind_engine(nb::module_& m) {
  m.def("quantise", &quantise, nb::arg("rows").noconvert(),
        "Fixed-point rows of float32 rows, and the rows' lengths.");
  m.def("kernels", &kernels, "Names of the kernels this machine can run, slowest first.");
  nb::class_<BoundEngine>(m, "Engine", "Links on the compiled core.")
      .def(nb::init<double, double, double, std::size_t, bool, bool, std::size_t,
                    const std::string&, bool>(),
           nb::arg("cluster_similarity"), nb::arg("subcluster_similarity"),
           nb::arg("pair_similarity_max"), nb::arg("dimension"), nb::arg("track_vectors"),
           nb::arg("cluster_evidence"),
           nb::arg("threads"), nb::arg("kernel"), nb::arg("check_all_edges"))
      .def("add", &BoundEngine::add, nb::arg("vectors").noconvert())
      .def("add_floats", &BoundEngine::add_floats, nb::arg("rows").noconvert(), nb::arg("least"),
           nb::arg("most"))
      .def("add_one", &BoundEngine::add_one, nb::arg("vector").none(), nb::arg("least"),
           nb::arg("most"),
           nb::sig("def add_one(self, vector: object, least: float, most: float) -> "
                   "tuple[int, int, int, float | None, float | None, int] | None"))
      .def("ask", &BoundEngine::ask, nb::arg("vectors").noconvert())
      .def("ranked", &BoundEngine::ranked, nb::arg("vector").noconvert(), nb::arg("limit"))
      .def("labels", &BoundEngine::labels)
      .def("oldest_event", &BoundEngine::oldest_event)
      .def("event_rows", &BoundEngine::event_rows, nb::arg("since"))
      .def("state", &BoundEngine::state, nb::sig("def state(self) -> dict[str, typing.Any]"))
      .def("restore", &BoundEngine::restore, nb::arg("state"),
           nb::sig("def restore(self, state: dict[str, typing.Any]) -> None"))
      .def_prop_ro("n_vectors", &BoundEngine::n_vectors)
      .def_prop_ro("n_subclusters", &BoundEngine::n_subclusters)
      .def_prop_ro("n_clusters", &BoundEngine::n_clusters)
      .def_prop_ro("n_cluster_ids", &BoundEngine::n_cluster_ids)
      .def_prop_ro("kernel", &BoundEngine::kernel);
}
