// What: which subcluster holds each vector, through all merges; kept only where the user asks.
// Invariants: subclusters go by places: those there were when a state was read, in the order of their
//   numbers, then those born since, whose numbers follow on one another. While a change is open,
//   chains of merges are not shortened: it may be taken back, which needs no memory.
// Memory: 4 bytes a vector and 4 a subcluster ever born here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "room.hpp"

namespace linkstream {

class Members {
 public:
  explicit Members(bool tracked) : tracked_(tracked) {}

  bool tracked() const { return tracked_; }

  void born() {
    if (tracked_) survivors_.push_back(static_cast<std::uint32_t>(survivors_.size()));
  }
  void merged(std::int64_t absorbed, std::int64_t survivor) {
    if (!tracked_) return;
    const std::uint32_t gone = place(absorbed);
    if (open_) merges_.push_back(gone);
    survivors_[gone] = place(survivor);
  }
  void joined(std::int64_t number) {
    if (tracked_) places_.push_back(place(number));
  }
  void moved(std::int64_t member, std::int64_t number) {
    if (tracked_) put(static_cast<std::size_t>(member), place(number));
  }
  void removed(std::int64_t member) {
    if (tracked_) put(static_cast<std::size_t>(member), kRemoved);
  }

  // A change: wholly kept, or taken back.

  void begin() {
    n_places_ = places_.size();
    n_survivors_ = survivors_.size();
    open_ = true;
  }

  void commit() {
    forget_all(merges_);
    forget_all(moves_);
    open_ = false;
  }

  void rollback() {
    for (; !moves_.empty(); moves_.pop_back()) places_[moves_.back().member] = moves_.back().from;
    for (; !merges_.empty(); merges_.pop_back()) survivors_[merges_.back()] = merges_.back();
    places_.resize(n_places_);
    survivors_.resize(n_survivors_);
    open_ = false;
  }

  // Subcluster that now holds a vector; -1 where it was removed.
  std::int64_t holder(std::int64_t member) {
    const std::uint32_t found = settled(places_[static_cast<std::size_t>(member)]);
    return found == kRemoved ? -1 : number(found);
  }

  // Subcluster that now holds each vector, in order of arrival.
  std::vector<std::int64_t> live() {
    return each([this](std::uint32_t place) { return number(place); });
  }

  // The same through a table by place, which `each_node(visit)` fills with visit(number, value).
  template <class EachNode>
  std::vector<std::int64_t> live(EachNode each_node) {
    if (!tracked_) return {};
    std::vector<std::int64_t> values(survivors_.size(), -1);
    each_node([&](std::int64_t number, std::int64_t value) { values[place(number)] = value; });
    return each([&](std::uint32_t place) { return values[place]; });
  }

  // Vectors by subcluster (-1: removed), all subclusters there are, and the next one's number.
  void restore(const std::vector<std::int64_t>& vectors, const std::vector<std::int64_t>& numbers,
               std::int64_t free_subcluster) {
    if (!tracked_) return;
    Members made(true);
    made.first_ = free_subcluster;
    made.old_ = numbers;
    made.survivors_.resize(numbers.size());
    std::iota(made.survivors_.begin(), made.survivors_.end(), 0u);
    made.places_.reserve(vectors.size());
    for (const std::int64_t number : vectors) {
      made.places_.push_back(number < 0 ? kRemoved : made.place(number));
    }
    std::swap(*this, made);
  }

 private:
  struct Move {
    std::size_t member;
    std::uint32_t from;
  };

  void put(std::size_t member, std::uint32_t place) {
    if (open_) moves_.push_back({member, places_[member]});
    places_[member] = place;
  }

  static constexpr std::uint32_t kRemoved = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t place(std::int64_t number) const {
    if (number >= first_) {
      return static_cast<std::uint32_t>(number - first_ + static_cast<std::int64_t>(old_.size()));
    }
    return static_cast<std::uint32_t>(std::lower_bound(old_.begin(), old_.end(), number) -
                                      old_.begin());
  }

  std::int64_t number(std::uint32_t place) const {
    return place < old_.size() ? old_[place]
                               : first_ + static_cast<std::int64_t>(place - old_.size());
  }

  // Follows merges, and shortens their chains on the way.
  std::uint32_t settled(std::uint32_t& place) {
    if (place == kRemoved) return kRemoved;
    if (open_) return followed(place);
    while (survivors_[place] != place) {
      place = survivors_[place] = survivors_[survivors_[place]];
    }
    return place;
  }

  std::uint32_t followed(std::uint32_t place) const {
    while (survivors_[place] != place) place = survivors_[place];
    return place;
  }

  template <class Value>
  std::vector<std::int64_t> each(Value value) {
    std::vector<std::int64_t> result;
    result.reserve(places_.size());
    for (std::uint32_t& place : places_) {
      const std::uint32_t found = settled(place);
      result.push_back(found == kRemoved ? -1 : value(found));
    }
    return result;
  }

  bool tracked_;
  std::int64_t first_ = 0;                // number of the first subcluster born here
  std::vector<std::int64_t> old_;         // numbers of those there were before, rising
  std::vector<std::uint32_t> places_;     // of each vector: its subcluster's place, when it came
  std::vector<std::uint32_t> survivors_;  // of each place: itself, or what absorbed it
  std::vector<std::uint32_t> merges_;     // of the open change: places absorbed, oldest first
  std::vector<Move> moves_;
  std::size_t n_places_ = 0, n_survivors_ = 0;
  bool open_ = false;
};

}  // namespace linkstream
