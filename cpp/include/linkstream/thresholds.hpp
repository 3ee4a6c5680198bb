// What: the three thresholds and s~(k, k').
// Paper: equations 16, 24, 25. Python twin: paper/thresholds.py, the home of the formula.
// Numerics: the same IEEE operations in the same order as the Python twin.
#pragma once

#include <algorithm>
#include <cmath>

namespace linkstream {

struct Thresholds {
  double cluster_similarity;     // T_c
  double subcluster_similarity;  // T_s
  double pair_similarity_max;    // T_p

  // Returns s~(k, k'): the threshold of an edge between subclusters of k and k' vectors (equation 24).
  double edge(double k, double k2) const { return required(spread(k), spread(k2)); }

  // The same in two steps, for loops in which one count is constant.
  double spread(double k) const {
    const double tan2 = 1.0 / (cluster_similarity * cluster_similarity) - 1.0;
    return 1.0 + tan2 / k;
  }
  double required(double spread, double spread2) const {
    const double pair_threshold = 1.0 / std::sqrt(spread * spread2);  // equation 16
    const double c2 = cluster_similarity * cluster_similarity;
    const double slope = std::max(pair_similarity_max - c2, 0.0) / (1.0 - c2);
    return c2 + slope * (pair_threshold - c2);
  }

  // A lower bound of s~(k, k') for a constant k': no decision rests on it.
  struct Bound {
    float tan2, least, slope;
    float operator()(float k) const { return least + slope * std::sqrt(k / (k + tan2)); }
  };
  Bound bound(double k2) const {
    const double c2 = cluster_similarity * cluster_similarity;
    const double slope = std::max(pair_similarity_max - c2, 0.0) / (1.0 - c2);
    return {static_cast<float>(1.0 / c2 - 1.0), static_cast<float>(c2 - slope * c2 - 1e-5),
            static_cast<float>(slope / std::sqrt(spread(k2)))};
  }

  // Returns the lowest threshold: below it the outcome is always a new cluster.
  double lowest() const { return std::min(subcluster_similarity, edge(1.0, 1.0)); }
};

}  // namespace linkstream
