// What: memory found before it is needed, so that what follows cannot fail half-way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace linkstream {

// Makes the next push_back one that cannot fail; the cost is spread as push_back spreads it.
template <class T>
void make_room_for_one(std::vector<T>& values) {
  if (values.size() == values.capacity()) {
    values.reserve(std::max<std::size_t>(1, 2 * values.size()));
  }
}

// Gives memory back where more is held than a small change needs.
template <class T>
void forget_all(std::vector<T>& values, std::size_t most_bytes = std::size_t{1} << 20) {
  values.clear();
  if (values.capacity() * sizeof(T) > most_bytes) std::vector<T>().swap(values);
}

}  // namespace linkstream
