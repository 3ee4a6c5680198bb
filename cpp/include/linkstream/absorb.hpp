// What: vectors that arrive as one sum, as a subcluster of another clusterer does.
// Paper: equations 20 and 21 with s~(k, k') for the k' of them. Python twin: engine/absorb.py.
// Invariants: the sum of a node is exactly the sum of the shares of its vectors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arrivals.hpp"
#include "assess.hpp"
#include "cluster_sums.hpp"
#include "forest.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "update.hpp"

namespace linkstream {

class Absorb {
 public:
  Absorb(Graph& graph, Search& search, Journal& journal, Members& members,
         ClusterSums& cluster_sums, Assess& assess)
      : arrivals(graph, search),
        graph_(graph),
        journal_(journal),
        members_(members),
        cluster_sums_(cluster_sums),
        assess_(assess) {}

  Arrivals<IncomingSum> arrivals;

  // Returns the outcome of one sum of the block; a locked subcluster neither joins nor is joined.
  Verdict test(std::size_t index, bool locked) {
    const IncomingSum& x = arrivals[index];
    const Nearest found = arrivals.nearest(index);
    const double k = mass(x.n, x.missing_weight);
    const bool joins = !locked && (found.row == kNoRow || !graph_.node(found.row).locked());
    return assess_(found, x, k, joins);
  }

  // Adds the vectors to one subcluster and records each. Returns the row; the caller updates it.
  Row put(const Verdict& verdict, const IncomingSum& x, const std::int64_t* missing_weights) {
    const std::int64_t first = journal_.n_vectors;
    const bool joined = verdict.kind == Kind::kJoined;
    const Row row = joined ? join(verdict.partner, x) : make(verdict, x);
    const std::int64_t number = graph_.number(row), cluster = graph_.cluster(row);
    for (std::int64_t i = 0; i < x.n; ++i) {
      journal_.newest = first + i;
      if (missing_weights[i]) journal_.record(Code::kWeighed, kFull - missing_weights[i]);
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
  Row join(Row row, const IncomingSum& x) {
    Node& node = graph_.node(row);
    ClusterStats& stats = graph_.forest.components[node.component];
    cluster_sums_.add(node.component, x);
    graph_.add_sum(row, x, graph_.product(x, graph_.rows.sum(row), node.count));
    node.missing_weight += x.missing_weight;
    node.first_seen = std::min(node.first_seen, journal_.n_vectors);
    node.last_seen = std::max(node.last_seen, journal_.n_vectors + x.n - 1);
    stats.vectors += x.n;
    stats.missing_weight += x.missing_weight;
    return row;
  }

  Row make(const Verdict& verdict, const IncomingSum& x) {
    const bool alone = verdict.partner == kNoRow;
    const std::uint32_t component = alone ? graph_.forest.open_component(journal_.new_cluster())
                                          : graph_.node(verdict.partner).component;
    const Row row = graph_.take(journal_.new_subcluster(), x.square);
    Node& node = graph_.node(row);
    node.count = x.n;
    node.count_limit = 2 * x.n;
    node.missing_weight = x.missing_weight;
    node.first_seen = journal_.n_vectors;
    node.last_seen = journal_.n_vectors + x.n - 1;
    node.component = component;
    graph_.forest.save_stats(component);
    cluster_sums_.add(component, x);
    graph_.forest.components[component].member = row;
    graph_.forest.components[component].vectors += x.n;
    graph_.forest.components[component].missing_weight += x.missing_weight;
    std::copy(x.sum, x.sum + graph_.dimension(), graph_.rows.sum(row));
    graph_.encode(row);
    members_.created();
    if (!alone) {
      graph_.add_edge(row, verdict.partner, graph_.exact(row, verdict.partner), verdict.rule);
    }
    return row;
  }

  Graph& graph_;
  Journal& journal_;
  Members& members_;
  ClusterSums& cluster_sums_;
  Assess& assess_;
};

}  // namespace linkstream
