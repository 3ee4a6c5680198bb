// What: the code that all kernels share. Each kernel file includes this after defining `tile_dots`, so
//   that the loops below are compiled with the instruction set of that file. Everything here is
//   internal to that file, so that the linker never mixes instruction sets.
// Numerics: an estimate is dot * row scale * vector scale. The exact cosine differs from it by at
//   most |x^| * row residual + vector residual (Cauchy-Schwarz on the two residuals), and the float
//   operations here add less than kSlack.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels.hpp"

namespace {

constexpr float kSlack = 4e-6f;
constexpr std::size_t kLanes = linkstream::kScanRows;
constexpr std::size_t kVectorsMax = 256;

// Products of `n_vectors` with the rows of two tiles: out[vector * kLanes + lane].
void tile_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out);

// Whether any of kLanes products is above a bar.
bool any_above(const std::int32_t* dots, std::int32_t bar);

// Returns a product that a row must reach to reach the vector's bar. Most rows fail it, and nothing
// else has to be computed for them. The 2 allows for rounding.
std::int32_t least_product(const linkstream::VectorCode& code, float scale, float residual) {
  const double needed =
      static_cast<double>(code.bar) - code.residual - kSlack - (1.0 + code.residual) * residual;
  if (needed <= 0.0) return std::numeric_limits<std::int32_t>::min();
  const double product = code.offset + needed / (static_cast<double>(scale) * code.scale) - 2.0;
  return static_cast<std::int32_t>(std::min(product, 2147483647.0));
}

// Upper bounds of kLanes similarities, and a bit for each that reaches the vector's bar.
std::uint32_t upper_bounds(const std::int32_t* dots, const float* scales, const float* residuals,
                           const linkstream::VectorCode& code, float* upper);

std::size_t select(const std::int32_t* dots, const float* scales, const float* residuals,
                   const linkstream::VectorCode& code, std::uint32_t vector,
                   std::uint32_t first_row, linkstream::Hit* hits) {
  alignas(64) float upper[kLanes];
  std::uint32_t reaching = upper_bounds(dots, scales, residuals, code, upper);
  std::size_t n = 0;
  for (; reaching; reaching &= reaching - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(reaching));
    hits[n++] = {vector, first_row + lane, upper[lane]};
  }
  return n;
}

std::size_t scan(const linkstream::ScanJob& job, linkstream::Hit* hits) {
  alignas(64) std::int32_t dots[kVectorsMax * kLanes];
  std::int32_t bars[kVectorsMax];
  float scale = 0.0f, residual = 0.0f;
#pragma omp simd reduction(max : scale, residual)
  for (std::size_t row = 0; row < job.n_rows; ++row) {
    scale = std::max(scale, job.scales[row]);
    residual = std::max(residual, job.residuals[row]);
  }
  if (scale == 0.0f) return 0;  // free rows only
  for (std::size_t v = 0; v < job.n_vectors; ++v) {
    bars[v] = least_product(job.codes[v], scale, residual);
  }
  std::size_t n = 0;
  for (std::size_t row = 0; row < job.n_rows; row += kLanes) {
    tile_dots(job.tiles + row * job.width, job.width, job.vectors, job.n_vectors, dots);
    for (std::size_t v = 0; v < job.n_vectors; ++v) {
      if (!any_above(dots + v * kLanes, bars[v])) continue;
      n += select(dots + v * kLanes, job.scales + row, job.residuals + row, job.codes[v],
                  static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(row), hits + n);
    }
  }
  return n;
}

// Squares are added by folding the upper half onto the lower, in the order of the Python twin
// (`squared_norms`), after padding with zeros to a power of two. Those of floats are exact.
template <class Number>
double length(const Number* x, std::size_t dimension, double* room) {
  std::size_t width = 1;
  while (width < dimension) width *= 2;
  for (std::size_t i = 0; i < dimension; ++i) {
    room[i] = static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  for (std::size_t i = dimension; i < width; ++i) room[i] = 0.0;
  while (width > 1) {
    width /= 2;
    for (std::size_t i = 0; i < width; ++i) room[i] += room[i + width];
  }
  return std::sqrt(room[0]);
}

double direction(const std::int64_t* sum, std::size_t dimension, double* room, std::int32_t* u) {
  const double found = length(sum, dimension, room);
  const double divisor = std::max(found, 1.0);
  for (std::size_t i = 0; i < dimension; ++i) {
    const double value = static_cast<double>(sum[i]) / divisor * 33554432.0;
    u[i] = static_cast<std::int32_t>(std::rint(value));
  }
  return found;
}

// Computes rint(x / norm * 2^30) for each x. Multiplying by 2^30 / norm is much faster than dividing
// and differs by less than 4e-7 (three roundings of numbers up to 2^30), so that both round to the same
// integer unless one is within 1e-6 of the middle between integers. In that case all are divided.
void quantise(const float* x, double norm, std::size_t dimension, std::int32_t* q) {
  const double factor = 1073741824.0 / norm;
  double furthest = 0.0;
#pragma omp simd reduction(max : furthest)
  for (std::size_t i = 0; i < dimension; ++i) {
    const double value = static_cast<double>(x[i]) * factor;
    const double nearest = std::rint(value);
    q[i] = static_cast<std::int32_t>(nearest);
    furthest = std::max(furthest, std::fabs(value - nearest));
  }
  if (furthest < 0.5 - 1e-6) return;
  for (std::size_t i = 0; i < dimension; ++i) {
    q[i] = static_cast<std::int32_t>(std::rint(static_cast<double>(x[i]) / norm * 1073741824.0));
  }
}

// Computes the codes of values / root, their scale, and an upper bound of the residual. The two sums
// may be computed in any order (the pragmas allow it): they are bounds and never decide.
template <class Number>
void encode(const Number* values, double root, std::size_t dimension, std::int8_t* codes,
            float* room, float* scale, float* residual) {
  const double unit = 1.0 / root;
  for (std::size_t i = 0; i < dimension; ++i) {
    room[i] = static_cast<float>(static_cast<double>(values[i]) * unit);
  }
  float largest = 0.0f;
#pragma omp simd reduction(max : largest)
  for (std::size_t i = 0; i < dimension; ++i) largest = std::max(largest, std::fabs(room[i]));
  const float step = largest / 127.0f;
  const float inverse = 127.0f / largest;
  float left_out = 0.0f;
#pragma omp simd reduction(+ : left_out)
  for (std::size_t i = 0; i < dimension; ++i) {
    const float code = std::rint(room[i] * inverse);
    const float rest = room[i] - code * step;
    left_out += rest * rest;
    room[i] = code;
  }
  for (std::size_t i = 0; i < dimension; ++i) {
    codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(room[i]));
  }
  *scale = step;
  *residual = std::sqrt(left_out) * 1.0001f + 1e-6f;  // allows for the rounding in this function
}

void encode_sum(const std::int64_t* sum, double root, std::size_t dimension, std::int8_t* codes,
                float* room, float* scale, float* residual) {
  encode(sum, root, dimension, codes, room, scale, residual);
}

void encode_vector(const std::int32_t* q, double root, std::size_t dimension, std::int8_t* codes,
                   float* room, float* scale, float* residual) {
  encode(q, root, dimension, codes, room, scale, residual);
}

std::int64_t square(const std::int32_t* q, std::size_t dimension) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += std::int64_t{q[i]} * q[i];
  return sum;
}

std::int64_t dot_directions(const std::int32_t* a, const std::int32_t* b, std::size_t dimension) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += std::int64_t{a[i]} * b[i];
  return sum;
}

template <class Number>
std::int64_t dot_narrow(const Number* a, const std::int64_t* b, std::size_t dimension) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += a[i] * b[i];
  return sum;
}

// Two sums hide the latency of the carries; integer sums do not depend on the order.
template <class Number>
linkstream::Integer dot_wide(const Number* a, const std::int64_t* b, std::size_t dimension) {
  linkstream::Integer even = 0, odd = 0;
  std::size_t i = 0;
  for (; i + 1 < dimension; i += 2) {
    even += linkstream::Integer{a[i]} * b[i];
    odd += linkstream::Integer{a[i + 1]} * b[i + 1];
  }
  if (i < dimension) even += linkstream::Integer{a[i]} * b[i];
  return even + odd;
}

// Computes |S / root - anchor|^2, where the anchor is an earlier direction; it never decides.
float chord2(const std::int64_t* sum, double root, const float* anchor, std::size_t dimension) {
  const double unit = 1.0 / root;
  float total = 0.0f;
#pragma omp simd reduction(+ : total)
  for (std::size_t i = 0; i < dimension; ++i) {
    const float gap = static_cast<float>(static_cast<double>(sum[i]) * unit) - anchor[i];
    total += gap * gap;
  }
  return total;
}

void add_vector(std::int64_t* sum, const std::int32_t* q, std::size_t dimension) {
  for (std::size_t i = 0; i < dimension; ++i) sum[i] += q[i];
}

// Returns the kernel of the functions above, compiled for this file's instruction set.
constexpr linkstream::Kernel plain_kernel(const char* name, double products_per_microsecond) {
  return {name,
          products_per_microsecond,
          scan,
          length<float>,
          quantise,
          encode_sum,
          encode_vector,
          square,
          dot_narrow<std::int32_t>,
          dot_narrow<std::int64_t>,
          dot_wide<std::int32_t>,
          dot_wide<std::int64_t>,
          dot_wide<std::int64_t>,
          direction,
          dot_directions,
          add_vector,
          chord2};
}

}  // namespace
