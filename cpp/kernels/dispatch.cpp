// What: which kernels this build and this machine have. Chosen at run time, never by -march=native.
#include <cstring>
#include <initializer_list>

#include "kernels.hpp"

#if defined(LINKSTREAM_X86)
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <cpuid.h>
#endif

namespace linkstream {

extern const Kernel kPortable;

#if defined(LINKSTREAM_X86)
extern const Kernel kAvx2;
extern const Kernel kAvx512;
extern const Kernel kAmx;

static bool has_avx2() { return __builtin_cpu_supports("avx2"); }

static bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

// The system grants the large tile registers only to a process that requests them.
static bool may_use_tiles() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023;
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

static bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!has_avx512() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
  static const bool granted = (d & kTile) && (d & kInt8) && may_use_tiles();
  return granted;
}
#endif

const Kernel* kernel_named(const char* name) {
  if (std::strcmp(name, "portable") == 0) return &kPortable;
#if defined(LINKSTREAM_X86)
  if (std::strcmp(name, "avx2") == 0) return has_avx2() ? &kAvx2 : nullptr;
  if (std::strcmp(name, "avx512") == 0) return has_avx512() ? &kAvx512 : nullptr;
  if (std::strcmp(name, "amx") == 0) return has_amx() ? &kAmx : nullptr;
#endif
  return nullptr;
}

const Kernel* kernel_best() {
  for (const char* name : {"amx", "avx512", "avx2"}) {
    if (const Kernel* kernel = kernel_named(name)) return kernel;
  }
  return &kPortable;
}

}  // namespace linkstream
