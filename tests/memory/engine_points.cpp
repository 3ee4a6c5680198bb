// Every allocation of every verb of the engine fails, once and for good: after std::bad_alloc the
// engine is as it was before, the same call then does all, and what comes later is the same.
//
// engine_points STRIDE OFFSET START...: of each verb every STRIDE-th allocation, from OFFSET on, on
// an engine that holds START vectors; which tables have to grow depends on that. Each case runs in a
// child of its own, forked from an engine that is ready for it: a crash is seen. One line for each
// verb; the exit code is 1 if anything else was seen. A verb that needs a vector which the engine does
// not hold (START 1 makes no subcluster of several vectors) is skipped at that START; the exit code
// is 1 if a verb is skipped at every START.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "linkstream/engine.hpp"

using namespace linkstream;

// Memory that runs out

namespace {

bool armed = false, for_good = false;
long seen = 0, place = -1;

bool fails() {
  if (!armed) return false;
  const long k = seen++;
  return place >= 0 && (k == place || (for_good && k > place));
}

void* taken(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  if (fails() || posix_memalign(&memory, alignment, size ? size : 1)) return nullptr;
  return memory;
}

void* taken_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = taken(size, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kPlain = alignof(std::max_align_t);

}  // namespace

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return taken(size, alignment);
}
void* operator new(std::size_t n) { return taken_or_throw(n, kPlain); }
void* operator new[](std::size_t n) { return taken_or_throw(n, kPlain); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return taken(n, kPlain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return taken(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a) {
  return taken_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return taken_or_throw(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace {

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
  std::shared_ptr<Kept> kept;
  std::unique_ptr<Engine> engine;
  State taken;  // for `restore`
};

std::uint64_t look(World& world) {
  const State state = world.engine->state();
  Digest digest;
  for (const std::int64_t value :
       {state.n_vectors, state.n_events, state.next_subcluster, state.next_cluster,
        state.free_subcluster, state.free_cluster}) {
    digest.add(value);
  }
  for (const auto* values : {&state.numbers, &state.clusters, &state.counts, &state.first_seen,
                             &state.last_seen, &state.light, &state.flags, &state.sums, &state.firm,
                             &state.vectors}) {
    digest.add(*values);
  }
  digest.add(state.edges);
  digest.add(state.events);
  digest.add(world.engine->labels());
  digest.add(world.engine->n_clusters());
  digest.add(world.engine->n_subclusters());
  if (world.kept) {
    std::vector<std::int64_t> numbers(world.kept->size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    Fixed rows(numbers.size() * kDimension);
    world.kept->read(numbers.data(), numbers.size(), rows.data());
    digest.add(rows);
  }
  return digest.value();
}

// Verbs

struct Options {
  bool tracked = true, evidence = false, empty = false;
  std::size_t start = 60;
};

World made(const Options& options) {
  static const Thresholds thresholds{0.75, 0.9, 0.9};
  World world;
  if (options.tracked) world.kept = std::make_shared<Kept>(kDimension);
  world.engine =
      std::make_unique<Engine>(thresholds, kDimension, options.tracked, options.evidence,
                               *kernel_named("portable"), 1, Skip::kWithinBudget, world.kept);
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

using Verb = std::function<void(World&, Digest&)>;

struct Scenario {
  std::string name;
  Options options;
  std::function<Verb(World&)> prepared;  // empty if the world lacks what the verb needs
};

Verb adding(std::size_t n) {
  const Fixed rows = fixed(crowd(n, 11));
  auto decisions = std::make_shared<std::vector<Decision>>(n);
  return [rows, decisions, n](World& world, Digest& digest) {
    world.engine->add(rows.data(), n, decisions->data());
    for (const Decision& decision : *decisions) digest.add(decision);
  };
}

Verb adding_floats(std::size_t n) {
  const Floats rows = crowd(n, 11);
  const std::vector<double> norms(n, 1.0);
  auto decisions = std::make_shared<std::vector<Decision>>(n);
  return [rows, norms, decisions, n](World& world, Digest& digest) {
    world.engine->add(rows.data(), norms.data(), n, decisions->data());
    for (const Decision& decision : *decisions) digest.add(decision);
  };
}

Verb taking(const Order& order) {
  const Fixed row = fixed(crowd(1, 11));
  return [row, order](World& world, Digest& digest) {
    digest.add(world.engine->take(row.data(), order));
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
  world.kept->read(&member, 1, row.data());
  return row;
}

Verb withdrawing(World& world, bool several) {
  const std::int64_t member = member_of(world, several);
  if (member < 0) return {};
  const std::int64_t target = world.engine->holder(member);
  const Fixed row = row_of(world, member);
  return [=](World& at, Digest&) { at.engine->withdraw(row.data(), 0, target, member); };
}

struct Sums {
  std::vector<std::int64_t> values, lights;
  Fixed rows;
  std::vector<Lot> lots;
};

// Lots of three vectors each.
std::shared_ptr<Sums> sums(std::size_t n, std::int64_t flags) {
  auto all = std::make_shared<Sums>();
  all->rows = fixed(crowd(3 * n, 13));
  all->lights.assign(3 * n, 0);
  all->values.assign(n * kDimension, 0);
  for (std::size_t i = 0; i < 3 * n * kDimension; ++i) {
    all->values[i / (3 * kDimension) * kDimension + i % kDimension] += all->rows[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    all->lots.push_back({all->values.data() + i * kDimension, all->lights.data() + 3 * i, 3, flags});
  }
  return all;
}

Verb receiving(std::int64_t flags, bool apart) {
  const std::shared_ptr<Sums> all = sums(1, flags);
  return [all, apart](World& world, Digest& digest) {
    digest.add(world.engine->receive(all->lots[0], all->rows.data(), apart));
  };
}

Verb receiving_many(std::size_t n) {
  const std::shared_ptr<Sums> all = sums(n, 0);
  auto decisions = std::make_shared<std::vector<Decision>>(n);
  return [all, decisions](World& world, Digest& digest) {
    world.engine->receive(all->lots, decisions->data());
    for (const Decision& decision : *decisions) digest.add(decision);
  };
}

Verb noting(std::size_t n) {
  const std::vector<EventRow> rows(n, EventRow{20, 0, 1, 2});
  return [rows](World& world, Digest&) { world.engine->note(rows); };
}

Verb restoring(World& world) {
  World full = begun({});
  world.taken = full.engine->state();
  return [](World& at, Digest&) { at.engine->restore(at.taken); };
}

// Several calls as one change, where the engine has such.

template <class E, class = void>
struct HasChanges : std::false_type {};
template <class E>
struct HasChanges<E, std::void_t<decltype(std::declval<E&>().begin()),
                                 decltype(std::declval<E&>().commit()),
                                 decltype(std::declval<E&>().rollback())>> : std::true_type {};

template <class E, class Work>
void as_one(E& engine, Work work) {
  if constexpr (HasChanges<E>::value) {
    engine.begin();
    try {
      work();
      engine.commit();
    } catch (...) {
      engine.rollback();
      throw;
    }
  } else {
    work();
  }
}

Verb flagging(World& world) {
  const std::int64_t member = member_of(world, true);
  if (member < 0) return {};
  const std::int64_t number = world.engine->holder(member);
  return [number](World& at, Digest&) { at.engine->flag(number, kLocked); };
}

Verb changing(World& world) {
  const std::int64_t member = member_of(world, true);
  if (member < 0) return {};
  const std::int64_t target = world.engine->holder(member);
  const Fixed row = row_of(world, member);
  const Verb note = noting(3), add = adding(12);
  return [=](World& at, Digest& digest) {
    as_one(*at.engine, [&] {
      note(at, digest);
      at.engine->withdraw(row.data(), 0, target, member);
      digest.add(at.engine->take(row.data(), Order{0, 2, -1, member, kLaw}));
      at.engine->flag(at.engine->holder(member), kLocked);
      add(at, digest);
    });
  };
}

std::vector<Scenario> scenarios() {
  const Options plain{}, whole{true, true}, untracked{false};
  const Options empty{true, false, true}, empty_whole{true, true, true};
  const auto still = [](const Verb& verb) { return [verb](World&) { return verb; }; };
  return {
      {"add one", plain, still(adding(1))},
      {"add a batch", plain, still(adding(12))},
      {"add hundreds", plain, still(adding(500))},
      {"add floats", plain, still(adding_floats(12))},
      {"add by whole clusters", whole, still(adding(12))},
      {"add untracked", untracked, still(adding(12))},
      {"add the first", empty, still(adding(12))},
      {"add the first by whole clusters", empty_whole, still(adding(12))},
      {"take a lighter one", plain, still(taking({128, -1, -1, -1, kLoose}))},
      {"take into a new cluster", plain, still(taking({0, 2, -1, -1, kLaw}))},
      {"take, linked", plain, still(taking({0, 1, 0, -1, kLaw}))},
      {"take, joined", plain, still(taking({0, 0, 0, -1, kLoose}))},
      {"take by whole clusters", whole, still(taking({64, -1, -1, -1, kLoose}))},
      {"withdraw one of several", plain, [](World& w) { return withdrawing(w, true); }},
      {"withdraw the only one", plain, [](World& w) { return withdrawing(w, false); }},
      {"withdraw by whole clusters", whole, [](World& w) { return withdrawing(w, true); }},
      {"receive", plain, still(receiving(0, false))},
      {"receive a prototype", plain, still(receiving(kLocked | kClaim, false))},
      {"receive apart", plain, still(receiving(0, true))},
      {"receive by whole clusters", whole, still(receiving(0, false))},
      {"receive many", untracked, still(receiving_many(20))},
      {"flag", plain, flagging},
      {"note", plain, still(noting(300))},
      {"restore", empty, restoring},
      {"restore by whole clusters", empty_whole, restoring},
      {"several calls as one change", plain, changing},
      {"several calls by whole clusters", whole, changing},
  };
}

std::uint64_t go_on(World& world) {
  Digest digest;
  const Fixed rows = fixed(crowd(30, 17));
  std::vector<Decision> decisions(30);
  world.engine->add(rows.data(), 30, decisions.data());
  for (const Decision& decision : decisions) digest.add(decision);
  digest.add(world.engine->take(rows.data(), Order{64, -1, -1, -1, kLoose}));
  digest.add(static_cast<std::int64_t>(look(world)));
  return digest.value();
}

// Cases, each in a child of its own

struct Expected {
  std::uint64_t before = 0, answer = 0, after = 0, later = 0;
  long total = 0;
};

template <class Answer, class Work>
bool in_child(Answer& answer, int& status, Work work) {
  int ends[2];
  if (pipe(ends)) std::abort();
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    const Answer made = work();
    const bool told = write(ends[1], &made, sizeof made) == sizeof made;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  const bool whole = read(ends[0], &answer, sizeof answer) == sizeof answer;
  close(ends[0]);
  waitpid(pid, &status, 0);
  return whole && status == 0;
}

void arm(long k, bool good) {
  seen = 0;
  place = k;
  for_good = good;
  armed = true;
}

Expected oracle(World& world, const Verb& verb) {
  Expected expected;
  expected.before = look(world);
  Digest digest;
  arm(-1, false);
  verb(world, digest);
  armed = false;
  expected.total = seen;
  expected.answer = digest.value();
  expected.after = look(world);
  expected.later = go_on(world);
  return expected;
}

enum Seen { kBefore, kReturned, kAfter, kOther, kOtherAnswer, kAgainOther, kLaterOther, kRaised };
const char* const kNames[] = {
    "as before",
    "returned",
    "BAD threw, and was done",
    "BAD threw, and is neither before nor after",
    "BAD returned another answer or state",
    "BAD as before, and otherwise when done again",
    "BAD other answers later",
    "BAD threw something else",
};

Seen tried(World& world, const Verb& verb, const Expected& expected, long k, bool good) {
  bool threw = false;
  Digest digest;
  arm(k, good);
  try {
    verb(world, digest);
    armed = false;
  } catch (const std::bad_alloc&) {
    armed = false;
    threw = true;
  } catch (...) {
    armed = false;
    return kRaised;
  }
  if (threw) {
    const std::uint64_t state = look(world);
    if (state == expected.after) return kAfter;
    if (state != expected.before) return kOther;
    digest = Digest();
    verb(world, digest);
    if (digest.value() != expected.answer || look(world) != expected.after) return kAgainOther;
  } else if (digest.value() != expected.answer || look(world) != expected.after) {
    return kOtherAnswer;
  }
  if (go_on(world) != expected.later) return kLaterOther;
  return threw ? kBefore : kReturned;
}

enum class Outcome { kWell, kBad, kSkipped };

// Tries one scenario on an engine that holds `start` vectors.
Outcome run(const Scenario& scenario, std::size_t start, long stride, long offset) {
  Options options = scenario.options;
  options.start = start;
  World world = begun(options);
  const Verb verb = scenario.prepared(world);
  if (!verb) {
    std::printf("  %s: skipped, the engine holds no such vector\n", scenario.name.c_str());
    return Outcome::kSkipped;
  }
  Expected expected;
  int status = 0;
  if (!in_child(expected, status, [&] { return oracle(world, verb); })) {
    std::printf("  %s: BAD no oracle, status %d\n", scenario.name.c_str(), status);
    return Outcome::kBad;
  }
  std::map<std::string, std::pair<long, long>> verdicts;  // how often, and where first
  for (long k = offset % stride; k < expected.total; k += stride) {
    for (const bool good : {false, true}) {
      Seen what = kOther;
      const bool told =
          in_child(what, status, [&] { return tried(world, verb, expected, k, good); });
      const std::string crash =
          WIFSIGNALED(status) ? "BAD crashed" : "BAD stopped by the sanitizer";
      auto& verdict = verdicts.try_emplace(told ? kNames[what] : crash, 0, k).first->second;
      verdict.first += 1;
    }
  }
  bool well = true;
  std::printf("  %s: %ld allocations;", scenario.name.c_str(), expected.total);
  for (const auto& [name, verdict] : verdicts) {
    std::printf(" %s %ld (first at %ld);", name.c_str(), verdict.first, verdict.second);
    well = well && name.compare(0, 3, "BAD") != 0;
  }
  std::printf("\n");
  std::fflush(stdout);
  return well ? Outcome::kWell : Outcome::kBad;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const long stride = std::atol(words[1]), offset = std::atol(words[2]);
  bool well = HasChanges<Engine>::value;
  if (!well) std::printf("BAD the engine has no begin(), commit() and rollback()\n");
  std::map<std::string, bool> ran;
  for (int i = 3; i < count; ++i) {
    const auto start = static_cast<std::size_t>(std::atol(words[i]));
    std::printf("after %zu vectors\n", start);
    std::fflush(stdout);
    for (const Scenario& scenario : scenarios()) {
      const Outcome outcome = run(scenario, start, stride, offset);
      well = well && outcome != Outcome::kBad;
      ran[scenario.name] |= outcome != Outcome::kSkipped;
    }
  }
  for (const auto& [name, at_all] : ran) {
    if (!at_all) std::printf("BAD %s was skipped at every start\n", name.c_str());
    well = well && at_all;
  }
  return well ? 0 : 1;
}
