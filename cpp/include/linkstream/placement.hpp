// What: how the graph changes when a vector joins, links, begins a cluster or is withdrawn; empty
//   subclusters vanish.
// Paper: the three outcomes of section 3.3. Python twin: engine/placement.py.
// Invariants: the sum of a node is exactly the sum of the shares of its vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "cluster_sums.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "update.hpp"

namespace linkstream {

// What a vector adds to a sum, what it lacks to the full weight in 256ths, and its number.
struct Contribution {
  const IncomingVector& share;
  std::int64_t missing_weight;
  std::int64_t member;
};

class Placement {
 public:
  Placement(Graph& graph, Journal& journal, Members& members, ClusterSums& cluster_sums,
            Update& update)
      : graph_(graph),
        journal_(journal),
        members_(members),
        cluster_sums_(cluster_sums),
        update_(update) {}

  // Adds a vector to a subcluster, given its product with the sum. A locked one only counts it.
  // Returns the row that then holds it.
  Row join(Row row, const Contribution& part, Integer product) {
    graph_.save(row);
    Node& node = graph_.node(row);
    ClusterStats& stats = graph_.forest.components[node.component];
    const bool locked = node.locked();
    const std::int64_t missing_weight = locked ? kFull : part.missing_weight;
    arrive(Code::kJoined, part.member, node.number, -1, stats.cluster);
    if (locked) {
      node.count += 1;
    } else {
      graph_.add_vector(row, part.share, product);
      cluster_sums_.add(node.component, part.share);
    }
    node.missing_weight += missing_weight;
    node.first_seen = std::min(node.first_seen, part.member);
    node.last_seen = std::max(node.last_seen, part.member);
    stats.vectors += 1;
    stats.missing_weight += missing_weight;
    return locked ? row : update_(row);
  }

  // Starts a subcluster of one vector, with an edge to another; `score` is NaN if the similarity of
  // the two is not known yet.
  Row link(Row partner, const Contribution& part, double score, EdgeRule rule) {
    const Row row = new_node(graph_.node(partner).component, part);
    if (score != score) score = graph_.exact(row, partner);
    graph_.add_edge(row, partner, score, rule);
    arrive(Code::kLinked, part.member, graph_.number(row), graph_.number(partner),
           graph_.cluster(row));
    return row;
  }

  // Starts a subcluster of one vector in a cluster of its own.
  Row create(const Contribution& part) {
    const Row row = new_node(graph_.forest.open_component(journal_.new_cluster()), part);
    arrive(Code::kCreated, part.member, graph_.number(row), -1, graph_.cluster(row));
    return row;
  }

  // Takes a vector's share out of the subcluster that holds it, given its product with the sum.
  void withdraw(Row row, const Contribution& part, Integer product) {
    graph_.save(row);
    Node& node = graph_.node(row);
    ClusterStats& stats = graph_.forest.components[node.component];
    const bool last = node.count == 1, turns = part.share.square != 0;
    journal_.record(Code::kRemoved, part.member, node.number, stats.cluster);
    if (!last && turns) {
      cluster_sums_.take(node.component, part.share);
      graph_.take_vector(row, part.share, product);
    } else {
      node.count -= 1;
    }
    node.missing_weight -= part.missing_weight;
    stats.vectors -= 1;
    stats.missing_weight -= part.missing_weight;
    if (last) {
      vanish(row);
    } else if (turns) {
      update_(row);
    }
  }

  // Sets the flags of a subcluster: kLocked, kClaim, both or none.
  void flag(Row row, std::uint8_t flags) {
    graph_.save(row);
    Node& node = graph_.node(row);
    ClusterStats& stats = graph_.forest.components[node.component];
    stats.claims -= node.claims();
    node.flags = static_cast<std::uint8_t>((node.flags & kDue) | flags);
    stats.claims += node.claims();
    journal_.record(Code::kFlagged, node.number, flags);
  }

 private:
  // Records where a new vector arrived, or where an old one was moved.
  void arrive(Code code, std::int64_t member, std::int64_t number, std::int64_t partner,
              std::int64_t cluster) {
    if (member < journal_.n_vectors) {
      journal_.record(Code::kMoved, member, number, partner, cluster);
    } else if (code == Code::kLinked) {
      journal_.record(code, number, partner, cluster);
    } else {
      journal_.record(code, number, cluster);
    }
  }

  Row new_node(std::uint32_t component, const Contribution& part) {
    const Row row = graph_.take(journal_.new_subcluster(), part.share.square);
    Node& node = graph_.node(row);
    node.count = 1;
    node.count_limit = 2;
    node.missing_weight = part.missing_weight;
    node.first_seen = node.last_seen = part.member;
    node.component = component;
    graph_.forest.save_stats(component);
    cluster_sums_.add(component, part.share);
    graph_.forest.components[component].member = row;
    graph_.forest.components[component].vectors += 1;
    graph_.forest.components[component].missing_weight += part.missing_weight;
    std::copy(part.share.q, part.share.q + graph_.dimension(), graph_.rows.sum(row));
    graph_.encode(row);
    members_.created();
    return row;
  }

  // Removes an empty subcluster; its edges move to its heir, which is then updated.
  void vanish(Row row) {
    Node& node = graph_.node(row);
    const std::uint32_t component = node.component;
    ClusterStats& stats = graph_.forest.components[component];
    const std::int64_t number = node.number, cluster = stats.cluster;
    Edge tie = 0;
    const Row heir = heir_of(row, tie);
    stats.missing_weight -= node.missing_weight;
    stats.claims -= node.claims();
    if (heir != kNoRow) {
      cluster_sums_.take(component, row);
      graph_.forest.remove_edge(tie);
      stats.member = heir;
      if (stats.oldest == row) stats.oldest = kNoRow;
      while (!node.edges.empty()) graph_.forest.move_edge(node.edges.back().edge, row, heir);
    } else {
      cluster_sums_.close(component);
      graph_.forest.close_component(component);
    }
    graph_.release(row);
    graph_.bars.vanished(number);
    const std::int64_t left_to = heir == kNoRow ? -1 : graph_.number(heir);
    journal_.record(Code::kVanished, number, left_to, cluster);
    if (heir != kNoRow) update_(heir);
  }

  // Returns a neighbour by an edge that is not pinned, if there is one; of these the one with the most
  // vectors (tie: the older). `tie` is the edge to it.
  Row heir_of(Row row, Edge& tie) const {
    Row found = kNoRow;
    const auto claim = [&](Edge edge) {
      const Node& other = graph_.node(graph_.forest.other_end(edge, row));
      return std::make_tuple(graph_.forest.rule(edge) != kPinned, other.count, -other.number);
    };
    for (const HeldEdge& held : graph_.node(row).edges) {
      if (found != kNoRow && claim(held.edge) < claim(tie)) continue;
      found = graph_.forest.other_end(held.edge, row);
      tie = held.edge;
    }
    return found;
  }

  Graph& graph_;
  Journal& journal_;
  Members& members_;
  ClusterSums& cluster_sums_;
  Update& update_;
};

}  // namespace linkstream
