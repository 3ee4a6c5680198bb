// What: products with AVX-512: of vectors and tiles (VNNI, 64 products an instruction), and exact
//   ones of vectors and sums.
// Layout: two tiles by six vectors stay in registers, so that the multipliers limit the speed of a
//   block of vectors; loads limit the speed of one vector alone.
// Internal to the file that includes it, like body.hpp.
#pragma once

#include <immintrin.h>

#include "body.hpp"

namespace {

constexpr std::size_t kTiles = 2;

template <std::size_t Vectors>
void block_dots(const std::uint8_t* tile, std::size_t width, const std::int8_t* vectors,
                std::int32_t* out) {
  __m512i sums[kTiles][Vectors];
  for (std::size_t t = 0; t < kTiles; ++t) {
    for (std::size_t v = 0; v < Vectors; ++v) sums[t][v] = _mm512_setzero_si512();
  }
  for (std::size_t group = 0; group < width; group += 4) {
    __m512i codes[kTiles];
    for (std::size_t t = 0; t < kTiles; ++t) {
      codes[t] = _mm512_load_si512(tile + (t * width + group) * linkstream::kTileRows);
    }
    for (std::size_t v = 0; v < Vectors; ++v) {
      std::int32_t four;
      __builtin_memcpy(&four, vectors + v * width + group, 4);
      const __m512i value = _mm512_set1_epi32(four);
      for (std::size_t t = 0; t < kTiles; ++t) {
        sums[t][v] = _mm512_dpbusd_epi32(sums[t][v], codes[t], value);
      }
    }
  }
  for (std::size_t v = 0; v < Vectors; ++v) {
    for (std::size_t t = 0; t < kTiles; ++t) {
      _mm512_store_si512(out + v * kLanes + t * linkstream::kTileRows, sums[t][v]);
    }
  }
}

// One vector: four sums a tile, so that each instruction need not wait for the one before.
void single_dots(const std::uint8_t* tile, std::size_t width, const std::int8_t* x,
                 std::int32_t* out) {
  __m512i sums[kTiles][4];
  for (std::size_t t = 0; t < kTiles; ++t) {
    for (std::size_t j = 0; j < 4; ++j) sums[t][j] = _mm512_setzero_si512();
  }
  for (std::size_t group = 0; group < width; group += 16) {
    for (std::size_t j = 0; j < 4; ++j) {
      std::int32_t four;
      __builtin_memcpy(&four, x + group + 4 * j, 4);
      const __m512i value = _mm512_set1_epi32(four);
      for (std::size_t t = 0; t < kTiles; ++t) {
        const __m512i codes =
            _mm512_load_si512(tile + (t * width + group + 4 * j) * linkstream::kTileRows);
        sums[t][j] = _mm512_dpbusd_epi32(sums[t][j], codes, value);
      }
    }
  }
  for (std::size_t t = 0; t < kTiles; ++t) {
    const __m512i low = _mm512_add_epi32(sums[t][0], sums[t][1]);
    const __m512i high = _mm512_add_epi32(sums[t][2], sums[t][3]);
    _mm512_store_si512(out + t * linkstream::kTileRows, _mm512_add_epi32(low, high));
  }
}

void vnni_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out) {
  std::size_t v = 0;
  for (; v + 6 <= n_vectors; v += 6) {
    block_dots<6>(tiles, width, vectors + v * width, out + v * kLanes);
  }
  for (; v + 2 <= n_vectors; v += 2) {
    block_dots<2>(tiles, width, vectors + v * width, out + v * kLanes);
  }
  if (v < n_vectors) single_dots(tiles, width, vectors + v * width, out + v * kLanes);
}

bool any_above(const std::int32_t* dots, std::int32_t bar) {
  const __m512i least = _mm512_set1_epi32(bar);
  const __mmask16 low = _mm512_cmpgt_epi32_mask(_mm512_load_si512(dots), least);
  const __mmask16 high = _mm512_cmpgt_epi32_mask(_mm512_load_si512(dots + 16), least);
  return low | high;
}

std::uint32_t upper_bounds(const std::int32_t* dots, const float* scales, const float* residuals,
                           const linkstream::VectorCode& code, float* upper) {
  const __m512i offset = _mm512_set1_epi32(code.offset);
  const __m512 scale = _mm512_set1_ps(code.scale), reach = _mm512_set1_ps(1.0f + code.residual);
  const __m512 pad = _mm512_set1_ps(code.residual + kSlack), bar = _mm512_set1_ps(code.bar);
  std::uint32_t reaching = 0;
  for (std::size_t lane = 0; lane < kLanes; lane += 16) {
    const __m512i products = _mm512_sub_epi32(_mm512_load_si512(dots + lane), offset);
    const __m512 estimate = _mm512_mul_ps(
        _mm512_mul_ps(_mm512_cvtepi32_ps(products), _mm512_loadu_ps(scales + lane)), scale);
    const __m512 error = _mm512_mul_ps(reach, _mm512_loadu_ps(residuals + lane));
    const __m512 bound = _mm512_add_ps(_mm512_add_ps(estimate, error), pad);
    _mm512_store_ps(upper + lane, bound);
    reaching |= static_cast<std::uint32_t>(_mm512_cmp_ps_mask(bound, bar, _CMP_GE_OQ)) << lane;
  }
  return reaching;
}

// Eight numbers of 32 bits, each in a lane of 64.
__m512i eight(const std::int32_t* q) {
  return _mm512_cvtepi32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q)));
}
__m512i eight(const std::int64_t* unit) { return _mm512_loadu_si512(unit); }

// Exact product of numbers of 32 bits with sums below 2^62: a sum is low + high * 2^32 with both
// halves signed; each half gives products below 2^62, whose own halves are summed apart.
template <class Number>
linkstream::Integer dot_split(const Number* a, const std::int64_t* sum, std::size_t dimension) {
  const __m512i mask = _mm512_set1_epi64(0xffffffff);
  const __m512i carry = _mm512_set1_epi64(0x80000000);
  __m512i totals[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                       _mm512_setzero_si512()};
  std::size_t i = 0;
  for (; i + 8 <= dimension; i += 8) {
    const __m512i x = eight(a + i);
    const __m512i s = _mm512_loadu_si512(sum + i);
    const __m512i low = _mm512_mul_epi32(x, s);
    const __m512i high = _mm512_mul_epi32(x, _mm512_srli_epi64(_mm512_add_epi64(s, carry), 32));
    totals[0] = _mm512_add_epi64(totals[0], _mm512_and_si512(low, mask));
    totals[1] = _mm512_add_epi64(totals[1], _mm512_srai_epi64(low, 32));
    totals[2] = _mm512_add_epi64(totals[2], _mm512_and_si512(high, mask));
    totals[3] = _mm512_add_epi64(totals[3], _mm512_srai_epi64(high, 32));
  }
  const std::int64_t middle = _mm512_reduce_add_epi64(_mm512_add_epi64(totals[1], totals[2]));
  constexpr std::int64_t kHalf = std::int64_t{1}
                                 << 32;  // a factor, because negative numbers cannot be shifted
  linkstream::Integer result = linkstream::Integer{_mm512_reduce_add_epi64(totals[3])} * kHalf;
  result = (result + middle) * kHalf;
  result += _mm512_reduce_add_epi64(totals[0]);
  return result + dot_wide(a + i, sum + i, dimension - i);
}

constexpr linkstream::Kernel avx512_kernel(const char* name) {
  linkstream::Kernel kernel = plain_kernel(name, 300e3);
  kernel.dot_vector = dot_split<std::int32_t>;
  kernel.dot_unit = dot_split<std::int64_t>;
  return kernel;
}

}  // namespace
