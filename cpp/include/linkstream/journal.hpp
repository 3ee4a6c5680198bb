// What: the counters that only rise, and the log of events they number.
// Python twin: the counters and `_record` of engine/reference.py.
#pragma once

#include <cstdint>

#include "log.hpp"

namespace linkstream {

struct Journal {
  explicit Journal(std::size_t limit) : log(limit) {}

  EventLog log;
  std::int64_t n_vectors = 0;  // also the sequence number of the vector on its way in
  std::int64_t next_subcluster = 0;
  std::int64_t next_cluster = 0;

  std::int64_t new_subcluster() { return next_subcluster++; }
  std::int64_t new_cluster() { return next_cluster++; }

  template <class... Numbers>
  void record(Code code, Numbers... numbers) {
    EventRow row{static_cast<std::int64_t>(code), n_vectors, -1, -1, -1, -1};
    std::size_t place = 2;
    ((row[place++] = numbers), ...);
    log.append(row);
  }
};

}  // namespace linkstream
