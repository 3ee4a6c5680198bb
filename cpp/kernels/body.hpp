// What: what all kernels share. Each kernel file includes this after defining `tile_dots`, so that
//   the loops below are compiled with that file's instruction set. Everything here is internal to
//   the file that includes it: the linker never mixes instruction sets.
// Numerics: an estimate is dot * row scale * vector scale. The exact cosine differs from it by at
//   most |x^| * row residual + vector residual (Cauchy-Schwarz on the two residuals), and the float
//   operations here add less than kSlack.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels.hpp"

namespace {

constexpr float kSlack = 4e-6f;
constexpr std::size_t kLanes = linkstream::kScanRows;
constexpr std::size_t kVectorsMax = 256;

// Products of `n_vectors` with the rows of two tiles: out[vector * kLanes + lane].
void tile_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out);

std::size_t select(const std::int32_t* dots, const float* scales, const float* residuals,
                   const linkstream::VectorCode& code, std::uint32_t vector,
                   std::uint32_t first_row, linkstream::Hit* hits) {
  float upper[kLanes];
  const float reach = 1.0f + code.residual;
  const float pad = code.residual + kSlack;
  int any = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const float estimate = static_cast<float>(dots[lane] - code.offset) * scales[lane] * code.scale;
    upper[lane] = estimate + reach * residuals[lane] + pad;
    any |= upper[lane] >= code.bar;
  }
  if (!any) return 0;
  std::size_t n = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (upper[lane] >= code.bar) {
      hits[n++] = {vector, first_row + static_cast<std::uint32_t>(lane), upper[lane]};
    }
  }
  return n;
}

std::size_t scan(const linkstream::ScanJob& job, linkstream::Hit* hits) {
  alignas(64) std::int32_t dots[kVectorsMax * kLanes];
  std::size_t n = 0;
  for (std::size_t row = 0; row < job.n_rows; row += kLanes) {
    tile_dots(job.tiles + row * job.width, job.width, job.vectors, job.n_vectors, dots);
    for (std::size_t v = 0; v < job.n_vectors; ++v) {
      n += select(dots + v * kLanes, job.scales + row, job.residuals + row, job.codes[v],
                  static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(row), hits + n);
    }
  }
  return n;
}

// Squares are exact in double; they are added by folding the upper half onto the lower, in the
// order of the Python twin (`squared_norms`), after padding with zeros to a power of two.
double norm(const float* x, std::size_t dimension, double* room) {
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

void quantise(const float* x, double norm, std::size_t dimension, std::int32_t* q) {
  for (std::size_t i = 0; i < dimension; ++i) {
    q[i] = static_cast<std::int32_t>(std::rint(static_cast<double>(x[i]) / norm * 1073741824.0));
  }
}

// The codes of values / root, their scale, and an upper bound of what they leave out. The two sums
// may be taken in any order (the pragmas say so): they only bound, they never decide.
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
  *residual = std::sqrt(left_out) * 1.0001f + 1e-6f;  // room for the roundings of this function
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

template <class Number>
std::int64_t dot_narrow(const Number* a, const std::int64_t* b, std::size_t dimension) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < dimension; ++i) sum += a[i] * b[i];
  return sum;
}

// Two sums hide the latency of the carries; integers do not mind the order.
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

void add_vector(std::int64_t* sum, const std::int32_t* q, std::size_t dimension) {
  for (std::size_t i = 0; i < dimension; ++i) sum[i] += q[i];
}

// A kernel made of what this file's instruction set compiles the above to.
constexpr linkstream::Kernel plain_kernel(const char* name) {
  return {name,
          scan,
          norm,
          quantise,
          encode_sum,
          encode_vector,
          square,
          dot_narrow<std::int32_t>,
          dot_narrow<std::int64_t>,
          dot_wide<std::int32_t>,
          dot_wide<std::int64_t>,
          dot_wide<std::int64_t>,
          add_vector};
}

}  // namespace
