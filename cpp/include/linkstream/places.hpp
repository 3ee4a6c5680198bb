// What: what happens to the graph once it is known where a vector goes, or that it goes: it joins, is
//   linked, begins a cluster, is withdrawn; subclusters that are empty vanish.
// Paper: the three outcomes of section 3.3; the rest is a person's side. Python twin: `_place` and
//   below, `withdraw`, `_vanish` and `flag` in engine/reference.py.
// Invariants: the sum of a node is exactly that of the shares of its vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "update.hpp"
#include "wholes.hpp"

namespace linkstream {

// What a vector adds to a sum, how much less than a full one it weighs, and its number.
struct Part {
  const Incoming& share;
  std::int64_t light;
  std::int64_t member;
};

class Places {
 public:
  Places(Graph& graph, Journal& journal, Members& members, Wholes& wholes, Update& update)
      : graph_(graph), journal_(journal), members_(members), wholes_(wholes), update_(update) {}

  // Adds a vector to a subcluster, given its product with the sum. A locked one only counts it.
  // Returns the row that holds it in the end.
  Row join(Row row, const Part& part, Integer product) {
    graph_.save(row);
    Node& node = graph_.node(row);
    Component& whole = graph_.forest.components[node.component];
    const bool locked = node.locked();
    const std::int64_t light = locked ? kFull : part.light;
    arrive(Code::kJoined, part.member, node.number, -1, whole.cluster);
    if (locked) {
      node.count += 1;
    } else {
      graph_.add_vector(row, part.share, product);
      wholes_.add(node.component, part.share);
    }
    node.light += light;
    node.first_seen = std::min(node.first_seen, part.member);
    node.last_seen = std::max(node.last_seen, part.member);
    whole.vectors += 1;
    whole.light += light;
    return locked ? row : update_(row);
  }

  // Starts a subcluster containing just one vector, with an edge to another; `score` is NaN where
  // the similarity of the two is not known yet.
  Row link(Row partner, const Part& part, double score, Firmness firm) {
    const Row row = new_node(graph_.node(partner).component, part);
    if (score != score) score = graph_.exact(row, partner);
    graph_.add_edge(row, partner, score, firm);
    arrive(Code::kLinked, part.member, graph_.number(row), graph_.number(partner),
           graph_.cluster(row));
    return row;
  }

  // Starts a subcluster containing just one vector, in a cluster of its own.
  Row create(const Part& part) {
    const Row row = new_node(graph_.forest.open_component(journal_.new_cluster()), part);
    arrive(Code::kCreated, part.member, graph_.number(row), -1, graph_.cluster(row));
    return row;
  }

  // Takes a vector's share out of the subcluster that holds it, given its product with the sum.
  void withdraw(Row row, const Part& part, Integer product) {
    graph_.save(row);
    Node& node = graph_.node(row);
    Component& whole = graph_.forest.components[node.component];
    const bool last = node.count == 1, turns = part.share.square != 0;
    journal_.record(Code::kRemoved, part.member, node.number, whole.cluster);
    if (!last && turns) {
      wholes_.take(node.component, part.share);
      graph_.take_vector(row, part.share, product);
    } else {
      node.count -= 1;
    }
    node.light -= part.light;
    whole.vectors -= 1;
    whole.light -= part.light;
    if (last) {
      vanish(row);
    } else if (turns) {
      update_(row);
    }
  }

  // Locks a subcluster, or gives it a claim to the ID at a split, or neither.
  void flag(Row row, std::uint8_t flags) {
    graph_.save(row);
    Node& node = graph_.node(row);
    Component& whole = graph_.forest.components[node.component];
    whole.claims -= node.claims();
    node.flags = flags;
    whole.claims += node.claims();
    journal_.record(Code::kFlagged, node.number, flags);
  }

 private:
  // Records where a vector came to: a new one, or one that was moved.
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

  Row new_node(std::uint32_t component, const Part& part) {
    const Row row = graph_.take(journal_.new_subcluster(), part.share.square);
    Node& node = graph_.node(row);
    node.count = 1;
    node.count_limit = 2;
    node.light = part.light;
    node.first_seen = node.last_seen = part.member;
    node.component = component;
    wholes_.add(component, part.share);
    graph_.forest.components[component].vectors += 1;
    graph_.forest.components[component].light += part.light;
    std::copy(part.share.q, part.share.q + graph_.dimension(), graph_.rows.sum(row));
    graph_.encode(row);
    members_.born();
    return row;
  }

  // An empty subcluster goes; its edges become those of its heir, which looks at them.
  void vanish(Row row) {
    Node& node = graph_.node(row);
    const std::uint32_t component = node.component;
    Component& whole = graph_.forest.components[component];
    const std::int64_t number = node.number, cluster = whole.cluster;
    Edge tie = 0;
    const Row heir = nearest_of_kin(row, tie);
    whole.light -= node.light;
    whole.claims -= node.claims();
    if (heir != kNoRow) {
      wholes_.take(component, row);
      graph_.forest.remove_edge(tie);
      while (!node.edges.empty()) graph_.forest.move_edge(node.edges.back().edge, row, heir);
    } else {
      wholes_.close(component);
      graph_.forest.close_component(component);
    }
    graph_.release(row);
    const std::int64_t left_to = heir == kNoRow ? -1 : graph_.number(heir);
    journal_.record(Code::kVanished, number, left_to, cluster);
    if (heir != kNoRow) update_(heir);
  }

  // The neighbour by likeness, if there is one, not by law; of these the one with the most vectors
  // (tie: the older), and the edge to it.
  Row nearest_of_kin(Row row, Edge& tie) const {
    Row found = kNoRow;
    const auto claim = [&](Edge edge) {
      const Node& other = graph_.node(graph_.forest.other_end(edge, row));
      return std::make_tuple(graph_.forest.firmness(edge) != kLaw, other.count, -other.number);
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
  Wholes& wholes_;
  Update& update_;
};

}  // namespace linkstream
