// What: NumPy arrays of the caller and new ones, by Python's buffer protocol.
// Invariants: a failed allocation raises MemoryError; nanobind's own arrays would end the process.
//   Both kinds of array are used only while the GIL is held; the numbers they point to at any time.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nb = nanobind;

// The name of a number type in NumPy, and its codes in buffers.
template <class T>
struct NumberType;
template <>
struct NumberType<std::int8_t> {
  static constexpr char name[] = "int8", codes[] = "b";
};
template <>
struct NumberType<std::int32_t> {
  static constexpr char name[] = "int32", codes[] = "il";
};
template <>
struct NumberType<std::int64_t> {
  static constexpr char name[] = "int64", codes[] = "lq";
};
template <>
struct NumberType<float> {
  static constexpr char name[] = "float32", codes[] = "f";
};
template <>
struct NumberType<double> {
  static constexpr char name[] = "float64", codes[] = "d";
};

// An array of the caller: C-contiguous, of exactly this type; const T: it is only read. It is opened at
// the first use; TypeError if it is not such an array. Dimensions 0: any number of dimensions.
template <class T, int Dimensions>
class Given {
  using Number = std::remove_const_t<T>;

 public:
  Given() = default;
  explicit Given(nb::handle object) : object_(object) {}
  Given(Given&& other) noexcept
      : object_(other.object_), buffer_(other.buffer_), open_(std::exchange(other.open_, false)) {}
  Given& operator=(Given&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(buffer_, other.buffer_);
    std::swap(open_, other.open_);
    return *this;
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  ~Given() {
    if (open_) PyBuffer_Release(&buffer_);
  }

  // Returns whether it is such an array; throws only if memory runs out.
  bool opens() {
    if (open_) return true;
    const int writable = std::is_const_v<T> ? 0 : PyBUF_WRITABLE;
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | writable;
    if (PyObject_GetBuffer(object_.ptr(), &buffer_, flags) != 0) {
      if (PyErr_ExceptionMatches(PyExc_MemoryError)) throw nb::python_error();
      PyErr_Clear();
      return false;
    }
    open_ = fits();
    if (!open_) PyBuffer_Release(&buffer_);
    return open_;
  }

  T* data() { return static_cast<T*>(opened().buf); }
  std::size_t shape(int axis) { return static_cast<std::size_t>(opened().shape[axis]); }
  std::size_t size() { return static_cast<std::size_t>(opened().len) / sizeof(T); }

 private:
  bool fits() const {
    const char* code = buffer_.format ? buffer_.format : "B";
    return (Dimensions == 0 || buffer_.ndim == Dimensions) && buffer_.itemsize == sizeof(T) &&
           code[0] && !code[1] && std::strchr(NumberType<Number>::codes, code[0]);
  }

  const Py_buffer& opened() {
    if (!opens()) {
      throw nb::type_error(
          (std::string("not a C-contiguous array of ") + NumberType<Number>::name).c_str());
    }
    return buffer_;
  }

  nb::handle object_;
  Py_buffer buffer_{};
  bool open_ = false;
};

// A new NumPy array.
template <class T>
class Array {
 public:
  explicit Array(std::initializer_list<std::size_t> shape) {
    nb::object sides = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
    if (!sides.is_valid()) throw nb::python_error();
    Py_ssize_t index = 0;
    for (const std::size_t side : shape) {
      PyObject* number = PyLong_FromSize_t(side);
      if (!number) throw nb::python_error();
      PyTuple_SET_ITEM(sides.ptr(), index++, number);
    }
    array_ = empty()(sides, NumberType<T>::name);
    Py_buffer view;
    if (PyObject_GetBuffer(array_.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) {
      throw nb::python_error();
    }
    data_ = static_cast<T*>(view.buf);  // fixed for the lifetime of the array
    PyBuffer_Release(&view);
  }

  T* data() const { return data_; }
  nb::handle release() { return array_.release(); }

 private:
  // Returns numpy.empty; looked up once and never released.
  static nb::handle empty() {
    static const nb::handle function =
        nb::object(nb::module_::import_("numpy").attr("empty")).release();
    return function;
  }

  nb::object array_;
  T* data_ = nullptr;
};

namespace nanobind::detail {

template <class T, int Dimensions>
struct type_caster<Given<T, Dimensions>> {
  using Number = std::remove_const_t<T>;
  using Views = Given<T, Dimensions>;
  NB_TYPE_CASTER(Views, const_name("numpy.typing.NDArray[numpy.") +
                            const_name(NumberType<Number>::name) + const_name("]"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value = Given<T, Dimensions>(source);
    return true;
  }
};

template <class T>
struct type_caster<Array<T>> {
  static constexpr auto Name =
      const_name("numpy.typing.NDArray[numpy.") + const_name(NumberType<T>::name) + const_name("]");
  using Value = Array<T>;
  template <class U>
  using Cast = movable_cast_t<U>;
  static handle from_cpp(Array<T>&& array, rv_policy, cleanup_list*) noexcept {
    return array.release();
  }
};

}  // namespace nanobind::detail

using Vectors = Given<const std::int32_t, 2>;
using Floats = Given<const float, 2>;
using Floats1 = Given<const float, 1>;
using Numbers = Given<const std::int64_t, 1>;
using EventRows = Given<const std::int64_t, 2>;

inline Array<std::int64_t> column(const std::vector<std::int64_t>& values) {
  Array<std::int64_t> array({values.size()});
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

template <std::size_t Width>
Array<std::int64_t> table(const std::vector<std::array<std::int64_t, Width>>& rows) {
  Array<std::int64_t> array({rows.size(), Width});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), array.data() + i * Width);
  }
  return array;
}

inline constexpr std::size_t kDimensionMax = std::size_t{1} << 16;
inline constexpr std::size_t kThreadsMax = 1024;

// Returns a number of the caller if it is within bounds; otherwise throws ValueError.
inline std::size_t bounded(const char* name, std::size_t value, std::size_t low, std::size_t high) {
  if (value < low || value > high) {
    throw nb::value_error((std::string(name) + " is " + std::to_string(value) + ", not from " +
                           std::to_string(low) + " to " + std::to_string(high))
                              .c_str());
  }
  return value;
}
