// What: replaces the edges and clusters of a graph, or of whole clusters; subclusters stay as they are.
// Paper: beyond it (docs/identity.md). Python twin: engine/regroup.py.
// Invariants: a graph that does not fit the subclusters is refused (std::invalid_argument) before
//   anything changes. The result is that of an engine that was restored from such a state. The cost is
//   that of the subclusters that take part.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cluster_sums.hpp"
#include "corrections.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "state.hpp"

namespace linkstream {

// The subclusters that take part, rising, which are all of some clusters; none: those of the whole
// graph. The cluster of each; the edges between them in order of their ends, and their rules; the
// events that led there; the next cluster ID to give.
struct Regrouped {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> clusters;
  std::vector<std::array<std::int64_t, 2>> edges;
  std::vector<std::int64_t> edge_rules;
  std::vector<EventRow> events;
  std::int64_t free_cluster;
};

class Regroup {
 public:
  Regroup(Graph& graph, Journal& journal, ClusterSums& cluster_sums, Corrections& corrections)
      : graph_(graph), journal_(journal), cluster_sums_(cluster_sums), corrections_(corrections) {}

  void operator()(const Regrouped& given) {
    const std::vector<Row> order = rows_of(given);
    std::vector<std::uint32_t> components = components_of(order);
    check(given, order, components);
    replace_edges(given, order);
    move_nodes(given, order, components);
    cluster_sums_.read(components, order);
    close_empty(components);
    if (given.free_cluster > journal_.free_cluster) {
      journal_.next_cluster = journal_.free_cluster = given.free_cluster;
    }
    journal_.newest = std::max<std::int64_t>(journal_.n_vectors - 1, 0);
    for (const EventRow& row : given.events) journal_.log.append(row);
  }

 private:
  // Returns the rows of the subclusters that take part, by their numbers.
  std::vector<Row> rows_of(const Regrouped& given) {
    if (given.numbers.empty()) return rows_by_number(graph_);
    std::vector<Row> order;
    for (std::size_t i = 0; i < given.numbers.size(); ++i) {
      const bool ordered = i == 0 || given.numbers[i - 1] < given.numbers[i];
      refuse_unless(ordered, "subclusters in another order");
      order.push_back(corrections_.live_row(given.numbers[i]));
    }
    refuse_unless(are_whole(order), "clusters of which some subclusters are missing");
    return order;
  }

  // Whether edges lead from some rows to no others.
  bool are_whole(const std::vector<Row>& order) const {
    std::vector<Row> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (const Row row : order) {
      for (const HeldEdge& held : graph_.node(row).edges) {
        const Row other = graph_.forest.other_end(held.edge, row);
        if (!std::binary_search(sorted.begin(), sorted.end(), other)) return false;
      }
    }
    return true;
  }

  // Returns the components of some rows, rising.
  std::vector<std::uint32_t> components_of(const std::vector<Row>& order) const {
    std::vector<std::uint32_t> found;
    for (const Row row : order) found.push_back(graph_.node(row).component);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void check(const Regrouped& given, const std::vector<Row>& order,
             const std::vector<std::uint32_t>& components) const {
    refuse_unless(given.clusters.size() == order.size(), "not one cluster for each subcluster");
    refuse_unless(given.edges.size() == given.edge_rules.size(), "not one rule for each edge");
    refuse_unless(
        given.free_cluster >= journal_.free_cluster && given.free_cluster < std::int64_t{1} << 62,
        "cluster IDs that were given before");
    for (const std::int64_t cluster : given.clusters) {
      refuse_unless(cluster >= 0 && cluster < given.free_cluster, "no such cluster ID");
      const std::uint32_t found = graph_.forest.component_of(cluster);
      refuse_unless(
          found == kNoComponent || std::binary_search(components.begin(), components.end(), found),
          "a cluster of other subclusters");
    }
    for (std::size_t i = 0; i < given.edges.size(); ++i) {
      const auto [a, b] = given.edges[i];
      const bool ordered = i == 0 || given.edges[i - 1] < given.edges[i];
      refuse_unless(a < b && ordered, "edges in another order");
      refuse_unless(row_of(order, a) != kNoRow && row_of(order, b) != kNoRow, "no such subcluster");
      refuse_unless(given.edge_rules[i] >= kTested && given.edge_rules[i] <= kPinned,
                    "no such edge rule");
    }
  }

  Row row_of(const std::vector<Row>& order, std::int64_t number) const {
    const auto found =
        std::lower_bound(order.begin(), order.end(), number,
                         [this](Row row, std::int64_t n) { return graph_.number(row) < n; });
    return found != order.end() && graph_.number(*found) == number ? *found : kNoRow;
  }

  // Removes, holds and adds edges, where the two graphs differ.
  void replace_edges(const Regrouped& given, const std::vector<Row>& order) {
    std::vector<std::size_t> added;
    std::vector<NumberedEdge> later;
    std::size_t next = 0;
    for (const Row row : order) {
      later_edges(graph_, row, later);
      for (const NumberedEdge& old : later) {
        const std::array<std::int64_t, 2> ends{old.a, old.b};
        while (next < given.edges.size() && given.edges[next] < ends) added.push_back(next++);
        if (next == given.edges.size() || given.edges[next] != ends) {
          graph_.forest.remove_edge(old.edge);
        } else {
          const auto rule = static_cast<EdgeRule>(given.edge_rules[next++]);
          if (graph_.forest.rule(old.edge) != rule) graph_.forest.set_rule(old.edge, rule);
        }
      }
    }
    while (next < given.edges.size()) added.push_back(next++);
    for (const std::size_t i : added) {
      graph_.forest.add_edge(row_of(order, given.edges[i][0]), row_of(order, given.edges[i][1]),
                             kAlways, kAlways, static_cast<EdgeRule>(given.edge_rules[i]));
    }
  }

  // Moves the nodes whose cluster changes; adds the components that are new.
  void move_nodes(const Regrouped& given, const std::vector<Row>& order,
                  std::vector<std::uint32_t>& components) {
    Forest& forest = graph_.forest;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t cluster = given.clusters[i];
      if (graph_.cluster(order[i]) == cluster) continue;
      std::uint32_t component = forest.component_of(cluster);
      if (component == kNoComponent) {
        component = forest.open_component(cluster);
        components.push_back(component);
      }
      graph_.move_to(component, order[i]);
    }
    std::sort(components.begin(), components.end());
    graph_.count_components(components, order);
  }

  void close_empty(const std::vector<std::uint32_t>& components) {
    for (const std::uint32_t component : components) {
      if (graph_.forest.components[component].vectors == 0) {
        graph_.forest.close_component(component);
      }
    }
  }

  Graph& graph_;
  Journal& journal_;
  ClusterSums& cluster_sums_;
  Corrections& corrections_;
};

}  // namespace linkstream
