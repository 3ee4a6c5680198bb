// What: the vector store as a Python class. It only translates.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "linkstream/vector_store.hpp"

// Engines that append to the store share it.
class BoundVectorStore {
 public:
  explicit BoundVectorStore(std::size_t dimension)
      : store_(std::make_shared<linkstream::VectorStore>(
            bounded("dimension", dimension, 0, kDimensionMax))) {}

  void append(Vectors rows) {
    if (rows.shape(1) != store_->dimension()) throw nb::value_error("vectors of another dimension");
    store_->append(rows.data(), rows.shape(0));
  }

  Array<std::int32_t> rows(Numbers numbers) const {
    Array<std::int32_t> found({numbers.shape(0), store_->dimension()});
    store_->read(numbers.data(), numbers.shape(0), found.data());
    return found;
  }

  void cut(std::size_t size) { store_->cut(size); }
  std::size_t size() const { return store_->size(); }
  const std::shared_ptr<linkstream::VectorStore>& store() const { return store_; }

 private:
  std::shared_ptr<linkstream::VectorStore> store_;
};

// Returns the store of an engine of a dimension, if there is one.
inline std::shared_ptr<linkstream::VectorStore> chosen_store(const BoundVectorStore* given,
                                                             std::size_t dimension) {
  if (!given) return nullptr;
  if (given->store()->dimension() != dimension) {
    throw nb::value_error("a vector store of another dimension");
  }
  return given->store();
}
