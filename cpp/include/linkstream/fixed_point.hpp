// What: numbers the engine decides on. A unit vector is q = rint(x / |x| * 2^30) as int32; a
//   subcluster is S = sum of q as int64; dot products are exact 128-bit integers.
// Paper: the cosines of sections 3.3 and 3.4. Python twin: engine/fixed_point.py.
// Invariants: k < 2^33, so q.S <= k * 2^60 and S.S <= k^2 * 2^60 fit a signed 128-bit integer.
// Numerics: integers are exact in any order; the similarity rounds each integer once to double and
//   then performs IEEE operations in the order of the Python twin. No contraction, no fast-math.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace linkstream {

__extension__ typedef __int128 Integer;  // exact dot products

inline constexpr std::int64_t kCountMax = (std::int64_t{1} << 33) - 1;

// The same products in 64 bits, where |a|.|b| <= k_a * k_b * 2^60 cannot leave them.
inline constexpr std::int64_t kNarrowCounts = 7;

template <class A, class B>
inline Integer dot_narrow(const A* a, const B* b, std::size_t dimension) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += std::int64_t{a[i]} * std::int64_t{b[i]};
  return sum;
}

template <class A, class B>
inline Integer dot_wide(const A* a, const B* b, std::size_t dimension) {
  // Two sums hide the latency of the carries; integers do not mind the order.
  Integer even = 0, odd = 0;
  std::size_t i = 0;
  for (; i + 1 < dimension; i += 2) {
    even += Integer{a[i]} * b[i];
    odd += Integer{a[i + 1]} * b[i + 1];
  }
  if (i < dimension) even += Integer{a[i]} * b[i];
  return even + odd;
}

// Exact a.b for vectors that are sums of k_a and k_b unit vectors.
template <class A, class B>
inline Integer dot(const A* a, std::int64_t k_a, const B* b, std::int64_t k_b,
                   std::size_t dimension) {
  const bool narrow = k_a <= kNarrowCounts && k_b <= kNarrowCounts && k_a * k_b <= kNarrowCounts;
  return narrow ? dot_narrow(a, b, dimension) : dot_wide(a, b, dimension);
}

// Cosine from a.b and the square roots of a.a and b.b, each rounded to double.
inline double similarity(Integer product, double root_a, double root_b) {
  return static_cast<double>(product) / (root_a * root_b);
}

inline double root(Integer square) { return std::sqrt(static_cast<double>(square)); }

}  // namespace linkstream
