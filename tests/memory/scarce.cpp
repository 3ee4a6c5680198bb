// Loaded before a process (LD_PRELOAD): its k-th allocation fails, once, or that and all after it.
//
// Allocations count only while `scarce_armed` is not 0, and only those of the chosen kinds: of C++
// (operator new, aligned_alloc), of Python (its three allocators), and calls of malloc, calloc and
// realloc that come from watched libraries (NumPy, SQLite). `scarce_armed` is a plain byte: to set
// it back to 0 takes no memory, so that a process without any can end the shortage.
//
// With SCARCE_NO_MALLOC calls of malloc are left alone: a sanitizer wants them for itself.

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
volatile unsigned char scarce_armed = 0;
}

namespace {

enum Kinds { kCpp = 1, kPython = 2, kLibraries = 4 };

std::atomic<long> seen{0};
long place = -1;
int kinds = 0, for_good = 0;

// CPython loops for ever if it cannot make the int that says where a `with` block raised. Later
// allocations of Python that are as small as an int succeed, therefore.
constexpr std::size_t kInt = 32;

// Whether an allocation of this kind is the one to fail, or comes after it.
bool fails(int kind, std::size_t size) {
  if (!scarce_armed || !(kinds & kind)) return false;
  const long k = seen++;
  if (place < 0 || k < place) return false;
  return k == place || (for_good && (kind != kPython || size > kInt));
}

struct Range {
  std::uintptr_t first, last;
};
constexpr int kMost = 64;
Range watched[kMost];
int n_watched = 0;

int note_library(dl_phdr_info* info, std::size_t, void* part) {
  if (!std::strstr(info->dlpi_name, static_cast<const char*>(part))) return 0;
  for (int i = 0; i < info->dlpi_phnum && n_watched < kMost; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
    const std::uintptr_t first = info->dlpi_addr + header.p_vaddr;
    watched[n_watched++] = {first, first + header.p_memsz};
  }
  return 0;
}

}  // namespace

extern "C" {

// From the next arming on, the k-th allocation (from 0) of these kinds fails; k < 0: none does.
void scarce_set(int which, long k, int all_after) {
  kinds = which;
  place = k;
  for_good = all_after;
  seen = 0;
}

long scarce_seen() { return seen.load(); }

// Allocations by libraries whose path contains this count as well; how many ranges of code.
int scarce_watch(const char* part) {
  dl_iterate_phdr(note_library, const_cast<char*>(part));
  return n_watched;
}

#ifndef SCARCE_NO_MALLOC
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);

static bool is_watched(void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  for (int i = 0; i < n_watched; ++i) {
    if (address >= watched[i].first && address < watched[i].last) return true;
  }
  return false;
}

static bool refused(void* caller) {
  if (!scarce_armed || !is_watched(caller) || !fails(kLibraries, 0)) return false;
  errno = ENOMEM;
  return true;
}

void* malloc(std::size_t size) {
  return refused(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  return refused(__builtin_return_address(0)) ? nullptr : __libc_calloc(n, size);
}
void* realloc(void* memory, std::size_t size) {
  return refused(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}
#endif

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  void* memory = nullptr;
  if (fails(kCpp, size) || posix_memalign(&memory, alignment, size)) return nullptr;
  return memory;
}

// Python's allocators, as its pymem.h has them.
struct PyMemAllocatorEx {
  void* ctx;
  void* (*malloc)(void*, std::size_t);
  void* (*calloc)(void*, std::size_t, std::size_t);
  void* (*realloc)(void*, void*, std::size_t);
  void (*free)(void*, void*);
};
}

namespace {

constexpr int kDomains = 3;
PyMemAllocatorEx beneath[kDomains];

void* python_malloc(void* ctx, std::size_t size) {
  const auto* next = static_cast<PyMemAllocatorEx*>(ctx);
  return fails(kPython, size) ? nullptr : next->malloc(next->ctx, size);
}
void* python_calloc(void* ctx, std::size_t n, std::size_t size) {
  const auto* next = static_cast<PyMemAllocatorEx*>(ctx);
  return fails(kPython, n * size) ? nullptr : next->calloc(next->ctx, n, size);
}
void* python_realloc(void* ctx, void* memory, std::size_t size) {
  const auto* next = static_cast<PyMemAllocatorEx*>(ctx);
  return fails(kPython, size) ? nullptr : next->realloc(next->ctx, memory, size);
}
void python_free(void* ctx, void* memory) {
  const auto* next = static_cast<PyMemAllocatorEx*>(ctx);
  next->free(next->ctx, memory);
}

void* refused_or(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  if (fails(kCpp, size)) throw std::bad_alloc();
  if (posix_memalign(&memory, alignment, size ? size : 1)) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Put the hooks before Python's allocators, for good; 0 if this process is no Python.
extern "C" int scarce_hook_python() {
  using Access = void (*)(int, PyMemAllocatorEx*);
  const auto get = reinterpret_cast<Access>(dlsym(RTLD_DEFAULT, "PyMem_GetAllocator"));
  const auto set = reinterpret_cast<Access>(dlsym(RTLD_DEFAULT, "PyMem_SetAllocator"));
  if (!get || !set) return 0;
  for (int domain = 0; domain < kDomains; ++domain) {
    get(domain, &beneath[domain]);
    PyMemAllocatorEx hooked{&beneath[domain], python_malloc, python_calloc, python_realloc,
                            python_free};
    set(domain, &hooked);
  }
  return 1;
}

constexpr std::size_t kPlain = alignof(std::max_align_t);

void* operator new(std::size_t n) { return refused_or(n, kPlain); }
void* operator new[](std::size_t n) { return refused_or(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a) {
  return refused_or(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return refused_or(n, static_cast<std::size_t>(a));
}
// The forms that answer nullptr: std::stable_sort asks so for its buffer, and does without.
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return fails(kCpp, n) ? nullptr : malloc(n ? n : 1);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return fails(kCpp, n) ? nullptr : malloc(n ? n : 1);
}
void operator delete(void* p) noexcept { free(p); }
void operator delete[](void* p) noexcept { free(p); }
void operator delete(void* p, std::size_t) noexcept { free(p); }
void operator delete[](void* p, std::size_t) noexcept { free(p); }
void operator delete(void* p, std::align_val_t) noexcept { free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { free(p); }
