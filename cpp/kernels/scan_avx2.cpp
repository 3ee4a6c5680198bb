// What: the kernel for AVX2. Bytes are widened to 16 bits, because the 8-bit multiply-add
//   saturates; each row then has two partial sums, added at the end.
#include <immintrin.h>

#include "plain_bounds.hpp"

namespace {

// A tile and a vector: 4 rows x 4 coordinates fill a register, four registers the tile.
void one_tile(const std::uint8_t* rows, std::size_t width, const std::int8_t* x,
              std::int32_t* out) {
  __m256i sums[4] = {};
  for (std::size_t group = 0; group < width; group += 4) {
    std::int32_t four;
    __builtin_memcpy(&four, x + group, 4);
    const __m256i value = _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
    const std::uint8_t* line = rows + group * linkstream::kTileRows;
    for (int part = 0; part < 4; ++part) {
      const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(line + part * 16));
      sums[part] =
          _mm256_add_epi32(sums[part], _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), value));
    }
  }
  for (int part = 0; part < 4; ++part) {
    const __m256i pairs = _mm256_hadd_epi32(sums[part], sums[part]);
    out[part * 4 + 0] = _mm256_extract_epi32(pairs, 0);
    out[part * 4 + 1] = _mm256_extract_epi32(pairs, 1);
    out[part * 4 + 2] = _mm256_extract_epi32(pairs, 4);
    out[part * 4 + 3] = _mm256_extract_epi32(pairs, 5);
  }
}

void tile_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out) {
  for (std::size_t v = 0; v < n_vectors; ++v) {
    for (std::size_t t = 0; t < 2; ++t) {
      one_tile(tiles + t * linkstream::kTileRows * width, width, vectors + v * width,
               out + v * kLanes + t * linkstream::kTileRows);
    }
  }
}

bool any_above(const std::int32_t* dots, std::int32_t bar) {
  const __m256i least = _mm256_set1_epi32(bar);
  __m256i above = _mm256_setzero_si256();
  for (std::size_t lane = 0; lane < kLanes; lane += 8) {
    const __m256i eight = _mm256_load_si256(reinterpret_cast<const __m256i*>(dots + lane));
    above = _mm256_or_si256(above, _mm256_cmpgt_epi32(eight, least));
  }
  return !_mm256_testz_si256(above, above);
}

}  // namespace

namespace linkstream {
extern const Kernel kAvx2;
const Kernel kAvx2 = plain_kernel("avx2", 35e3);
}  // namespace linkstream
