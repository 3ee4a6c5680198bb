// What: allocates memory before it is needed, so that the steps that follow cannot fail.
// Python twin: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace linkstream {

// Makes sure that the next push_back cannot fail; the amortised cost is that of push_back.
template <class T>
void make_room_for_one(std::vector<T>& values) {
  if (values.size() == values.capacity()) {
    values.reserve(std::max<std::size_t>(1, 2 * values.size()));
  }
}

// Clears a vector, and frees its memory if it is more than a small change needs.
template <class T>
void forget_all(std::vector<T>& values, std::size_t most_bytes = std::size_t{1} << 20) {
  values.clear();
  if (values.capacity() * sizeof(T) > most_bytes) std::vector<T>().swap(values);
}

}  // namespace linkstream
