// What: the operations that have one file per instruction set, and the choice among them.
// Invariants: every kernel gives the same integers and the same doubles, bit for bit; only `upper`
//   of a Hit may differ, and each kernel's is a true upper bound.
// Layout of codes: rows in tiles of 16; in a tile, 4 bytes of row 0, 4 of row 1, ... row 15, then
//   the next 4 coordinates; a byte is the signed code + 128. Coordinates are padded with zero codes
//   to a multiple of 64. Vectors are plain rows of signed codes, padded alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linkstream {

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kScanRows = 2 * kTileRows;  // a scan takes two tiles at a time
inline constexpr std::size_t kPad = 64;

inline constexpr std::size_t padded(std::size_t dimension) {
  return (dimension + kPad - 1) / kPad * kPad;
}

// One vector as the scan sees it: x ~ scale * code, and |x - scale * code| <= residual.
struct VectorCode {
  float scale;
  float residual;
  std::int32_t offset;  // 128 * sum of codes: what the rows' offset adds to a product
  float bar;            // rows whose upper bound is below are not reported
};

struct Hit {
  std::uint32_t vector;
  std::uint32_t row;
  float upper;  // the exact similarity is at most this
};

struct ScanJob {
  const std::uint8_t* tiles;  // n_rows * width bytes
  const float* scales;        // of each row; 0 for a free row
  const float* residuals;     // of each row; negative for a free row
  std::size_t n_rows;         // a multiple of kScanRows
  std::size_t width;          // padded dimension
  const std::int8_t* vectors;
  const VectorCode* codes;
  std::size_t n_vectors;
};

__extension__ typedef __int128 Integer;  // exact dot products

struct Kernel {
  const char* name;
  double products_per_microsecond;  // of a scan of many vectors, about; decides when threads pay
  // Hits of all vectors against all rows; `hits` has room for every pair. Returns how many.
  std::size_t (*scan)(const ScanJob& job, Hit* hits);
  // Returns |x|; `room` holds as many doubles as the least power of two >= dimension.
  double (*norm)(const float* x, std::size_t dimension, double* room);
  // q = rint(x / |x| * 2^30), for a norm that is neither zero nor infinite nor NaN.
  void (*quantise)(const float* x, double norm, std::size_t dimension, std::int32_t* q);
  // Codes of S / root (or q / root): fills `codes` (dimension bytes), returns scale and residual.
  void (*encode_sum)(const std::int64_t* sum, double root, std::size_t dimension,
                     std::int8_t* codes, float* room, float* scale, float* residual);
  void (*encode_vector)(const std::int32_t* q, double root, std::size_t dimension,
                        std::int8_t* codes, float* room, float* scale, float* residual);
  // Exact products. `narrow` sums in 64 bits, for k_a * k_b <= kNarrow; `vector` is int32 by int64
  // and `unit` the same with the int32 kept in 64 bits, both for |sum| < 2^62; `sums` is for all.
  std::int64_t (*square)(const std::int32_t* q, std::size_t dimension);
  std::int64_t (*dot_narrow_vector)(const std::int32_t* q, const std::int64_t* sum, std::size_t);
  std::int64_t (*dot_narrow_sums)(const std::int64_t* a, const std::int64_t* b, std::size_t);
  Integer (*dot_vector)(const std::int32_t* q, const std::int64_t* sum, std::size_t dimension);
  Integer (*dot_unit)(const std::int64_t* unit, const std::int64_t* sum, std::size_t dimension);
  Integer (*dot_sums)(const std::int64_t* a, const std::int64_t* b, std::size_t dimension);
  // u = rint(S / |S| * 2^25), zeros for a sum of zero. Returns |S|; `room` as for `norm`.
  double (*direction)(const std::int64_t* sum, std::size_t dimension, double* room,
                      std::int32_t* u);
  // Of directions: a sum of 64 bits holds it.
  std::int64_t (*dot_directions)(const std::int32_t* a, const std::int32_t* b, std::size_t);
  void (*add_vector)(std::int64_t* sum, const std::int32_t* q, std::size_t dimension);
  // |S / root - anchor|^2 to about 1e-6: how far a centroid has moved from an earlier direction.
  float (*chord2)(const std::int64_t* sum, double root, const float* anchor, std::size_t);
};

inline constexpr std::int64_t kNarrow = 7;

// Returns the kernel of that name, or null if this machine or build does not have it.
const Kernel* kernel_named(const char* name);
// Returns the fastest kernel of this machine.
const Kernel* kernel_best();

}  // namespace linkstream
