// What: converts a state from and to a Python dict of arrays, and checks that it is safe to restore.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "linkstream/engine.hpp"

namespace linkstream {

// Returns a state without its sums, vectors and events.
inline nb::dict outline_of(const State& state) {
  nb::dict result;
  if (!result.is_valid()) throw nb::python_error();  // no memory
  result["n_vectors"] = state.n_vectors;
  result["n_events"] = state.n_events;
  result["next_subcluster"] = state.next_subcluster;
  result["next_cluster"] = state.next_cluster;
  result["free_subcluster"] = state.free_subcluster;
  result["free_cluster"] = state.free_cluster;
  result["numbers"] = column(state.numbers);
  result["clusters"] = column(state.clusters);
  result["counts"] = column(state.counts);
  result["first_seen"] = column(state.first_seen);
  result["last_seen"] = column(state.last_seen);
  result["missing_weight"] = column(state.missing_weight);
  result["flags"] = column(state.flags);
  result["edges"] = table<2>(state.edges);
  result["edge_rules"] = column(state.edge_rules);
  return result;
}

inline nb::dict dict_of(const State& state, std::size_t dimension) {
  nb::dict result = outline_of(state);
  Array<std::int64_t> sums({state.numbers.size(), dimension});
  std::copy(state.sums.begin(), state.sums.end(), sums.data());
  result["sums"] = std::move(sums);
  result["vectors"] = column(state.vectors);
  result["events"] = table<kEventWidth>(state.events);
  return result;
}

inline std::vector<std::int64_t> taken(const nb::dict& given, const char* name) {
  const nb::object value = given[name];
  Given<const std::int64_t, 0> array(value);
  if (!array.opens()) {
    throw nb::type_error((std::string(name) + " is no array of int64").c_str());
  }
  return {array.data(), array.data() + array.size()};
}

template <std::size_t Width>
std::vector<std::array<std::int64_t, Width>> rows_of(const std::int64_t* flat, std::size_t size) {
  if (size % Width) throw nb::value_error("rows of another width");
  std::vector<std::array<std::int64_t, Width>> rows(size / Width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(flat + i * Width, Width, rows[i].begin());
  }
  return rows;
}

template <std::size_t Width>
std::vector<std::array<std::int64_t, Width>> taken_rows(const nb::dict& given, const char* name) {
  const std::vector<std::int64_t> flat = taken(given, name);
  return rows_of<Width>(flat.data(), flat.size());
}

inline State state_of(const nb::dict& given) {
  State state;
  state.n_vectors = nb::cast<std::int64_t>(given["n_vectors"]);
  state.n_events = nb::cast<std::int64_t>(given["n_events"]);
  state.next_subcluster = nb::cast<std::int64_t>(given["next_subcluster"]);
  state.next_cluster = nb::cast<std::int64_t>(given["next_cluster"]);
  state.free_subcluster = nb::cast<std::int64_t>(given["free_subcluster"]);
  state.free_cluster = nb::cast<std::int64_t>(given["free_cluster"]);
  state.numbers = taken(given, "numbers");
  state.clusters = taken(given, "clusters");
  state.counts = taken(given, "counts");
  state.first_seen = taken(given, "first_seen");
  state.last_seen = taken(given, "last_seen");
  state.missing_weight = taken(given, "missing_weight");
  state.flags = taken(given, "flags");
  state.sums = taken(given, "sums");
  state.vectors = taken(given, "vectors");
  state.edges = taken_rows<2>(given, "edges");
  state.edge_rules = taken(given, "edge_rules");
  state.events = taken_rows<kEventWidth>(given, "events");
  return state;
}

inline bool within(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}

inline bool sizes_fit(const State& state, std::size_t dimension, bool track_vectors) {
  const std::size_t n = state.numbers.size();
  for (const auto* column : {&state.clusters, &state.counts, &state.first_seen, &state.last_seen,
                             &state.missing_weight, &state.flags}) {
    if (column->size() != n) return false;
  }
  const auto vectors = static_cast<std::size_t>(state.n_vectors);
  return state.n_vectors >= 0 && state.sums.size() == n * dimension &&
         state.edge_rules.size() == state.edges.size() &&
         state.vectors.size() == (track_vectors ? vectors : 0);
}

inline bool counters_fit(const State& state) {
  return state.n_vectors <= kVectorsMax && state.next_subcluster >= 0 && state.next_cluster >= 0 &&
         state.next_subcluster <= state.free_subcluster &&
         state.free_subcluster <= kSubclustersMax && state.next_cluster <= state.free_cluster &&
         state.free_cluster < std::int64_t{1} << 62 && state.n_events < std::int64_t{1} << 62 &&
         state.n_events >= static_cast<std::int64_t>(state.events.size());
}

inline bool nodes_fit(const State& state) {
  const auto live = [&](std::int64_t number) {
    return std::binary_search(state.numbers.begin(), state.numbers.end(), number);
  };
  const auto lives = [&](const std::array<std::int64_t, 2>& edge) {
    return edge[0] < edge[1] && live(edge[0]) && live(edge[1]);
  };
  for (std::size_t i = 0; i < state.numbers.size(); ++i) {
    if (i && state.numbers[i] <= state.numbers[i - 1]) return false;
    const bool fits = within(state.numbers[i], 0, state.next_subcluster - 1) &&
                      within(state.counts[i], 1, kVectorsMax) &&
                      within(state.missing_weight[i], 0, kFull * state.counts[i]) &&
                      within(state.flags[i], 0, kLocked | kClaim | kDue);
    if (!fits) return false;
  }
  return std::all_of(state.vectors.begin(), state.vectors.end(),
                     [&](std::int64_t number) { return number == -1 || live(number); }) &&
         std::all_of(state.edges.begin(), state.edges.end(), lives) &&
         std::all_of(state.edge_rules.begin(), state.edge_rules.end(),
                     [](std::int64_t rule) { return within(rule, kTested, kPinned); });
}

// Checks what the engine needs to stay within its memory; state.py checks the rest.
inline bool hangs_together(const State& state, std::size_t dimension, bool track_vectors) {
  return sizes_fit(state, dimension, track_vectors) && counters_fit(state) && nodes_fit(state);
}

}  // namespace linkstream
