// What: the Python module `_core`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "engine.hpp"

namespace nb = nanobind;

static std::string compiler() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#elif defined(__GNUC__)
  return std::string("gcc ") + __VERSION__;
#else
  return "unknown compiler";
#endif
}

NB_MODULE(_core, m) {
  m.doc() = "The compiled core of linkstream.";
  m.def("build_info", &compiler, "Return the compiler that this module was built with.");
  bind_engine(m);
  bind_linkage(m);
}
