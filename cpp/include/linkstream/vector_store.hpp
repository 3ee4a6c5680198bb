// What: the vectors themselves in order of arrival, so that they can be moved, removed or undone.
// Python twin: engine/vector_store.py.
// Invariants: blocks never move; `reserve` allocates them before a change begins. A mutex admits one
//   caller at a time. A store outlives the engines that append to it.
// Memory at dimension d: 4 d bytes a vector, in blocks of about 4 MiB.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace linkstream {

class VectorStore {
 public:
  explicit VectorStore(std::size_t dimension)
      : dimension_(dimension), block_rows_(kBlockValues / std::max<std::size_t>(dimension, 1)) {}

  std::size_t dimension() const { return dimension_; }

  std::size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return size_;
  }

  // Allocates memory for `more` vectors.
  void reserve(std::size_t more) {
    const std::lock_guard<std::mutex> lock(mutex_);
    make_room(more);
  }

  void append(const std::int32_t* rows, std::size_t n) {
    const std::lock_guard<std::mutex> lock(mutex_);
    make_room(n);
    for (std::size_t i = 0; i < n; ++i, ++size_) {
      std::copy_n(rows + i * dimension_, dimension_, row(size_));
    }
  }

  // Copies the vectors of these numbers, one after another.
  void read(const std::int64_t* numbers, std::size_t n, std::int32_t* out) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < n; ++i) {
      if (numbers[i] < 0 || static_cast<std::size_t>(numbers[i]) >= size_) {
        throw std::out_of_range("a vector that is not in the store");
      }
      std::copy_n(row(static_cast<std::size_t>(numbers[i])), dimension_, out + i * dimension_);
    }
  }

  // Keeps only the first `size` vectors.
  void cut(std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_ = std::min(size_, size);
    blocks_.resize((size_ + block_rows_ - 1) / block_rows_);
  }

 private:
  static constexpr std::size_t kBlockValues = std::size_t{1} << 20;  // more than a vector has

  void make_room(std::size_t more) {
    while (blocks_.size() * block_rows_ < size_ + more) {
      std::unique_ptr<std::int32_t[]> block(new std::int32_t[block_rows_ * dimension_]);
      blocks_.push_back(std::move(block));
    }
  }

  std::int32_t* row(std::size_t number) const {
    return blocks_[number / block_rows_].get() + number % block_rows_ * dimension_;
  }

  std::size_t dimension_;
  std::size_t block_rows_;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<std::int32_t[]>> blocks_;
  mutable std::mutex mutex_;
};

}  // namespace linkstream
