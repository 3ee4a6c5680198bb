// What: the whole state of an engine as plain arrays, for snapshots and for the other engine.
// Python twins: engine/state.py, which also checks states; `columns` and `read` of engine/graph.py.
// Invariants: nodes are in order of their numbers, edges in order of their ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "log.hpp"

namespace linkstream {

struct State {
  std::int64_t n_vectors = 0, n_events = 0, next_subcluster = 0, next_cluster = 0;
  std::int64_t free_subcluster = 0, free_cluster = 0;
  std::vector<std::int64_t> numbers, clusters, counts, first_seen, last_seen, missing_weight, flags;
  std::vector<std::int64_t> sums;  // one row a node
  std::vector<std::array<std::int64_t, 2>> edges;
  std::vector<std::int64_t> edge_rules;
  std::vector<std::int64_t> vectors;
  std::vector<EventRow> events;
};

inline void sort_by_number(std::vector<Row>& rows, const Graph& graph) {
  std::sort(rows.begin(), rows.end(),
            [&](Row a, Row b) { return graph.number(a) < graph.number(b); });
}

// Returns the rows of all nodes, in order of their numbers.
inline std::vector<Row> rows_by_number(const Graph& graph) {
  std::vector<Row> order;
  graph.each_node([&](Row row) { order.push_back(row); });
  sort_by_number(order, graph);
  return order;
}

// An edge by the numbers of its ends, the older first.
struct NumberedEdge {
  std::int64_t a, b;
  Edge edge;
  bool operator<(const NumberedEdge& other) const {
    return a < other.a || (a == other.a && b < other.b);
  }
};

// Lists the edges of a node to younger ones, in order of their numbers.
inline void later_edges(const Graph& graph, Row row, std::vector<NumberedEdge>& found) {
  found.clear();
  const std::int64_t number = graph.number(row);
  for (const HeldEdge& held : graph.node(row).edges) {
    const std::int64_t other = graph.number(graph.forest.other_end(held.edge, row));
    if (number < other) found.push_back({number, other, held.edge});
  }
  std::sort(found.begin(), found.end());
}

// Writes nodes, in order of their numbers, and their edges, so that equal states are equal bytes; no
// sums. Nodes of other clusters may be left out.
inline void write_nodes(State& state, const Graph& graph, const std::vector<Row>& rows) {
  std::vector<NumberedEdge> later;
  for (const Row row : rows) {
    const Node& node = graph.node(row);
    state.numbers.push_back(node.number);
    state.clusters.push_back(graph.cluster(row));
    state.counts.push_back(node.count);
    state.first_seen.push_back(node.first_seen);
    state.last_seen.push_back(node.last_seen);
    state.missing_weight.push_back(node.missing_weight);
    state.flags.push_back(node.flags);
    later_edges(graph, row, later);
    for (const NumberedEdge& edge : later) {
      state.edges.push_back({edge.a, edge.b});
      state.edge_rules.push_back(graph.forest.rule(edge.edge));
    }
  }
}

// Writes the sums of the same nodes.
inline void write_sums(State& state, const Graph& graph, const std::vector<Row>& rows) {
  state.sums.reserve(rows.size() * graph.dimension());
  for (const Row row : rows) {
    const std::int64_t* sum = graph.rows.sum(row);
    state.sums.insert(state.sums.end(), sum, sum + graph.dimension());
  }
}

// Adds the nodes and edges of a state to an empty graph; all edges are due at the first touch.
inline void read_nodes(const State& state, Graph& graph) {
  std::vector<std::int64_t> ids = state.clusters;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const std::int64_t id : ids) graph.forest.open_component(id);
  const std::size_t dimension = graph.dimension();
  for (std::size_t i = 0; i < state.numbers.size(); ++i) {
    const std::int64_t* sum = state.sums.data() + i * dimension;
    const std::int64_t count = state.counts[i];
    const Row row =
        graph.take(state.numbers[i], dot(graph.kernel, sum, count, sum, count, dimension));
    std::copy(sum, sum + dimension, graph.rows.sum(row));
    Node& node = graph.node(row);
    node.count = count;
    node.count_limit = 2 * count;
    node.first_seen = state.first_seen[i];
    node.last_seen = state.last_seen[i];
    node.missing_weight = state.missing_weight[i];
    node.flags = static_cast<std::uint8_t>(state.flags[i]);
    const auto component =
        std::lower_bound(ids.begin(), ids.end(), state.clusters[i]) - ids.begin();
    node.component = static_cast<std::uint32_t>(component);
    ClusterStats& stats = graph.forest.components[node.component];
    stats.vectors += count;
    stats.missing_weight += node.missing_weight;
    stats.claims += node.claims();
    stats.member = row;
    graph.encode(row);
  }
  // Rows of an empty graph are taken in order, here the order of the numbers.
  const auto row_of = [&](std::int64_t number) {
    return static_cast<Row>(std::lower_bound(state.numbers.begin(), state.numbers.end(), number) -
                            state.numbers.begin());
  };
  for (std::size_t i = 0; i < state.edges.size(); ++i) {
    graph.forest.add_edge(row_of(state.edges[i][0]), row_of(state.edges[i][1]), kAlways, kAlways,
                          static_cast<EdgeRule>(state.edge_rules[i]));
  }
}

}  // namespace linkstream
