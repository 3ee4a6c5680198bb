// What: which subcluster holds each vector, through all merges; kept only where the user asks.
// Memory: 4 bytes a vector and 4 a subcluster ever born.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace linkstream {

class Members {
 public:
  explicit Members(bool tracked) : tracked_(tracked) {}

  void born(std::int64_t number) {
    if (tracked_) survivors_.push_back(static_cast<std::uint32_t>(number));
  }
  void merged(std::int64_t absorbed, std::int64_t survivor) {
    if (tracked_) survivors_[static_cast<std::size_t>(absorbed)] = static_cast<std::uint32_t>(survivor);
  }
  void joined(std::int64_t number) {
    if (tracked_) numbers_.push_back(static_cast<std::uint32_t>(number));
  }

  // Subcluster that now holds each vector, in order of arrival.
  std::vector<std::int64_t> live() {
    std::vector<std::int64_t> result;
    result.reserve(numbers_.size());
    for (std::uint32_t& number : numbers_) {
      while (survivors_[number] != number) {
        number = survivors_[number] = survivors_[survivors_[number]];
      }
      result.push_back(number);
    }
    return result;
  }

  void restore(const std::vector<std::int64_t>& numbers, std::int64_t next_subcluster) {
    if (!tracked_) return;
    survivors_.resize(static_cast<std::size_t>(next_subcluster));
    std::iota(survivors_.begin(), survivors_.end(), 0u);
    numbers_.assign(numbers.begin(), numbers.end());
  }

 private:
  bool tracked_;
  std::vector<std::uint32_t> numbers_;    // subcluster of each vector, when it came
  std::vector<std::uint32_t> survivors_;  // of each subcluster: itself, or what absorbed it
};

}  // namespace linkstream
