// What: the vectors kept, as a Python class. Only translation.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "linkstream/kept.hpp"

// Engines that add to it share it.
class BoundKept {
 public:
  explicit BoundKept(std::size_t dimension)
      : kept_(std::make_shared<linkstream::Kept>(bounded("dimension", dimension, 0, kDimensionMax))) {}

  void append(Vectors rows) {
    if (rows.shape(1) != kept_->dimension()) throw nb::value_error("vectors of another dimension");
    kept_->append(rows.data(), rows.shape(0));
  }

  Array<std::int32_t> rows(Numbers numbers) const {
    Array<std::int32_t> found({numbers.shape(0), kept_->dimension()});
    kept_->read(numbers.data(), numbers.shape(0), found.data());
    return found;
  }

  void cut(std::size_t size) { kept_->cut(size); }
  std::size_t size() const { return kept_->size(); }
  const std::shared_ptr<linkstream::Kept>& kept() const { return kept_; }

 private:
  std::shared_ptr<linkstream::Kept> kept_;
};

// What an engine of a dimension is to add to, if anything.
inline std::shared_ptr<linkstream::Kept> chosen_keep(const BoundKept* keep, std::size_t dimension) {
  if (!keep) return nullptr;
  if (keep->kept()->dimension() != dimension) throw nb::value_error("a keep of another dimension");
  return keep->kept();
}
