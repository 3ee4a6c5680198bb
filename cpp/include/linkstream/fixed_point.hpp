// What: the integers on which the engine decides. A unit vector is q = rint(x / |x| * 2^30) as int32; a
//   subcluster is S = sum of q as int64; dot products are exact 128-bit integers.
// Paper: the cosines of sections 3.3 and 3.4. Python twin: engine/fixed_point.py.
// Invariants: k < 2^33, so q.S <= k * 2^60 and S.S <= k^2 * 2^60 fit a signed 128-bit integer.
// Numerics: integers are exact in any order, so that each product may use the fastest function of
//   the kernel; the similarity rounds each integer once to double and then performs IEEE
//   operations in the order of the Python twin. No contraction, no fast-math.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels.hpp"

namespace linkstream {

inline constexpr std::int64_t kSplitMax = std::int64_t{1} << 31;  // counts below keep |S| < 2^61

// Returns exact q.S for a sum of k unit vectors.
inline Integer dot(const Kernel& kernel, const std::int32_t* q, const std::int64_t* sum,
                   std::int64_t k, std::size_t dimension) {
  if (k <= kNarrow) return kernel.dot_narrow_vector(q, sum, dimension);
  if (k < kSplitMax) return kernel.dot_vector(q, sum, dimension);
  Integer total = 0;
  for (std::size_t i = 0; i < dimension; ++i) total += Integer{q[i]} * sum[i];
  return total;
}

// Returns exact a.b for sums of k_a and k_b unit vectors.
inline Integer dot(const Kernel& kernel, const std::int64_t* a, std::int64_t k_a,
                   const std::int64_t* b, std::int64_t k_b, std::size_t dimension) {
  if (k_a > k_b) return dot(kernel, b, k_b, a, k_a, dimension);
  if (k_b <= kNarrow && k_a * k_b <= kNarrow) return kernel.dot_narrow_sums(a, b, dimension);
  if (k_a == 1 && k_b < kSplitMax) return kernel.dot_unit(a, b, dimension);
  return kernel.dot_sums(a, b, dimension);
}

// Returns the cosine from a.b and the square roots of a.a and b.b, each rounded to double.
inline double similarity(Integer product, double root_a, double root_b) {
  return static_cast<double>(product) / (root_a * root_b);
}

inline double root(Integer square) { return std::sqrt(static_cast<double>(square)); }

}  // namespace linkstream
