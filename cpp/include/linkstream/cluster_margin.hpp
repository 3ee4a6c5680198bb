// What: the cluster margin of a vector, the evidence for the probability that a decision is right.
// Paper: equation 24. Python twin: engine/cluster_margin.py.
// Numerics: exact sums; the order of operations is that of the twin.
#pragma once

#include <cstddef>

#include "arrivals.hpp"
#include "assess.hpp"
#include "cluster_sums.hpp"
#include "graph.hpp"

namespace linkstream {

class ClusterMargin {
 public:
  ClusterMargin(const Graph& graph, ClusterSums& cluster_sums, Arrivals<IncomingVector>& arrivals,
                bool cluster_evidence)
      : graph_(graph),
        cluster_sums_(cluster_sums),
        arrivals_(arrivals),
        cluster_evidence_(cluster_evidence) {}

  void set(bool on) {
    on_ = on;
    if (on) cluster_sums_.keep();
  }

  // Returns the margin of the vector of a block that was assessed and is not yet added; NaN unless on.
  double operator()(const Verdict& verdict, const Nearest& nearest, std::size_t index) {
    if (!on_) return kNothing;
    if (verdict.partner != kNoRow) {
      if (verdict.partner == nearest.row && is_alone(nearest.row)) return of_one(nearest, index);
      return margin(verdict.partner, index);
    }
    if (cluster_evidence_) return cluster_sums_.greatest_margin(arrivals_[index]);
    const Row row = nearest.row != kNoRow ? nearest.row : arrivals_.nearest_of_all(index).row;
    return row == kNoRow ? kNothing : margin(row, index);
  }

 private:
  // Whether a subcluster holds all vectors of its cluster: the sums of both are the same.
  bool is_alone(Row row) const {
    const Node& node = graph_.node(row);
    return node.count == graph_.forest.components[node.component].vectors;
  }

  // The same margin from what is known of the subcluster.
  double of_one(const Nearest& nearest, std::size_t index) {
    const Node& node = graph_.node(nearest.row);
    if (node.square == 0) return kNothing;
    cluster_sums_.know(node.component, arrivals_[index], nearest.product);
    return nearest.similarity - graph_.thresholds.edge(node.mass(), 1.0);
  }

  double margin(Row row, std::size_t index) {
    return cluster_sums_.margin(graph_.node(row).component, arrivals_[index]);
  }

  const Graph& graph_;
  ClusterSums& cluster_sums_;
  Arrivals<IncomingVector>& arrivals_;
  const bool cluster_evidence_;
  bool on_ = false;
};

}  // namespace linkstream
