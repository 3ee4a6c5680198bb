// What: the kernel for AVX-512 VNNI.
#include "avx512_dots.hpp"

namespace {

void tile_dots(const std::uint8_t* tiles, std::size_t width, const std::int8_t* vectors,
               std::size_t n_vectors, std::int32_t* out) {
  vnni_dots(tiles, width, vectors, n_vectors, out);
}

}  // namespace

namespace linkstream {
extern const Kernel kAvx512;
const Kernel kAvx512 = avx512_kernel("avx512");
}  // namespace linkstream
