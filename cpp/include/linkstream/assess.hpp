// What: the outcome of a vector, and the similarity and threshold that decided it.
// Paper: equations 20, 21 and 25. Python twin: engine/assess.py.
// Numerics: every comparison that decides is between an exact similarity and a threshold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "arrivals.hpp"
#include "cluster_sums.hpp"
#include "graph.hpp"
#include "update.hpp"

namespace linkstream {

enum class Kind : std::int8_t { kJoined, kLinked, kNew, kHeld };

// An outcome, the similarity and threshold that decided it, and the node to join or link to.
struct Verdict {
  Kind kind = Kind::kNew;
  double similarity = kNothing;
  double threshold = kNothing;
  Row partner = kNoRow;
  EdgeRule rule = kTested;  // of the edge of a link; kSettled if cluster evidence decided
};

class Assess {
 public:
  Assess(Graph& graph, ClusterSums& cluster_sums, Update& update, bool cluster_evidence)
      : graph_(graph),
        cluster_sums_(cluster_sums),
        update_(update),
        cluster_evidence_(cluster_evidence) {}

  bool cluster_evidence() const { return cluster_evidence_; }

  // Returns the outcome of a vector, or of a sum of weight k; with `joins` false it does not join.
  template <class Arriving>
  Verdict operator()(const Nearest& nearest, const Arriving& x, double k = 1.0, bool joins = true) {
    const bool any = nearest.row != kNoRow;
    const double t_s = graph_.thresholds.subcluster_similarity;
    if (any && nearest.similarity >= t_s && joins) {  // equation 20
      return {Kind::kJoined, nearest.similarity, t_s, nearest.row};
    }
    if (cluster_evidence_) return assess_clusters(nearest, x, k);
    if (!any) return {};
    const double mass = graph_.node(nearest.row).mass();
    const double threshold = graph_.thresholds.edge(mass, k);  // s~(k_J), equation 25
    if (nearest.similarity >= threshold) {                     // equation 21
      return {Kind::kLinked, nearest.similarity, threshold, nearest.row};
    }
    return {Kind::kNew, nearest.similarity, threshold, kNoRow};
  }

 private:
  // Tests equation 21 with each cluster in J's place (docs/choices.md, "cluster evidence").
  template <class Arriving>
  Verdict assess_clusters(const Nearest& nearest, const Arriving& x, double k) {
    const ClusterSums::Best best = cluster_sums_.best(x, k, nearest.place);
    if (!best.found) return {};
    if (best.similarity - best.threshold < 0) {
      return {Kind::kNew, best.similarity, best.threshold, kNoRow};
    }
    Row partner = nearest.row;
    if (partner == kNoRow || graph_.node(partner).component != best.component) {
      partner = oldest(best.component);
    }
    return {Kind::kLinked, best.similarity, best.threshold, partner, kSettled};
  }

  // Returns the oldest node of a component; notes it, so that the component is walked over once.
  Row oldest(std::uint32_t component) {
    ClusterStats& stats = graph_.forest.components[component];
    if (stats.oldest != kNoRow) return stats.oldest;
    update_.reached(stats.member, std::numeric_limits<std::size_t>::max(), nodes_);
    return stats.oldest = *std::min_element(nodes_.begin(), nodes_.end(), [this](Row a, Row b) {
             return graph_.number(a) < graph_.number(b);
           });
  }

  Graph& graph_;
  ClusterSums& cluster_sums_;
  Update& update_;
  std::vector<Row> nodes_;
  const bool cluster_evidence_;
};

}  // namespace linkstream
