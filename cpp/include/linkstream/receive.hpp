// What: vectors that come together, as a subcluster of another clusterer; by their sum.
// Paper: equations 20 and 21 with s~(k, k') for the k' of them. Python twin: `receive` of
//   engine/hands.py.
// Invariants: what cannot be is refused before anything changes; the sum of a node stays exactly that
//   of the shares of its vectors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arrivals.hpp"
#include "assess.hpp"
#include "forest.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "update.hpp"
#include "wholes.hpp"

namespace linkstream {

class Receive {
 public:
  Receive(Graph& graph, Search& search, Journal& journal, Members& members, Wholes& wholes,
          Assess& assess)
      : arrivals(graph, search),
        graph_(graph),
        journal_(journal),
        members_(members),
        wholes_(wholes),
        assess_(assess) {}

  Arrivals<Together> arrivals;

  // What the tests say of one of the block; a locked subcluster neither joins nor is joined.
  Verdict test(std::size_t index, bool locked) {
    const Together& x = arrivals[index];
    const Nearest found = arrivals.nearest(index);
    const double k = mass(x.n, x.light);
    const bool joins = !locked && (found.row == kNoRow || !graph_.node(found.row).locked());
    return assess_(found, x, k, joins);
  }

  // Has a subcluster hold them, and records where each came to; the row. Nothing follows yet.
  Row put(const Verdict& verdict, const Together& x, const std::int64_t* lights) {
    const std::int64_t first = journal_.n_vectors;
    const bool joined = verdict.kind == Kind::kJoined;
    const Row row = joined ? join(verdict.partner, x) : make(verdict, x);
    const std::int64_t number = graph_.number(row), cluster = graph_.cluster(row);
    for (std::int64_t i = 0; i < x.n; ++i) {
      journal_.newest = first + i;
      if (lights[i]) journal_.record(Code::kWeighed, kFull - lights[i]);
      if (i > 0 || joined) {
        journal_.record(Code::kJoined, number, cluster);
      } else if (verdict.partner == kNoRow) {
        journal_.record(Code::kCreated, number, cluster);
      } else {
        journal_.record(Code::kLinked, number, graph_.number(verdict.partner), cluster);
      }
      members_.joined(number);
    }
    journal_.n_vectors += x.n;
    return row;
  }

 private:
  Row join(Row row, const Together& x) {
    Node& node = graph_.node(row);
    Component& whole = graph_.forest.components[node.component];
    wholes_.add(node.component, x);
    graph_.add_sum(row, x, graph_.product(x, graph_.rows.sum(row), node.count));
    node.light += x.light;
    node.first_seen = std::min(node.first_seen, journal_.n_vectors);
    node.last_seen = std::max(node.last_seen, journal_.n_vectors + x.n - 1);
    whole.vectors += x.n;
    whole.light += x.light;
    return row;
  }

  Row make(const Verdict& verdict, const Together& x) {
    const bool alone = verdict.partner == kNoRow;
    const std::uint32_t component = alone ? graph_.forest.open_component(journal_.new_cluster())
                                          : graph_.node(verdict.partner).component;
    const Row row = graph_.take(journal_.new_subcluster(), x.square);
    Node& node = graph_.node(row);
    node.count = x.n;
    node.count_limit = 2 * x.n;
    node.light = x.light;
    node.first_seen = journal_.n_vectors;
    node.last_seen = journal_.n_vectors + x.n - 1;
    node.component = component;
    wholes_.add(component, x);
    graph_.forest.components[component].vectors += x.n;
    graph_.forest.components[component].light += x.light;
    std::copy(x.sum, x.sum + graph_.dimension(), graph_.rows.sum(row));
    graph_.encode(row);
    members_.born();
    if (!alone) {
      graph_.add_edge(row, verdict.partner, graph_.exact(row, verdict.partner), verdict.firm);
    }
    return row;
  }

  Graph& graph_;
  Journal& journal_;
  Members& members_;
  Wholes& wholes_;
  Assess& assess_;
};

}  // namespace linkstream
