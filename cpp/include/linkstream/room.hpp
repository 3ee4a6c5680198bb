// What: allocates memory before it is needed, so that the steps that follow cannot fail.
// Python twin: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace linkstream {

// Makes sure that the next push_back cannot fail; the amortised cost is that of push_back.
template <class T>
void make_room_for_one(std::vector<T>& values) {
  if (values.size() == values.capacity()) {
    values.reserve(std::max<std::size_t>(1, 2 * values.size()));
  }
}

inline constexpr std::size_t kSmallBytes = std::size_t{1} << 20;  // more than a small change needs

// Returns the memory that `hand_over` hands over.
template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  const std::size_t held = values.capacity() * sizeof(T);
  return held > kSmallBytes ? held : values.size() * sizeof(T);
}

// Clears a vector, and frees its memory if it is more than a small change needs.
template <class T>
void forget_all(std::vector<T>& values) {
  values.clear();
  if (values.capacity() * sizeof(T) > kSmallBytes) std::vector<T>().swap(values);
}

// Moves values to an empty vector: by a copy, which has no unused memory, if they are few and there is
// memory for it.
template <class T>
void hand_over(std::vector<T>& from, std::vector<T>& to) noexcept {
  if (from.capacity() * sizeof(T) <= kSmallBytes) {
    try {
      to = from;
      from.clear();
      return;
    } catch (const std::bad_alloc&) {
    }
  }
  to = std::move(from);
  from.clear();
}

}  // namespace linkstream
