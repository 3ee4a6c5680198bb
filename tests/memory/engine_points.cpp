// Makes every allocation of every operation of the engine fail, once or from then on. After
// std::bad_alloc the engine must be as before; the same call must then succeed, and later decisions
// must be the same.
//
// engine_points STRIDE OFFSET START...: tests every STRIDE-th allocation of each operation, from OFFSET
// on, on an engine that holds START vectors; START decides which tables have to grow. Each case runs
// in a forked child, so that a crash is reported. Prints one line for each operation. An operation is
// skipped at a START where the engine does not hold the vector it needs (START 1 makes no subcluster
// of several vectors). The exit code is 1 if a case failed or an operation was skipped at every START.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine_operations.hpp"

// Allocations that fail

namespace {

bool armed = false, for_good = false;
long seen = 0, failing = -1;

bool fails() {
  if (!armed) return false;
  const long k = seen++;
  return failing >= 0 && (k == failing || (for_good && k > failing));
}

void* allocated(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  if (fails() || posix_memalign(&memory, alignment, size ? size : 1)) return nullptr;
  return memory;
}

void* allocated_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocated(size, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kPlain = alignof(std::max_align_t);

}  // namespace

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return allocated(size, alignment);
}
void* operator new(std::size_t n) { return allocated_or_throw(n, kPlain); }
void* operator new[](std::size_t n) { return allocated_or_throw(n, kPlain); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocated(n, kPlain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocated(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a) {
  return allocated_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocated_or_throw(n, static_cast<std::size_t>(a));
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
  const bool complete = read(ends[0], &answer, sizeof answer) == sizeof answer;
  close(ends[0]);
  waitpid(pid, &status, 0);
  return complete && status == 0;
}

void arm(long k, bool good) {
  seen = 0;
  failing = k;
  for_good = good;
  armed = true;
}

Expected oracle(World& world, const Operation& operation) {
  Expected expected;
  expected.before = look(world);
  Digest digest;
  arm(-1, false);
  operation(world, digest);
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
    "BAD threw, but the operation was done",
    "BAD threw, and the state is neither that before nor that after",
    "BAD returned another answer or state",
    "BAD as before, but another result when repeated",
    "BAD other decisions later",
    "BAD threw something else",
};

Seen tried(World& world, const Operation& operation, const Expected& expected, long k, bool good) {
  bool threw = false;
  Digest digest;
  arm(k, good);
  try {
    operation(world, digest);
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
    operation(world, digest);
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
  const Operation operation = scenario.prepared(world);
  if (!operation) {
    std::printf("  %s: skipped, the engine holds no such vector\n", scenario.name.c_str());
    return Outcome::kSkipped;
  }
  Expected expected;
  int status = 0;
  if (!in_child(expected, status, [&] { return oracle(world, operation); })) {
    std::printf("  %s: BAD no oracle, status %d\n", scenario.name.c_str(), status);
    return Outcome::kBad;
  }
  std::map<std::string, std::pair<long, long>> verdicts;  // how often, and where first
  for (long k = offset % stride; k < expected.total; k += stride) {
    for (const bool good : {false, true}) {
      Seen what = kOther;
      const bool told =
          in_child(what, status, [&] { return tried(world, operation, expected, k, good); });
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
