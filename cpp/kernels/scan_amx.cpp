// What: the kernel for AMX: one instruction multiplies 16 vectors by 16 rows by 64 coordinates.
//   Few vectors would leave its registers mostly empty; for them AVX-512 is used.
// Layout: a tile of codes, 64 coordinates at a time, is an operand of the instruction. Vectors
//   are read 16 at a time, so their buffer has room for a multiple of 16 rows.
#include "avx512_dots.hpp"

namespace {

constexpr std::size_t kFew = 8;
constexpr std::size_t kSide = 16;  // rows of a tile register
constexpr long kVectorStride = 64;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Registers: 0-3 sums of two groups of vectors by two tiles, 4-5 vectors, 6-7 codes.
void pair_dots(const std::uint8_t* tile, std::size_t width, const std::int8_t* vectors,
               std::int32_t* out) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const long stride = static_cast<long>(width);
  for (std::size_t k = 0; k < width; k += 64) {
    _tile_loadd(4, vectors + k, stride);
    _tile_loadd(5, vectors + kSide * width + k, stride);
    _tile_loadd(6, tile + k * kSide, kVectorStride);
    _tile_loadd(7, tile + (width + k) * kSide, kVectorStride);
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
  constexpr long kOut = kLanes * sizeof(std::int32_t);
  _tile_stored(0, out, kOut);
  _tile_stored(1, out + kSide, kOut);
  _tile_stored(2, out + kSide * kLanes, kOut);
  _tile_stored(3, out + kSide * kLanes + kSide, kOut);
}

void one_dots(const std::uint8_t* tile, std::size_t width, const std::int8_t* vectors,
              std::int32_t* out) {
  _tile_zero(0);
  _tile_zero(1);
  const long stride = static_cast<long>(width);
  for (std::size_t k = 0; k < width; k += 64) {
    _tile_loadd(4, vectors + k, stride);
    _tile_loadd(6, tile + k * kSide, kVectorStride);
    _tile_loadd(7, tile + (width + k) * kSide, kVectorStride);
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
  }
  constexpr long kOut = kLanes * sizeof(std::int32_t);
  _tile_stored(0, out, kOut);
  _tile_stored(1, out + kSide, kOut);
}

void tile_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out) {
  if (n_vectors < kFew) {
    vnni_dots(tiles, width, vectors, n_vectors, out);
    return;
  }
  std::size_t v = 0;
  for (; v + kSide < n_vectors; v += 2 * kSide) {
    pair_dots(tiles, width, vectors + v * width, out + v * kLanes);
  }
  if (v < n_vectors) one_dots(tiles, width, vectors + v * width, out + v * kLanes);
}

std::size_t scan_with_tiles(const linkstream::ScanJob& job, linkstream::Hit* hits) {
  if (job.n_vectors < kFew) return scan(job, hits);
  const TileConfig config;
  _tile_loadconfig(&config);
  const std::size_t n = scan(job, hits);
  _tile_release();
  return n;
}

constexpr linkstream::Kernel amx_kernel() {
  linkstream::Kernel kernel = avx512_kernel("amx");
  kernel.products_per_microsecond = 600e3;
  kernel.scan = scan_with_tiles;
  return kernel;
}

}  // namespace

namespace linkstream {
extern const Kernel kAmx;
const Kernel kAmx = amx_kernel();
}  // namespace linkstream
