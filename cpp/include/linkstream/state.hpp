// What: the engine's whole state as plain arrays: what snapshots and the other engine exchange.
// Python twin: engine/state.py, which also checks it. Nodes by number, edges by their ends.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "log.hpp"

namespace linkstream {

struct State {
  std::int64_t n_vectors = 0, n_events = 0, next_subcluster = 0, next_cluster = 0;
  std::vector<std::int64_t> numbers, clusters, counts, first_seen, last_seen;
  std::vector<std::int64_t> sums;  // one row a node
  std::vector<std::array<std::int64_t, 2>> edges;
  std::vector<std::int64_t> vectors;
  std::vector<EventRow> events;
};

}  // namespace linkstream
