// What: NumPy arrays in and out: their types, and arrays of the core's own memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::c_contig>;
using Vectors = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using EventRows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats1 = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
Array<T> fresh(std::initializer_list<std::size_t> shape) {
  std::size_t size = 1;
  for (const std::size_t side : shape) size *= side;
  auto memory = std::make_unique<T[]>(size ? size : 1);
  T* data = memory.get();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  memory.release();
  return Array<T>(data, shape, owner);
}

inline Array<std::int64_t> column(const std::vector<std::int64_t>& values) {
  Array<std::int64_t> array = fresh<std::int64_t>({values.size()});
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

template <std::size_t Width>
Array<std::int64_t> table(const std::vector<std::array<std::int64_t, Width>>& rows) {
  Array<std::int64_t> array = fresh<std::int64_t>({rows.size(), Width});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), array.data() + i * Width);
  }
  return array;
}

inline constexpr std::size_t kDimensionMax = std::size_t{1} << 16;
inline constexpr std::size_t kThreadsMax = 1024;

// A number of the caller's within bounds, or ValueError.
inline std::size_t bounded(const char* name, std::size_t value, std::size_t low, std::size_t high) {
  if (value < low || value > high) {
    throw nb::value_error((std::string(name) + " is " + std::to_string(value) + ", not from " +
                           std::to_string(low) + " to " + std::to_string(high)).c_str());
  }
  return value;
}
