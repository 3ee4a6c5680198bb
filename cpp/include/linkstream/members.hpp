// What: the subcluster that holds each vector, through all merges, if vectors are tracked.
// Python twin: engine/members.py.
// Invariants: subclusters have slots: first those of the state that was read, by number, then those
//   created since, whose numbers are consecutive. While a change is open, chains of merges are not
//   shortened, because the change may be rolled back; a rollback needs no memory.
// Memory: 4 bytes a vector and 4 for each subcluster ever created here.
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

  void created() {
    if (tracked_) survivors_.push_back(static_cast<std::uint32_t>(survivors_.size()));
  }
  void merged(std::int64_t absorbed, std::int64_t survivor) {
    if (!tracked_) return;
    const std::uint32_t gone = slot(absorbed);
    if (open_) merges_.push_back(gone);
    survivors_[gone] = slot(survivor);
  }
  void joined(std::int64_t number) {
    if (tracked_) holders_.push_back(slot(number));
  }
  void moved(std::int64_t member, std::int64_t number) {
    if (tracked_) put(static_cast<std::size_t>(member), slot(number));
  }
  void removed(std::int64_t member) {
    if (tracked_) put(static_cast<std::size_t>(member), kRemoved);
  }

  // Changes

  void begin() {
    n_holders_ = holders_.size();
    n_survivors_ = survivors_.size();
    open_ = true;
  }

  void commit() {
    forget_all(merges_);
    forget_all(moves_);
    open_ = false;
  }

  void rollback() {
    for (; !moves_.empty(); moves_.pop_back()) holders_[moves_.back().member] = moves_.back().from;
    for (; !merges_.empty(); merges_.pop_back()) survivors_[merges_.back()] = merges_.back();
    holders_.resize(n_holders_);
    survivors_.resize(n_survivors_);
    open_ = false;
  }

  // Returns the subcluster that holds a vector; -1 if the vector was removed.
  std::int64_t holder(std::int64_t member) {
    const std::uint32_t found = settled(holders_[static_cast<std::size_t>(member)]);
    return found == kRemoved ? -1 : number(found);
  }

  // Returns the subcluster that holds each vector, in order of arrival.
  std::vector<std::int64_t> live() {
    return each([this](std::uint32_t slot) { return number(slot); });
  }

  // The same with a value for each subcluster, which `each_node` passes to visit(number, value).
  template <class EachNode>
  std::vector<std::int64_t> live(EachNode each_node) {
    if (!tracked_) return {};
    std::vector<std::int64_t> values(survivors_.size(), -1);
    each_node([&](std::int64_t number, std::int64_t value) { values[slot(number)] = value; });
    return each([&](std::uint32_t slot) { return values[slot]; });
  }

  // Sets the subcluster of each vector (-1: removed), all subclusters, and the next one's number.
  void restore(const std::vector<std::int64_t>& vectors, const std::vector<std::int64_t>& numbers,
               std::int64_t free_subcluster) {
    if (!tracked_) return;
    Members made(true);
    made.first_ = free_subcluster;
    made.old_ = numbers;
    made.survivors_.resize(numbers.size());
    std::iota(made.survivors_.begin(), made.survivors_.end(), 0u);
    made.holders_.reserve(vectors.size());
    for (const std::int64_t number : vectors) {
      made.holders_.push_back(number < 0 ? kRemoved : made.slot(number));
    }
    std::swap(*this, made);
  }

 private:
  struct Move {
    std::size_t member;
    std::uint32_t from;
  };

  void put(std::size_t member, std::uint32_t slot) {
    if (open_) moves_.push_back({member, holders_[member]});
    holders_[member] = slot;
  }

  static constexpr std::uint32_t kRemoved = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t slot(std::int64_t number) const {
    if (number >= first_) {
      return static_cast<std::uint32_t>(number - first_ + static_cast<std::int64_t>(old_.size()));
    }
    return static_cast<std::uint32_t>(std::lower_bound(old_.begin(), old_.end(), number) -
                                      old_.begin());
  }

  std::int64_t number(std::uint32_t slot) const {
    return slot < old_.size() ? old_[slot] : first_ + static_cast<std::int64_t>(slot - old_.size());
  }

  // Follows merges and shortens their chains.
  std::uint32_t settled(std::uint32_t& slot) {
    if (slot == kRemoved) return kRemoved;
    if (open_) return followed(slot);
    while (survivors_[slot] != slot) {
      slot = survivors_[slot] = survivors_[survivors_[slot]];
    }
    return slot;
  }

  std::uint32_t followed(std::uint32_t slot) const {
    while (survivors_[slot] != slot) slot = survivors_[slot];
    return slot;
  }

  template <class Value>
  std::vector<std::int64_t> each(Value value) {
    std::vector<std::int64_t> result;
    result.reserve(holders_.size());
    for (std::uint32_t& slot : holders_) {
      const std::uint32_t found = settled(slot);
      result.push_back(found == kRemoved ? -1 : value(found));
    }
    return result;
  }

  bool tracked_;
  std::int64_t first_ = 0;                // number of the first subcluster created here
  std::vector<std::int64_t> old_;         // numbers of those in the state that was read, rising
  std::vector<std::uint32_t> holders_;    // slot of each vector's subcluster when it arrived
  std::vector<std::uint32_t> survivors_;  // of each slot: itself, or the slot that absorbed it
  std::vector<std::uint32_t> merges_;     // of the open change: slots absorbed, oldest first
  std::vector<Move> moves_;
  std::size_t n_holders_ = 0, n_survivors_ = 0;
  bool open_ = false;
};

}  // namespace linkstream
