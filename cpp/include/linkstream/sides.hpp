// What: finds the two sides of a cut without walking all of the larger one.
// Paper: "severing a cluster in two", section 3.4. Python twin: `part_of` of engine/forest.py.
// Invariants: both sides are walked in turn, an edge at a time, until one is exhausted.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph.hpp"

namespace linkstream {

class Sides {
 public:
  explicit Sides(Graph& graph) : graph_(graph) {}

  // An edge between these two has just been removed.
  void find(Row row, Row partner) {
    const std::uint32_t mark = next_mark();
    start(walks_[0], row, mark);
    start(walks_[1], partner, mark + 1);
    for (int turn = 0;; turn ^= 1) {
      if (step(walks_[turn])) continue;
      listed_ = &walks_[turn];
      listed_is_cut_off = turn == 1;
      return;
    }
  }

  // Lists the nodes that edges connect to one. Returns false if there are more than `limit`.
  bool list(Row start, std::size_t limit, std::vector<Row>& nodes) {
    Walk& walk = walks_[0];
    this->start(walk, start, next_mark());
    while (walk.nodes.size() <= limit && step(walk)) {
    }
    const bool all = walk.nodes.size() <= limit;
    if (all) nodes = walk.nodes;
    return all;
  }

  // Returns the nodes of the side that was walked to its end.
  const std::vector<Row>& listed() const { return listed_->nodes; }
  bool is_listed(Row row) const { return graph_.node(row).mark == listed_->mark; }

  bool listed_is_cut_off = false;  // the side of the partner, not of the touched node

 private:
  struct Walk {
    std::vector<Row> nodes;
    std::uint32_t mark = 0;
    std::size_t node = 0;
    std::size_t edge = 0;
  };

  // Returns a mark; no node has this mark or the next one.
  std::uint32_t next_mark() {
    if (marks_ >= std::numeric_limits<std::uint32_t>::max() - 4) {
      graph_.each_node([this](Row row) { graph_.node(row).mark = 0; });
      marks_ = 0;
    }
    return marks_ += 2;
  }

  void start(Walk& walk, Row row, std::uint32_t mark) {
    walk.nodes.assign(1, row);
    walk.mark = mark;
    walk.node = walk.edge = 0;
    graph_.node(row).mark = mark;
  }

  // Follows one edge. Returns false if there is none left.
  bool step(Walk& walk) {
    for (; walk.node < walk.nodes.size(); ++walk.node, walk.edge = 0) {
      const Row row = walk.nodes[walk.node];
      const std::vector<HeldEdge>& edges = graph_.node(row).edges;
      if (walk.edge == edges.size()) continue;
      const Row other = graph_.forest.other_end(edges[walk.edge++].edge, row);
      if (graph_.node(other).mark != walk.mark) {
        graph_.node(other).mark = walk.mark;
        walk.nodes.push_back(other);
      }
      return true;
    }
    return false;
  }

  Graph& graph_;
  Walk walks_[2];
  const Walk* listed_ = nullptr;
  std::uint32_t marks_ = 0;
};

}  // namespace linkstream
