// What: the kernel that every compiler can build. Tests compare the others with it.
#include "plain_bounds.hpp"

namespace {

void tile_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out) {
  constexpr std::size_t kRows = linkstream::kTileRows;
  for (std::size_t t = 0; t < kLanes / kRows; ++t) {
    const std::uint8_t* rows = tiles + t * kRows * width;
    for (std::size_t v = 0; v < n_vectors; ++v) {
      std::int32_t sums[kRows] = {};
      for (std::size_t group = 0; group < width; group += 4) {
        const std::int8_t* x = vectors + v * width + group;
        const std::uint8_t* codes = rows + group * kRows;
        for (std::size_t row = 0; row < kRows; ++row) {
          for (std::size_t j = 0; j < 4; ++j) sums[row] += codes[row * 4 + j] * x[j];
        }
      }
      std::copy(sums, sums + kRows, out + v * kLanes + t * kRows);
    }
  }
}

bool any_above(const std::int32_t* dots, std::int32_t bar) {
  int any = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) any |= dots[lane] > bar;
  return any;
}

}  // namespace

namespace linkstream {
extern const Kernel kPortable;
const Kernel kPortable = plain_kernel("portable", 6e3);
}  // namespace linkstream
