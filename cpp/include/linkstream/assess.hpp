// What: which of the three outcomes a vector has, and what it was judged by.
// Paper: equations 20, 21 and 25. Python twin: `_assess` and `_assess_wholes` of engine/reference.py.
// Numerics: every comparison that decides is between an exact similarity and a threshold.
#pragma once

#include <cstdint>

#include "arrivals.hpp"
#include "graph.hpp"
#include "wholes.hpp"

namespace linkstream {

enum class Kind : std::int8_t { kJoined, kLinked, kNew };

// Which outcome, by which similarity and threshold; whom to join or to link to.
struct Verdict {
  Kind kind = Kind::kNew;
  double similarity = kNothing;
  double threshold = kNothing;
  Row partner = kNoRow;
  Firmness firm = kLoose;  // the edge of a link: where whole clusters gave the evidence it is firm
};

class Assess {
 public:
  Assess(const Graph& graph, Wholes& wholes) : graph_(graph), wholes_(wholes) {}

  // Of a vector; or of k together, which may be barred from joining.
  template <class Arriving>
  Verdict operator()(const Nearest& nearest, const Arriving& x, double k = 1.0, bool joins = true) {
    const bool any = nearest.row != kNoRow;
    const double t_s = graph_.thresholds.subcluster_similarity;
    if (any && nearest.similarity >= t_s && joins) {  // equation 20
      return {Kind::kJoined, nearest.similarity, t_s, nearest.row};
    }
    if (wholes_.on()) return assess_wholes(nearest, x, k);
    if (!any) return {};
    const double mass = graph_.node(nearest.row).mass();
    const double threshold = graph_.thresholds.edge(mass, k);  // s~(k_J), equation 25
    if (nearest.similarity >= threshold) {                     // equation 21
      return {Kind::kLinked, nearest.similarity, threshold, nearest.row};
    }
    return {Kind::kNew, nearest.similarity, threshold, kNoRow};
  }

 private:
  // Equation 21 with each whole cluster in J's place (docs/choices.md, "cluster evidence").
  template <class Arriving>
  Verdict assess_wholes(const Nearest& nearest, const Arriving& x, double k) {
    const Wholes::Best best = wholes_.best(x, k);
    if (!best.found) return {};
    if (best.similarity - best.threshold < 0) {
      return {Kind::kNew, best.similarity, best.threshold, kNoRow};
    }
    Row partner = nearest.row;
    if (partner == kNoRow || graph_.node(partner).component != best.component) {
      partner = oldest(best.component);
    }
    return {Kind::kLinked, best.similarity, best.threshold, partner, kFirm};
  }

  Row oldest(std::uint32_t component) const {
    Row found = kNoRow;
    graph_.each_node([&](Row row) {
      if (graph_.node(row).component != component) return;
      if (found == kNoRow || graph_.number(row) < graph_.number(found)) found = row;
    });
    return found;
  }

  const Graph& graph_;
  Wholes& wholes_;
};

}  // namespace linkstream
