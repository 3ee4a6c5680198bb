// What: the event log and the counters that number vectors, subclusters and clusters; they only rise.
// Python twin: `Journal` of engine/log.py.
#pragma once

#include <cstdint>

#include "log.hpp"

namespace linkstream {

struct Counters {
  std::int64_t n_vectors = 0;
  std::int64_t newest = 0;           // the vector being added, or the newest: the vector of events
  std::int64_t next_subcluster = 0;  // subclusters created so far
  std::int64_t next_cluster = 0;
  std::int64_t free_subcluster = 0;  // the next numbers to give
  std::int64_t free_cluster = 0;
};

struct Journal : Counters {
  explicit Journal(std::size_t limit) : log(limit) {}

  EventLog log;

  // Changes

  void begin() {
    before_ = *this;
    log.begin();
  }
  void commit() { log.commit(); }
  bool has_events() const { return log.has_new(); }

  // Returns the counters before the open change.
  const Counters& before() const { return before_; }

  // Takes the counters of a change back, but neither its events nor the numbers that it gave.
  void take_back(const Counters& before) {
    n_vectors = before.n_vectors;
    next_subcluster = before.next_subcluster;
    next_cluster = before.next_cluster;
  }
  void rollback() {
    static_cast<Counters&>(*this) = before_;
    log.rollback();
  }

  std::int64_t new_subcluster() { return given(free_subcluster, next_subcluster); }
  std::int64_t new_cluster() { return given(free_cluster, next_cluster); }

  template <class... Numbers>
  void record(Code code, Numbers... numbers) {
    EventRow row{static_cast<std::int64_t>(code), newest, -1, -1, -1, -1};
    std::size_t column = 2;
    ((row[column++] = numbers), ...);
    log.append(row);
  }

 private:
  static std::int64_t given(std::int64_t& free, std::int64_t& next) {
    const std::int64_t number = free;
    next = free = number + 1;
    return number;
  }

  Counters before_;  // the counters before the open change
};

}  // namespace linkstream
