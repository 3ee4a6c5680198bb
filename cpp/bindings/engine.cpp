// What: the engine as a Python class. It only translates arrays, releases the GIL while the engine
//   works, and admits one caller at a time.
#include "engine.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "cluster_index.hpp"
#include "exchange.hpp"
#include "linkage.hpp"
#include "linkstream/engine.hpp"
#include "stopping.hpp"
#include "vector_store.hpp"

using namespace linkstream;

namespace {

const Kernel& chosen_kernel(const std::string& name) {
  const Kernel* kernel = name.empty() ? kernel_best() : kernel_named(name.c_str());
  if (!kernel) throw nb::value_error(("no kernel named '" + name + "' on this machine").c_str());
  return *kernel;
}

constexpr std::int64_t kFewEvents = 4096;

// The sequence number of the first vector, and the decisions as columns.
using Columns = std::tuple<std::int64_t, Array<std::int64_t>, Array<std::int64_t>,
                           Array<std::int8_t>, Array<double>, Array<double>, Array<double>>;

// Computes the norms of rows.
void measure(const Kernel& kernel, const float* x, std::size_t n, std::size_t dimension,
             double* norms) {
  std::size_t width = 1;
  while (width < dimension) width *= 2;
  std::vector<double> room(width);
  for (std::size_t i = 0; i < n; ++i) {
    norms[i] = kernel.norm(x + i * dimension, dimension, room.data());
  }
}

// Decisions to return; the first `n` are made.
struct Answers {
  explicit Answers(std::size_t most) : decisions(most) {}

  Columns columns() const {
    Columns columns(first, Array<std::int64_t>({n}), Array<std::int64_t>({n}),
                    Array<std::int8_t>({n}), Array<double>({n}), Array<double>({n}),
                    Array<double>({n}));
    for (std::size_t i = 0; i < n; ++i) {
      std::get<1>(columns).data()[i] = decisions[i].cluster;
      std::get<2>(columns).data()[i] = decisions[i].subcluster;
      std::get<3>(columns).data()[i] = static_cast<std::int8_t>(decisions[i].kind);
      std::get<4>(columns).data()[i] = decisions[i].similarity;
      std::get<5>(columns).data()[i] = decisions[i].threshold;
      std::get<6>(columns).data()[i] = decisions[i].cluster_margin;
    }
    return columns;
  }

  std::vector<Decision> decisions;
  std::int64_t first = 0;
  std::size_t n = 0;
};

class BoundEngine {
  // Does the engine's work with the GIL released, one caller at a time.
  template <class Work>
  auto locked(Work work) {
    const nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> lock(mutex_);
    return work();
  }

  // Does work that takes less time than releasing and re-acquiring the GIL. The GIL is released only
  // if another thread holds the engine.
  template <class Work>
  auto briefly(Work work) {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) return work();
    return locked(work);
  }

 public:
  BoundEngine(double t_c, double t_s, double t_p, std::size_t dimension, bool track_vectors,
              bool cluster_evidence, std::size_t threads, const std::string& kernel,
              bool check_all_edges, const BoundVectorStore* vector_store)
      : dimension_(bounded("dimension", dimension, 2, kDimensionMax)),
        kernel_(chosen_kernel(kernel)),
        threads_(bounded("threads", threads, 1, kThreadsMax)),
        engine_(Thresholds{t_c, t_s, t_p}, dimension, track_vectors, cluster_evidence, kernel_,
                threads_, check_all_edges ? Skip::kNever : Skip::kWithinBudget,
                chosen_store(vector_store, dimension)),
        thresholds_{t_c, t_s, t_p},
        track_vectors_(track_vectors) {}

  // Changes of several calls
  void begin() {
    briefly([&] { engine_.begin(); });
  }
  void commit(bool keep) {
    briefly([&] { engine_.commit(keep); });
  }
  bool can_keep() {
    return briefly([&] { return engine_.can_keep(); });
  }
  std::size_t n_kept() {
    return briefly([&] { return engine_.n_kept(); });
  }
  void take_back(std::size_t n, std::int64_t code, std::int64_t number) {
    locked([&] { engine_.take_back(n, {code, 0, number, -1, -1, -1}); });
  }
  void rollback() {
    locked([&] { engine_.rollback(); });
  }

  // There are fewer decisions than vectors if `stop` returned true between two blocks.
  Columns add(Vectors vectors, nb::handle stop) {
    const Stop asked = stop_of(stop);
    return decide(vectors, [&](const std::int32_t* q, std::size_t n, Decision* decisions) {
      return engine_.add(q, n, decisions, asked);
    });
  }

  // Adds float vectors; returns null, and adds none, if a norm is out of bounds.
  std::optional<Columns> add_floats(Floats rows, double least, double most, nb::handle stop) {
    if (rows.shape(1) != dimension_) return std::nullopt;
    const Stop asked = stop_of(stop);
    const std::size_t n = rows.shape(0);
    const float* x = rows.data();
    std::vector<double> norms(n);
    Answers answers(n);
    const bool usable = locked([&] {
      answers.first = engine_.n_vectors();
      measure(kernel_, x, n, dimension_, norms.data());
      for (const double norm : norms) {
        if (!(norm >= least && norm <= most)) return false;
      }
      answers.n = engine_.add(x, norms.data(), n, answers.decisions.data(), asked);
      return true;
    });
    if (!usable) return std::nullopt;
    return answers.columns();
  }

  // Adds one float32 vector in bounds and returns the Decision that `made` makes; otherwise returns
  // None and changes nothing. Holds the GIL, because releasing it would take longer than deciding.
  nb::object add_one(nb::handle given, double least, double most, nb::handle made) {
    Floats1 x(given);
    if (!x.opens() || x.shape(0) != dimension_) return nb::none();
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    // Another thread is at work, or within a change: the caller waits by `add`.
    if (!lock.owns_lock() || engine_.in_change()) return nb::none();
    if (engine_.n_vectors() >= kVectorsMax) return nb::none();
    double norm;
    measure(kernel_, x.data(), 1, dimension_, &norm);
    if (!(norm >= least && norm <= most)) return nb::none();
    const std::int64_t sequence = engine_.n_vectors();
    Decision d;
    engine_.begin();
    try {
      engine_.add(x.data(), &norm, 1, &d);
      const bool near = d.similarity == d.similarity;
      nb::object decision = made(
          d.cluster, d.subcluster, static_cast<int>(d.kind),
          near ? nb::cast(d.similarity) : nb::none(), near ? nb::cast(d.threshold) : nb::none(),
          sequence, d.cluster_margin == d.cluster_margin ? nb::cast(d.cluster_margin) : nb::none());
      engine_.commit();
      return decision;
    } catch (...) {  // there may be no memory for the decision
      engine_.rollback();
      throw;
    }
  }

  Columns ask(Vectors vectors) {
    return decide(vectors, [this](const std::int32_t* q, std::size_t n, Decision* decisions) {
      return engine_.ask(q, n, decisions, stop_by_signal());
    });
  }

  auto place(Vectors vector, std::int64_t missing_weight, int outcome, std::int64_t target,
             std::int64_t member, int rule) {
    const std::int32_t* q = one(vector);
    const Decision d =
        locked([&] { return engine_.place(q, {missing_weight, outcome, target, member, rule}); });
    return std::make_tuple(d.cluster, d.subcluster, static_cast<int>(d.kind), d.similarity,
                           d.threshold, d.cluster_margin);
  }

  void withdraw(Vectors vector, std::int64_t missing_weight, std::int64_t target,
                std::int64_t member) {
    const std::int32_t* q = one(vector);
    locked([&] { engine_.withdraw(q, missing_weight, target, member); });
  }

  void set_healing(double growth, double steadiness, bool alone, std::int64_t final_after) {
    locked([&] { engine_.set_healing(growth, steadiness, alone, final_after); });
  }

  void set_cluster_margins(bool on) {
    locked([&] { engine_.set_cluster_margins(on); });
  }

  void set_policy(double joined, double fresh, std::int64_t missing_weight) {
    const bool on = missing_weight >= 0;
    locked([&] { engine_.set_policy({on, joined, fresh, on ? missing_weight : 0}); });
  }

  // Rows of `barred` are two subclusters; rows of `labels` a cluster and its label.
  void require(EventRows barred, EventRows labels) {
    Requirements requirements;
    requirements.barred = pairs_of(barred);
    for (const auto& [cluster, label] : pairs_of(labels)) requirements.labels[cluster] = label;
    locked([&] { engine_.require(requirements); });
  }

  void heal() {
    locked([&] { engine_.heal(); });
  }

  void flag(std::int64_t number, std::int64_t flags) {
    locked([&] { engine_.flag(number, flags); });
  }

  // Groups of vectors by their sums; `sizes` says how many weights and rows each one has.
  Columns absorb(EventRows sums, Numbers sizes, Numbers missing_weights,
                 std::optional<Vectors> rows, std::int64_t flags, bool apart) {
    const std::size_t n = sizes.shape(0);
    if (sums.shape(0) != n || sums.shape(1) != dimension_) {
      throw nb::value_error("not one sum of the engine's dimension for each size");
    }
    const bool fits =
        !rows || (rows->shape(0) == missing_weights.shape(0) && rows->shape(1) == dimension_);
    if (!fits) throw nb::value_error("not one row of the engine's dimension for each weight");
    std::vector<VectorGroup> groups;
    std::size_t first = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t size = sizes.data()[i];
      if (size < 1 || static_cast<std::size_t>(size) > missing_weights.shape(0) - first) {
        throw nb::value_error("not one weight for each vector");
      }
      groups.push_back({sums.data() + i * dimension_, missing_weights.data() + first,
                        static_cast<std::size_t>(size), flags});
      first += static_cast<std::size_t>(size);
    }
    if (first != missing_weights.shape(0)) throw nb::value_error("not one weight for each vector");
    const std::int32_t* vectors = rows ? rows->data() : nullptr;
    Answers answers(n);
    locked([&] {
      answers.first = engine_.n_vectors();
      engine_.absorb(groups, vectors, apart, answers.decisions.data());
      answers.n = n;
    });
    return answers.columns();
  }

  // Appends rows of events; the engine sets their vector.
  void note(EventRows rows) {
    if (rows.shape(1) != kEventWidth) throw nb::value_error("rows of another width");
    std::vector<EventRow> copied(rows.shape(0));
    for (std::size_t i = 0; i < copied.size(); ++i) {
      std::copy_n(rows.data() + i * kEventWidth, kEventWidth, copied[i].begin());
    }
    locked([&] { engine_.note(copied); });
  }

  auto ranked(Vectors vector, std::size_t limit) {
    const std::int32_t* q = one(vector);
    const std::vector<Candidate> ranked = locked([&] { return engine_.ranked(q, limit); });
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, double, double>> result;
    for (const Candidate& c : ranked) {
      result.emplace_back(c.subcluster, c.cluster, c.count, c.similarity, c.link_threshold);
    }
    return result;
  }

  std::int64_t holder(std::int64_t member) {
    return briefly([&] { return engine_.holder(member); });
  }
  bool has_cluster(std::int64_t cluster) {
    return locked([&] { return engine_.has_cluster(cluster); });
  }
  std::tuple<std::int64_t, Array<std::int64_t>> total_of(std::int64_t number) {
    Array<std::int64_t> sum({dimension_});
    std::fill_n(sum.data(), dimension_, std::int64_t{0});
    const std::int64_t count = locked([&] {
      const auto [n, total] = engine_.total_of(number);
      if (total) std::copy_n(total, dimension_, sum.data());
      return n;
    });
    return {count, std::move(sum)};
  }
  std::int64_t cluster_of(std::int64_t number) {
    return briefly([&] { return engine_.cluster_of(number); });
  }
  Array<std::int64_t> labels() {
    return column(locked([&] { return engine_.labels(); }));
  }
  Array<std::int64_t> members(std::int64_t cluster, std::size_t limit, std::int64_t before) {
    return column(locked([&] { return engine_.members(cluster, limit, before); }));
  }
  Array<std::int64_t> held_by(std::int64_t number, std::size_t limit, std::int64_t before) {
    return column(locked([&] { return engine_.held_by(number, limit, before); }));
  }
  std::tuple<Array<std::int64_t>, Array<double>, Array<double>> wholes(Vectors vector) {
    const std::int32_t* q = one(vector);
    const std::vector<Whole> all = locked([&] { return engine_.wholes(q); });
    Array<std::int64_t> clusters({all.size()});
    Array<double> masses({all.size()}), similarities({all.size()});
    for (std::size_t i = 0; i < all.size(); ++i) {
      clusters.data()[i] = all[i].cluster;
      masses.data()[i] = all[i].mass;
      similarities.data()[i] = all[i].similarity;
    }
    return {std::move(clusters), std::move(masses), std::move(similarities)};
  }

  // Clusters of -1 and margins of NaN stand for those that are not there.
  std::tuple<Array<std::int64_t>, Array<double>> near_clusters(Vectors vectors, std::size_t limit) {
    check(vectors);
    const std::size_t n = vectors.shape(0);
    const std::int32_t* q = vectors.data();
    Array<std::int64_t> clusters({n, limit});
    Array<double> margins({n, limit});
    std::int64_t* const ids = clusters.data();
    double* const figures = margins.data();
    std::fill_n(ids, n * limit, std::int64_t{-1});
    std::fill_n(figures, n * limit, kNothing);
    locked([&] {
      engine_.near_clusters(q, n, limit,
                            [=](std::size_t i, std::size_t j, std::int64_t cluster, double margin) {
                              ids[i * limit + j] = cluster;
                              figures[i * limit + j] = margin;
                            });
    });
    return {std::move(clusters), std::move(margins)};
  }

  Array<double> elsewhere(Vectors vectors, std::int64_t cluster) {
    check(vectors);
    const std::size_t n = vectors.shape(0);
    const std::int32_t* q = vectors.data();
    Array<double> best({n});
    double* const found = best.data();
    locked([&] { engine_.elsewhere(q, n, cluster, found); });
    return best;
  }
  std::int64_t oldest_event() {
    return briefly([&] { return engine_.log().oldest(); });
  }
  Array<std::int64_t> event_rows(std::int64_t since) {
    const auto read = [&] {
      if (since < engine_.log().oldest()) throw nb::value_error("events that are no longer kept");
      return engine_.log().rows(since);
    };
    const bool few = briefly([&] { return since >= engine_.log().n_events() - kFewEvents; });
    return table<kEventWidth>(few ? briefly(read) : locked(read));
  }

  // Replaces clusters, edges and their rules, of all subclusters if no numbers are given; appends
  // events.
  void regroup(Numbers numbers, Numbers clusters, EventRows edges, Numbers edge_rules,
               EventRows events, std::int64_t free_cluster) {
    Regrouped given;
    given.numbers.assign(numbers.data(), numbers.data() + numbers.size());
    given.clusters.assign(clusters.data(), clusters.data() + clusters.size());
    given.edges = rows_of<2>(edges.data(), edges.size());
    given.edge_rules.assign(edge_rules.data(), edge_rules.data() + edge_rules.size());
    given.events = rows_of<kEventWidth>(events.data(), events.size());
    given.free_cluster = free_cluster;
    locked([&] { engine_.regroup(given); });
  }

  // Unites groups of subclusters by their own sums, without a copy. The engine may be read, but the
  // caller must not change it meanwhile.
  UnionColumns unions(Numbers numbers, Numbers places, Given<const double, 1> masses, double t_c,
                      double t_s, double t_p, EventRows barred, Numbers labels, double alike,
                      nb::handle progress, std::size_t listed) {
    const Groups groups = groups_of(numbers, places, masses.shape(0));
    const GroupSums found = locked([&] { return engine_.sums_of(groups); });
    UnionOptions options{{t_c, t_s, t_p}, std::move(barred), std::move(labels),
                         alike,           progress,          listed};
    return united(kernel_, threads_, {found.sums, masses.data(), dimension_}, options);
  }

  // Returns the sum of each group of subclusters.
  Array<std::int64_t> totals(Numbers numbers, Numbers places, std::size_t n) {
    const Groups groups = groups_of(numbers, places, n);
    Array<std::int64_t> table({n, dimension_});
    std::int64_t* const sums = table.data();
    locked([&] {
      std::fill_n(sums, n * dimension_, std::int64_t{0});
      engine_.add_sums(groups, sums);
    });
    return table;
  }

  // Reads what changed into the index of clusters, but ends after about `budget` numbers; `listed`: how
  // many pairs a new index lists, 0: as many as usual. Returns whether all is read.
  bool read_clusters(bool parts, std::size_t budget, std::size_t listed) {
    const auto make = [&] {
      return std::make_unique<ClusterIndex>(kernel_, dimension_, thresholds_, threads_, listed);
    };
    return index_.locked(make, [&](ClusterIndex& index) {
      const std::lock_guard<std::mutex> lock(mutex_);
      return engine_.read_clusters(index, parts, budget);
    });
  }

  // Rows of `barred` are two clusters; rows of `labels` a cluster and its label.
  void restrict_clusters(EventRows barred, EventRows labels, Numbers left_out) {
    ClusterRestrictions given;
    given.barred = pairs_of(barred);
    given.labels = pairs_of(labels);
    given.left_out.assign(left_out.data(), left_out.data() + left_out.size());
    index_.locked([&](ClusterIndex& index) { index.restrict(given); });
  }

  PairColumns best_margins(std::size_t limit, nb::handle progress) {
    return index_.best_pairs(Worth{}, limit, progress);
  }
  PairColumns best_gains(double even, double spread, std::size_t limit, nb::handle progress) {
    return index_.best_pairs({false, even, spread}, limit, progress);
  }
  PairColumns pair_figures(EventRows pairs) {
    if (pairs.shape(1) != 2) throw nb::value_error("rows of two numbers");
    return index_.figures(std::move(pairs));
  }
  EdgeColumns best_cuts(double even, double spread, std::size_t limit) {
    return index_.edges([&](const ClusterIndex& index, auto visit) {
      for (const RankedEdge& cut : index.best_cuts({false, even, spread}, limit)) {
        visit(cut.row, *cut.edge);
      }
    });
  }
  EdgeColumns weakest_edges(std::size_t limit) {
    return index_.edges([&](const ClusterIndex& index, auto visit) {
      for (const RankedEdge& edge : index.weakest(limit)) visit(edge.row, *edge.edge);
    });
  }
  EdgeColumns pinned_edges() {
    return index_.edges([&](const ClusterIndex& index, auto visit) {
      for (const RankedEdge& edge : index.pinned()) visit(edge.row, *edge.edge);
    });
  }
  Array<std::int64_t> hearts(Numbers clusters) { return index_.hearts(std::move(clusters)); }

  // Clusters that were read into the index, and those that were scanned against all others.
  std::tuple<std::int64_t, std::int64_t> index_counts() {
    return index_.locked(
        [](const ClusterIndex& index) { return std::make_tuple(index.n_read, index.n_scanned()); });
  }

  nb::dict outline() {
    const State state = locked([&] { return engine_.outline(); });
    return outline_of(state);
  }

  nb::dict parts(Numbers clusters) {
    const std::vector<std::int64_t> some(clusters.data(), clusters.data() + clusters.size());
    const State state = locked([&] { return engine_.parts(some); });
    return dict_of(state, dimension_);
  }

  nb::dict state() {
    const State state = locked([&] { return engine_.state(); });
    return dict_of(state, dimension_);
  }

  void restore(const nb::dict& given) {
    const State state = state_of(given);
    locked([&] {
      if (engine_.n_vectors() || engine_.n_cluster_ids() || engine_.log().n_events()) {
        throw nb::value_error("only a new engine can restore a state");
      }
      if (!hangs_together(state, dimension_, track_vectors_)) {
        throw nb::value_error("a state whose parts do not fit together");
      }
      engine_.restore(state);
    });
  }

  std::int64_t n_events() {
    return briefly([&] { return engine_.n_events(); });
  }
  std::int64_t n_vectors() {
    return briefly([&] { return engine_.n_vectors(); });
  }
  std::int64_t n_subclusters() {
    return briefly([&] { return engine_.n_subclusters(); });
  }
  std::int64_t n_clusters() {
    return briefly([&] { return engine_.n_clusters(); });
  }
  std::int64_t n_walks() {
    return briefly([&] { return engine_.n_walks(); });
  }
  std::int64_t n_visited() {
    return briefly([&] { return engine_.n_visited(); });
  }

  std::int64_t n_cluster_ids() {
    return briefly([&] { return engine_.n_cluster_ids(); });
  }
  std::string kernel() const { return kernel_.name; }

 private:
  static Groups groups_of(Numbers& numbers, Numbers& places, std::size_t n) {
    if (numbers.shape(0) != places.shape(0)) {
      throw nb::value_error("columns of different lengths");
    }
    return {numbers.data(), places.data(), numbers.shape(0), n};
  }

  static std::vector<std::pair<std::int64_t, std::int64_t>> pairs_of(EventRows& rows) {
    if (rows.shape(1) != 2) throw nb::value_error("rows of two numbers");
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
      pairs.emplace_back(rows.data()[2 * i], rows.data()[2 * i + 1]);
    }
    return pairs;
  }

  void check(Vectors& vectors) const {
    if (vectors.shape(1) != dimension_) throw nb::value_error("vectors of another dimension");
  }

  const std::int32_t* one(Vectors& vector) const {
    check(vector);
    if (vector.shape(0) != 1) throw nb::value_error("one vector at a time");
    return vector.data();
  }

  template <class Work>
  Columns decide(Vectors& vectors, Work work) {
    check(vectors);
    Answers answers(vectors.shape(0));
    const std::int32_t* q = vectors.data();
    locked([&] {
      answers.first = engine_.n_vectors();
      answers.n = work(q, answers.decisions.size(), answers.decisions.data());
    });
    return answers.columns();
  }

  std::size_t dimension_;
  const Kernel& kernel_;
  std::size_t threads_;
  Engine engine_;
  Thresholds thresholds_;
  bool track_vectors_;
  BoundIndex index_;
  std::mutex mutex_;
};

// Returns fixed-point rows of float32 rows, and their norms; rows whose norm is zero or not finite are
// undefined.
std::tuple<Array<std::int32_t>, Array<double>> quantise(Floats rows) {
  const std::size_t n = rows.shape(0), dimension = rows.shape(1);
  Array<std::int32_t> fixed({n, dimension});
  Array<double> lengths({n});
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
  return {std::move(fixed), std::move(lengths)};
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
  m.def("quantise", &quantise, nb::arg("rows"),
        "Return fixed-point rows of float32 rows, and the norms of the rows.");
  m.def("kernels", &kernels,
        "Return the names of the kernels this machine can run, slowest first.");
  nb::class_<BoundVectorStore>(m, "VectorStore", "Fixed-point vectors in order of arrival.")
      .def(nb::init<std::size_t>(), nb::arg("dimension"))
      .def("__len__", &BoundVectorStore::size)
      .def("append", &BoundVectorStore::append, nb::arg("rows"))
      .def("rows", &BoundVectorStore::rows, nb::arg("numbers"))
      .def("cut", &BoundVectorStore::cut, nb::arg("size"));
  nb::class_<BoundEngine>(m, "Engine", "Links on the compiled core.")
      .def(nb::init<double, double, double, std::size_t, bool, bool, std::size_t,
                    const std::string&, bool, const BoundVectorStore*>(),
           nb::arg("cluster_similarity"), nb::arg("subcluster_similarity"),
           nb::arg("pair_similarity_max"), nb::arg("dimension"), nb::arg("track_vectors"),
           nb::arg("cluster_evidence"), nb::arg("threads"), nb::arg("kernel"),
           nb::arg("check_all_edges"), nb::arg("vector_store").none() = nb::none())
      .def("begin", &BoundEngine::begin)
      .def("commit", &BoundEngine::commit, nb::arg("keep") = false)
      .def("take_back", &BoundEngine::take_back, nb::arg("n"), nb::arg("code"), nb::arg("number"))
      .def_prop_ro("can_keep", &BoundEngine::can_keep)
      .def_prop_ro("n_kept", &BoundEngine::n_kept)
      .def("rollback", &BoundEngine::rollback)
      .def("add", &BoundEngine::add, nb::arg("vectors"), nb::arg("stop").none() = nb::none())
      .def("add_floats", &BoundEngine::add_floats, nb::arg("rows"), nb::arg("least"),
           nb::arg("most"), nb::arg("stop").none() = nb::none())
      .def("add_one", &BoundEngine::add_one, nb::arg("vector").none(), nb::arg("least"),
           nb::arg("most"), nb::arg("made"),
           nb::sig("def add_one(self, vector: object, least: float, most: float, "
                   "made: collections.abc.Callable[..., object]) -> typing.Any"))
      .def("ask", &BoundEngine::ask, nb::arg("vectors"))
      .def("place", &BoundEngine::place, nb::arg("vector"), nb::arg("missing_weight"),
           nb::arg("outcome"), nb::arg("target"), nb::arg("member"), nb::arg("rule"))
      .def("withdraw", &BoundEngine::withdraw, nb::arg("vector"), nb::arg("missing_weight"),
           nb::arg("target"), nb::arg("member"))
      .def("flag", &BoundEngine::flag, nb::arg("number"), nb::arg("flags"))
      .def("absorb", &BoundEngine::absorb, nb::arg("totals"), nb::arg("sizes"),
           nb::arg("missing_weights"), nb::arg("rows").none(), nb::arg("flags"), nb::arg("apart"))
      .def("set_healing", &BoundEngine::set_healing, nb::arg("growth"), nb::arg("steadiness"),
           nb::arg("alone"), nb::arg("final_after") = 0)
      .def("set_cluster_margins", &BoundEngine::set_cluster_margins, nb::arg("on"))
      .def("set_policy", &BoundEngine::set_policy, nb::arg("joined"), nb::arg("fresh"),
           nb::arg("missing_weight"))
      .def("require", &BoundEngine::require, nb::arg("barred"), nb::arg("labels"))
      .def("heal", &BoundEngine::heal)
      .def("note", &BoundEngine::note, nb::arg("rows"))
      .def("ranked", &BoundEngine::ranked, nb::arg("vector"), nb::arg("limit"))
      .def("holder", &BoundEngine::holder, nb::arg("member"))
      .def("has_cluster", &BoundEngine::has_cluster, nb::arg("cluster"))
      .def("total_of", &BoundEngine::total_of, nb::arg("number"))
      .def("cluster_of", &BoundEngine::cluster_of, nb::arg("number"))
      .def("labels", &BoundEngine::labels)
      .def("members", &BoundEngine::members, nb::arg("cluster"), nb::arg("limit"),
           nb::arg("before"))
      .def("held_by", &BoundEngine::held_by, nb::arg("number"), nb::arg("limit"), nb::arg("before"))
      .def("wholes", &BoundEngine::wholes, nb::arg("vector"))
      .def("near_clusters", &BoundEngine::near_clusters, nb::arg("vectors"), nb::arg("limit"))
      .def("elsewhere", &BoundEngine::elsewhere, nb::arg("vectors"), nb::arg("cluster"))
      .def("read_clusters", &BoundEngine::read_clusters, nb::arg("parts"), nb::arg("budget"),
           nb::arg("listed"))
      .def("restrict_clusters", &BoundEngine::restrict_clusters, nb::arg("barred"),
           nb::arg("labels"), nb::arg("left_out"))
      .def("best_margins", &BoundEngine::best_margins, nb::arg("limit"), nb::arg("progress").none())
      .def("best_gains", &BoundEngine::best_gains, nb::arg("even"), nb::arg("spread"),
           nb::arg("limit"), nb::arg("progress").none())
      .def("pair_figures", &BoundEngine::pair_figures, nb::arg("pairs"))
      .def("best_cuts", &BoundEngine::best_cuts, nb::arg("even"), nb::arg("spread"),
           nb::arg("limit"))
      .def("weakest_edges", &BoundEngine::weakest_edges, nb::arg("limit"))
      .def("pinned_edges", &BoundEngine::pinned_edges)
      .def("hearts", &BoundEngine::hearts, nb::arg("clusters"))
      .def("oldest_event", &BoundEngine::oldest_event)
      .def("event_rows", &BoundEngine::event_rows, nb::arg("since"))
      .def("regroup", &BoundEngine::regroup, nb::arg("numbers"), nb::arg("clusters"),
           nb::arg("edges"), nb::arg("edge_rules"), nb::arg("events"), nb::arg("free_cluster"))
      .def("unions", &BoundEngine::unions, nb::arg("numbers"), nb::arg("places"), nb::arg("masses"),
           nb::arg("cluster_similarity"), nb::arg("subcluster_similarity"),
           nb::arg("pair_similarity_max"), nb::arg("barred"), nb::arg("labels"), nb::arg("alike"),
           nb::arg("progress").none(), nb::arg("listed"))
      .def("totals", &BoundEngine::totals, nb::arg("numbers"), nb::arg("places"), nb::arg("n"))
      .def("outline", &BoundEngine::outline, nb::sig("def outline(self) -> dict[str, typing.Any]"))
      .def("parts", &BoundEngine::parts, nb::arg("clusters"),
           nb::sig("def parts(self, clusters: numpy.typing.NDArray[numpy.int64]) -> "
                   "dict[str, typing.Any]"))
      .def("state", &BoundEngine::state, nb::sig("def state(self) -> dict[str, typing.Any]"))
      .def("restore", &BoundEngine::restore, nb::arg("state"),
           nb::sig("def restore(self, state: dict[str, typing.Any]) -> None"))
      .def_prop_ro("n_vectors", &BoundEngine::n_vectors)
      .def_prop_ro("n_events", &BoundEngine::n_events)
      .def_prop_ro("n_subclusters", &BoundEngine::n_subclusters)
      .def_prop_ro("n_clusters", &BoundEngine::n_clusters)
      .def_prop_ro("n_cluster_ids", &BoundEngine::n_cluster_ids)
      .def_prop_ro("n_walks", &BoundEngine::n_walks)
      .def_prop_ro("n_visited", &BoundEngine::n_visited)
      .def_prop_ro("index_counts", &BoundEngine::index_counts)
      .def_prop_ro("kernel", &BoundEngine::kernel);
}
