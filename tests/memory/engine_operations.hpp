// What: the operations of the engine that engine_points.cpp runs, on engines that are ready for them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "linkstream/engine.hpp"

namespace {

using namespace linkstream;

// Vectors

constexpr std::size_t kDimension = 8;
using Fixed = std::vector<std::int32_t>;
using Floats = std::vector<float>;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }
  double normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::uint64_t state_;
};

using Point = std::array<double, kDimension>;

Point near(Random& random, const Point& centre, double spread) {
  Point point;
  double square = 0.0;
  for (std::size_t i = 0; i < kDimension; ++i) {
    point[i] = centre[i] + spread * random.normal();
    square += point[i] * point[i];
  }
  for (double& value : point) value /= std::sqrt(square);
  return point;
}

// Three identities of four lobes each: vectors join, link, merge and part.
Floats crowd(std::size_t n, std::uint64_t seed) {
  Random still(4), random(seed);
  std::vector<Point> lobes;
  for (int identity = 0; identity < 3; ++identity) {
    const Point centre = near(still, Point{}, 1.0);
    for (int lobe = 0; lobe < 4; ++lobe) lobes.push_back(near(still, centre, 0.19));
  }
  Floats rows;
  for (std::size_t i = 0; i < n; ++i) {
    const auto lobe = static_cast<std::size_t>(random.uniform() * 12.0);
    for (const double value : near(random, lobes[lobe], 0.05 + 0.15 * random.uniform())) {
      rows.push_back(static_cast<float>(value));
    }
  }
  return rows;
}

Fixed fixed(const Floats& rows) {
  const Kernel& kernel = *kernel_named("portable");
  Fixed q(rows.size());
  std::array<double, kDimension> room;
  for (std::size_t at = 0; at < rows.size(); at += kDimension) {
    const double norm = kernel.norm(rows.data() + at, kDimension, room.data());
    kernel.quantise(rows.data() + at, norm, kDimension, q.data() + at);
  }
  return q;
}

// What can be seen of an engine

class Digest {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* each = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ each[i]) * 1099511628211u;
    value_ = (value_ ^ bytes) * 1099511628211u;
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.data(), values.size() * sizeof(T));
  }
  void add(std::int64_t value) { add(&value, sizeof value); }
  void add(const Decision& decision) {
    add(decision.cluster);
    add(decision.subcluster);
    add(static_cast<std::int64_t>(decision.kind));
    const double figures[] = {std::isnan(decision.similarity) ? -2.0 : decision.similarity,
                              std::isnan(decision.threshold) ? -2.0 : decision.threshold};
    add(figures, sizeof figures);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

struct World {
  std::shared_ptr<VectorStore> vector_store;
  std::unique_ptr<Engine> engine;
  State taken;  // for `restore`
};

std::uint64_t look(World& world) {
  const State state = world.engine->state();
  Digest digest;
  for (const std::int64_t value : {state.n_vectors, state.n_events, state.next_subcluster,
                                   state.next_cluster, state.free_subcluster, state.free_cluster}) {
    digest.add(value);
  }
  for (const auto* values :
       {&state.numbers, &state.clusters, &state.counts, &state.first_seen, &state.last_seen,
        &state.missing_weight, &state.flags, &state.sums, &state.edge_rules, &state.vectors}) {
    digest.add(*values);
  }
  digest.add(state.edges);
  digest.add(state.events);
  digest.add(world.engine->labels());
  for (std::int64_t cluster = 0; cluster < state.free_cluster; ++cluster) {
    digest.add(world.engine->members(cluster, 1000, state.n_vectors));
  }
  digest.add(world.engine->n_clusters());
  digest.add(world.engine->n_subclusters());
  if (world.vector_store) {
    std::vector<std::int64_t> numbers(world.vector_store->size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    Fixed rows(numbers.size() * kDimension);
    world.vector_store->read(numbers.data(), numbers.size(), rows.data());
    digest.add(rows);
  }
  return digest.value();
}

// Operations

struct Options {
  bool tracked = true, evidence = false, empty = false;
  std::size_t start = 60;
};

World made(const Options& options) {
  static const Thresholds thresholds{0.75, 0.9, 0.9};
  World world;
  if (options.tracked) world.vector_store = std::make_shared<VectorStore>(kDimension);
  world.engine = std::make_unique<Engine>(thresholds, kDimension, options.tracked, options.evidence,
                                          *kernel_named("portable"), 1, Skip::kWithinBudget,
                                          world.vector_store);
  return world;
}

World begun(const Options& options) {
  World world = made(options);
  if (options.empty) return world;
  const Fixed rows = fixed(crowd(options.start, 7));
  std::vector<Decision> decisions(options.start);
  world.engine->add(rows.data(), options.start, decisions.data());
  world.engine->flag(decisions[0].subcluster, kClaim);
  return world;
}

using Operation = std::function<void(World&, Digest&)>;

struct Scenario {
  std::string name;
  Options options;
  std::function<Operation(World&)> prepared;  // empty if the world lacks what the operation needs
};

Operation adding(std::size_t n) {
  const Fixed rows = fixed(crowd(n, 11));
  auto decisions = std::make_shared<std::vector<Decision>>(n);
  return [rows, decisions, n](World& world, Digest& digest) {
    world.engine->add(rows.data(), n, decisions->data());
    for (const Decision& decision : *decisions) digest.add(decision);
  };
}

Operation adding_floats(std::size_t n) {
  const Floats rows = crowd(n, 11);
  const std::vector<double> norms(n, 1.0);
  auto decisions = std::make_shared<std::vector<Decision>>(n);
  return [rows, norms, decisions, n](World& world, Digest& digest) {
    world.engine->add(rows.data(), norms.data(), n, decisions->data());
    for (const Decision& decision : *decisions) digest.add(decision);
  };
}

Operation placing(const Order& order) {
  const Fixed row = fixed(crowd(1, 11));
  return [row, order](World& world, Digest& digest) {
    digest.add(world.engine->place(row.data(), order));
  };
}

// A vector of a subcluster that holds more than two, or of one that holds no other; -1 if there is
// none.
std::int64_t member_of(World& world, bool several) {
  const State state = world.engine->state();
  for (std::size_t i = 0; i < state.numbers.size(); ++i) {
    if ((state.counts[i] > 2) != several || (!several && state.counts[i] != 1)) continue;
    for (std::size_t vector = 0; vector < state.vectors.size(); ++vector) {
      if (state.vectors[vector] == state.numbers[i]) return static_cast<std::int64_t>(vector);
    }
  }
  return -1;
}

Fixed row_of(World& world, std::int64_t member) {
  Fixed row(kDimension);
  world.vector_store->read(&member, 1, row.data());
  return row;
}

Operation withdrawing(World& world, bool several) {
  const std::int64_t member = member_of(world, several);
  if (member < 0) return {};
  const std::int64_t target = world.engine->holder(member);
  const Fixed row = row_of(world, member);
  return [=](World& at, Digest&) { at.engine->withdraw(row.data(), 0, target, member); };
}

struct Sums {
  std::vector<std::int64_t> values, missing_weights;
  Fixed rows;
  std::vector<VectorGroup> groups;
};

// Groups of three vectors each.
std::shared_ptr<Sums> sums(std::size_t n, std::int64_t flags) {
  auto all = std::make_shared<Sums>();
  all->rows = fixed(crowd(3 * n, 13));
  all->missing_weights.assign(3 * n, 0);
  all->values.assign(n * kDimension, 0);
  for (std::size_t i = 0; i < 3 * n * kDimension; ++i) {
    all->values[i / (3 * kDimension) * kDimension + i % kDimension] += all->rows[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    all->groups.push_back(
        {all->values.data() + i * kDimension, all->missing_weights.data() + 3 * i, 3, flags});
  }
  return all;
}

Operation absorbing(std::int64_t flags, bool apart) {
  const std::shared_ptr<Sums> all = sums(1, flags);
  return [all, apart](World& world, Digest& digest) {
    Decision decision;
    world.engine->absorb(all->groups, all->rows.data(), apart, &decision);
    digest.add(decision);
  };
}

Operation absorbing_many(std::size_t n) {
  const std::shared_ptr<Sums> all = sums(n, 0);
  auto decisions = std::make_shared<std::vector<Decision>>(n);
  return [all, decisions](World& world, Digest& digest) {
    world.engine->absorb(all->groups, nullptr, false, decisions->data());
    for (const Decision& decision : *decisions) digest.add(decision);
  };
}

Operation noting(std::size_t n) {
  const std::vector<EventRow> rows(n, EventRow{20, 0, 1, 2});
  return [rows](World& world, Digest&) { world.engine->note(rows); };
}

Operation restoring(World& world) {
  World full = begun({});
  world.taken = full.engine->state();
  return [](World& at, Digest&) { at.engine->restore(at.taken); };
}

// Several calls as one change, where the engine has such.

template <class E, class = void>
struct HasChanges : std::false_type {};
template <class E>
struct HasChanges<
    E, std::void_t<decltype(std::declval<E&>().begin()), decltype(std::declval<E&>().commit()),
                   decltype(std::declval<E&>().rollback())>> : std::true_type {};

template <class E, class Work>
void as_one(E& engine, Work work, bool keep = false) {
  if constexpr (HasChanges<E>::value) {
    engine.begin();
    try {
      work();
      engine.commit(keep);
    } catch (...) {
      engine.rollback();
      throw;
    }
  } else {
    work();
  }
}

Operation flagging(World& world) {
  const std::int64_t member = member_of(world, true);
  if (member < 0) return {};
  const std::int64_t number = world.engine->holder(member);
  return [number](World& at, Digest&) { at.engine->flag(number, kLocked); };
}

Operation changing(World& world) {
  const std::int64_t member = member_of(world, true);
  if (member < 0) return {};
  const std::int64_t target = world.engine->holder(member);
  const Fixed row = row_of(world, member);
  const Operation note = noting(3), add = adding(12);
  return [=](World& at, Digest& digest) {
    as_one(*at.engine, [&] {
      note(at, digest);
      at.engine->withdraw(row.data(), 0, target, member);
      digest.add(at.engine->place(row.data(), Order{0, 2, -1, member, kPinned}));
      at.engine->flag(at.engine->holder(member), kLocked);
      add(at, digest);
    });
  };
}

// One change of several calls that `take_back` can take back.
Operation keeping(World& world) {
  const std::int64_t member = member_of(world, true);
  if (member < 0) return {};
  const std::int64_t target = world.engine->holder(member);
  const Fixed row = row_of(world, member);
  const Operation note = noting(3), add = adding(12);
  return [=](World& at, Digest& digest) {
    as_one(
        *at.engine,
        [&] {
          note(at, digest);
          at.engine->withdraw(row.data(), 0, target, member);
          digest.add(at.engine->place(row.data(), Order{0, 2, -1, member, kPinned}));
          add(at, digest);
        },
        true);
  };
}

// Takes back two of three changes that were kept: one of vectors, and one of several calls.
Operation taking_back(World& world) {
  const Operation add = adding(12), several = keeping(world);
  if (!several) return {};
  Digest digest;
  for (int i = 0; i < 2; ++i) as_one(*world.engine, [&] { add(world, digest); }, true);
  several(world, digest);
  return [](World& at, Digest&) { at.engine->take_back(2, EventRow{20, 0, 1, 2}); };
}

// Makes all subclusters a chain of one cluster; then each one a cluster of its own.
Operation regrouping(World& world) {
  const State state = world.engine->state();
  Regrouped chain{{}, state.clusters, {}, {}, {EventRow{20, 0, 1, 2}}, state.free_cluster};
  Regrouped apart{{}, state.clusters, {}, {}, {EventRow{20, 0, 1, 2}}, state.free_cluster};
  for (std::size_t i = 0; i < state.numbers.size(); ++i) {
    chain.clusters[i] = state.clusters[0];
    apart.clusters[i] = apart.free_cluster++;
    if (i == 0) continue;
    chain.edges.push_back({state.numbers[i - 1], state.numbers[i]});
    chain.edge_rules.push_back(i % 2 ? kSettled : kPinned);
  }
  return [=](World& at, Digest&) {
    as_one(*at.engine, [&] {
      at.engine->regroup(chain);
      at.engine->regroup(apart);
    });
  };
}

std::vector<Scenario> scenarios() {
  const Options plain{}, evidence{true, true}, untracked{false};
  const Options empty{true, false, true}, empty_evidence{true, true, true};
  const auto still = [](const Operation& operation) {
    return [operation](World&) { return operation; };
  };
  return {
      {"add one", plain, still(adding(1))},
      {"add a batch", plain, still(adding(12))},
      {"add hundreds", plain, still(adding(500))},
      {"add floats", plain, still(adding_floats(12))},
      {"add by cluster evidence", evidence, still(adding(12))},
      {"add untracked", untracked, still(adding(12))},
      {"add the first", empty, still(adding(12))},
      {"add the first by cluster evidence", empty_evidence, still(adding(12))},
      {"place one of less weight", plain, still(placing({128, -1, -1, -1, kTested}))},
      {"place in a new cluster", plain, still(placing({0, 2, -1, -1, kPinned}))},
      {"place, linked", plain, still(placing({0, 1, 0, -1, kPinned}))},
      {"place, joined", plain, still(placing({0, 0, 0, -1, kTested}))},
      {"place by cluster evidence", evidence, still(placing({64, -1, -1, -1, kTested}))},
      {"withdraw one of several", plain, [](World& w) { return withdrawing(w, true); }},
      {"withdraw the only one", plain, [](World& w) { return withdrawing(w, false); }},
      {"withdraw by cluster evidence", evidence, [](World& w) { return withdrawing(w, true); }},
      {"absorb", plain, still(absorbing(0, false))},
      {"absorb a prototype", plain, still(absorbing(kLocked | kClaim, false))},
      {"absorb apart", plain, still(absorbing(0, true))},
      {"absorb by cluster evidence", evidence, still(absorbing(0, false))},
      {"absorb many", untracked, still(absorbing_many(20))},
      {"flag", plain, flagging},
      {"note", plain, still(noting(300))},
      {"restore", empty, restoring},
      {"restore by cluster evidence", empty_evidence, restoring},
      {"regroup", plain, regrouping},
      {"regroup by cluster evidence", evidence, regrouping},
      {"regroup untracked", untracked, regrouping},
      {"several calls as one change", plain, changing},
      {"several calls by cluster evidence", evidence, changing},
      {"a change that is kept", plain, keeping},
      {"a kept change by cluster evidence", evidence, keeping},
      {"take back", plain, taking_back},
      {"take back by cluster evidence", evidence, taking_back},
  };
}

std::uint64_t go_on(World& world) {
  Digest digest;
  const Fixed rows = fixed(crowd(30, 17));
  std::vector<Decision> decisions(30);
  world.engine->add(rows.data(), 30, decisions.data());
  for (const Decision& decision : decisions) digest.add(decision);
  digest.add(world.engine->place(rows.data(), Order{64, -1, -1, -1, kTested}));
  digest.add(static_cast<std::int64_t>(look(world)));
  return digest.value();
}

}  // namespace
