// What: the subcluster that holds each vector, through all merges, if vectors are tracked.
// Python twin: engine/members.py.
// Invariants: subclusters have slots: first those of the state that was read, by number, then those
//   created since, whose numbers are consecutive. While a change is open, chains of merges are not
//   shortened, because the change may be rolled back; a rollback needs no memory.
//   The vectors of a subcluster are in the chains of its slot and of the slots it absorbed, newest
//   first. A vector that was moved or removed stays in its chain, and `moved_` has it at its new slot;
//   a reader skips the vectors that, by `holders_`, are not in the subcluster.
// Memory: 8 bytes a vector, 17 for each subcluster ever created here, and about 40 a moved vector.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "room.hpp"

namespace linkstream {

class Members {
 public:
  explicit Members(bool tracked) : tracked_(tracked) {}

  bool tracked() const { return tracked_; }

  void created() {
    if (!tracked_) return;
    make_room_for_one(survivors_);
    make_room_for_one(chains_);
    make_room_for_one(held_);
    survivors_.push_back(static_cast<std::uint32_t>(survivors_.size()));
    chains_.emplace_back();
    held_.push_back(false);
  }
  void merged(std::int64_t absorbed, std::int64_t survivor) {
    if (!tracked_) return;
    const std::uint32_t gone = slot(absorbed), kept = slot(survivor);
    if (open_) merges_.push_back(gone);
    survivors_[gone] = kept;
    chains_[gone].next_absorbed = chains_[kept].first_absorbed;
    chains_[kept].first_absorbed = gone;
  }
  void joined(std::int64_t number) {
    if (tracked_) join(slot(number));
  }
  // The next vector is in no subcluster.
  void deferred() {
    if (tracked_) join(kRemoved);
  }
  void moved(std::int64_t member, std::int64_t number) {
    if (tracked_) put(static_cast<std::size_t>(member), slot(number));
  }
  void removed(std::int64_t member) {
    if (tracked_) put(static_cast<std::size_t>(member), kRemoved);
  }

  // Changes

  struct Record;

  void begin() {
    n_holders_ = holders_.size();
    n_survivors_ = survivors_.size();
    open_ = true;
  }

  void commit() {
    for (const Move& move : moves_) {
      if (holders_[move.member] != move.from) moved_.erase({move.from, move.member});
    }
    forget_all(merges_);
    forget_all(moves_);
    open_ = false;
  }

  // Commits, and moves what a rollback needs to a record. Until the record is dropped its merges are
  // not shortened, nor the slots of its vectors replaced: `keep_chains`.
  void commit(Record& record) {
    for (const std::uint32_t gone : merges_) held_[gone] = true;
    hand_over(merges_, record.merges);
    hand_over(moves_, record.moves);
    record.n_holders = n_holders_;
    open_ = false;
  }

  void keep_chains(bool keep) { kept_ = keep; }

  // Returns the memory that a record of the open change takes.
  std::size_t change_bytes() const { return bytes_of(merges_) + bytes_of(moves_); }

  void drop(Record& record) {
    for (const std::uint32_t gone : record.merges) held_[gone] = false;
    for (const Move& move : record.moves) {
      if (move.from == kRemoved || move.member >= holders_.size()) continue;
      const std::uint32_t at = holders_[move.member];
      if (at == kRemoved || followed(at) != followed(move.from))
        moved_.erase({move.from, move.member});
    }
  }

  // Takes the last change back, by its record. Its subclusters keep their slots, because their numbers
  // are not given again.
  void take_back(Record& record) {
    for (const std::uint32_t gone : record.merges) held_[gone] = false;
    merges_ = std::move(record.merges);
    moves_ = std::move(record.moves);
    n_holders_ = record.n_holders;
    n_survivors_ = survivors_.size();
    rollback();
  }

  void rollback() {
    for (; !moves_.empty(); moves_.pop_back()) take_back(moves_.back());
    for (; !merges_.empty(); merges_.pop_back()) take_back(merges_.back());
    for (std::size_t i = holders_.size(); i-- > n_holders_;) {
      if (holders_[i] != kRemoved) chains_[holders_[i]].newest = previous_[i];
    }
    previous_.resize(n_holders_);
    chains_.resize(n_survivors_);
    holders_.resize(n_holders_);
    survivors_.resize(n_survivors_);
    held_.resize(n_survivors_);
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

  // Returns the vectors of some subclusters that arrived before vector `before`: the newest first, and
  // at most `limit`. The cost is that of the subclusters and of the vectors they ever held.
  std::vector<std::int64_t> vectors_of(const std::vector<std::int64_t>& numbers, std::size_t limit,
                                       std::int64_t before) {
    std::vector<std::int64_t> found;
    if (!tracked_) return found;
    std::vector<Cursor> heap;
    for (const std::int64_t number : numbers) add_cursors(slot(number), before, heap);
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty() && found.size() < limit) {
      std::pop_heap(heap.begin(), heap.end());
      Cursor& top = heap.back();
      // A vector that came back is in a chain and in `moved_`.
      if (found.empty() || found.back() != top.member) found.push_back(top.member);
      if (top.chained && reach(top, previous_[top.member], before)) {
        std::push_heap(heap.begin(), heap.end());
      } else {
        heap.pop_back();
      }
    }
    return found;
  }

  std::int64_t n_visited = 0;  // vectors and slots that `vectors_of` looked at; a test counts them

  // Sets the subcluster of each vector (-1: removed), all subclusters, and the next one's number.
  void restore(const std::vector<std::int64_t>& vectors, const std::vector<std::int64_t>& numbers,
               std::int64_t free_subcluster) {
    if (!tracked_) return;
    Members made(true);
    made.first_ = free_subcluster;
    made.old_ = numbers;
    made.survivors_.resize(numbers.size());
    std::iota(made.survivors_.begin(), made.survivors_.end(), 0u);
    made.chains_.resize(numbers.size());
    made.held_.resize(numbers.size());
    made.holders_.reserve(vectors.size());
    made.previous_.reserve(vectors.size());
    for (const std::int64_t number : vectors) {
      made.join(number < 0 ? kRemoved : made.slot(number));
    }
    std::swap(*this, made);
  }

 private:
  static constexpr std::uint32_t kRemoved = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNone = kRemoved;  // no vector, or no slot

  struct Move {
    std::uint32_t member;
    std::uint32_t from;
    bool listed;  // `moved_` got the vector
  };

  // Of a slot: the vector that joined it last; the slot it absorbed last; and the slot that its
  // survivor absorbed before.
  struct Chain {
    std::uint32_t newest = kNone, first_absorbed = kNone, next_absorbed = kNone;
  };

  // A vector of the subcluster of slot `home`, with older ones in the same chain if `chained`.
  struct Cursor {
    std::uint32_t member, home;
    bool chained;
    bool operator<(const Cursor& other) const { return member < other.member; }
  };

  void join(std::uint32_t slot) {
    make_room_for_one(holders_);
    make_room_for_one(previous_);
    const auto member = static_cast<std::uint32_t>(holders_.size());
    holders_.push_back(slot);
    previous_.push_back(slot == kRemoved ? kNone : chains_[slot].newest);
    if (slot != kRemoved) chains_[slot].newest = member;
  }

  void put(std::size_t member, std::uint32_t slot) {
    const auto moved = static_cast<std::uint32_t>(member);
    if (open_) make_room_for_one(moves_);
    const bool listed = slot != kRemoved && moved_.insert({slot, moved}).second;
    if (open_) moves_.push_back({moved, holders_[member], listed});
    holders_[member] = slot;
  }

  void take_back(const Move& move) {
    if (move.listed) moved_.erase({holders_[move.member], move.member});
    holders_[move.member] = move.from;
  }

  void take_back(std::uint32_t absorbed) {
    chains_[survivors_[absorbed]].first_absorbed = chains_[absorbed].next_absorbed;
    survivors_[absorbed] = absorbed;
  }

  // Adds cursors to the vectors of a live slot: its chain, those it absorbed, and what was moved there.
  void add_cursors(std::uint32_t home, std::int64_t before, std::vector<Cursor>& cursors) {
    std::vector<std::uint32_t> todo{home};
    while (!todo.empty()) {
      const std::uint32_t slot = todo.back();
      todo.pop_back();
      ++n_visited;
      Cursor cursor{kNone, home, true};
      if (reach(cursor, chains_[slot].newest, before)) cursors.push_back(cursor);
      for (auto each = moved_.lower_bound({slot, 0}); each != moved_.end() && each->first == slot;
           ++each) {
        ++n_visited;
        if (is_at(each->second, home, before)) cursors.push_back({each->second, home, false});
      }
      for (std::uint32_t next = chains_[slot].first_absorbed; next != kNone;
           next = chains_[next].next_absorbed) {
        todo.push_back(next);
      }
    }
  }

  // Sets a cursor to the newest vector of its subcluster in a chain from `member` on. Returns false if
  // there is none.
  bool reach(Cursor& cursor, std::uint32_t member, std::int64_t before) {
    for (; member != kNone; member = previous_[member]) {
      ++n_visited;
      if (!is_at(member, cursor.home, before)) continue;
      cursor.member = member;
      return true;
    }
    return false;
  }

  bool is_at(std::uint32_t member, std::uint32_t home, std::int64_t before) {
    return static_cast<std::int64_t>(member) < before && settled(holders_[member]) == home;
  }

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
    if (kept_) return shortened(slot);
    while (survivors_[slot] != slot) {
      slot = survivors_[slot] = survivors_[survivors_[slot]];
    }
    return slot;
  }

  // Follows merges, and shortens the chains of those that no record has.
  std::uint32_t shortened(std::uint32_t slot) {
    for (std::uint32_t next; (next = survivors_[slot]) != slot; slot = survivors_[slot]) {
      if (!held_[next]) survivors_[slot] = survivors_[next];
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
  std::int64_t first_ = 0;              // number of the first subcluster created here
  std::vector<std::int64_t> old_;       // numbers of those in the state that was read, rising
  std::vector<std::uint32_t> holders_;  // slot of each vector, or one that its subcluster absorbed
  std::vector<std::uint32_t> survivors_;  // of each slot: itself, or the slot that absorbed it
  std::vector<std::uint32_t> previous_;   // of each vector: the one before it in its chain
  std::vector<Chain> chains_;             // of each slot
  std::vector<std::uint8_t> held_;        // whether a record has the merge by which a slot has gone
  std::set<std::pair<std::uint32_t, std::uint32_t>> moved_;  // slots and vectors moved there
  std::vector<std::uint32_t> merges_;  // of the open change: slots absorbed, oldest first
  std::vector<Move> moves_;
  std::size_t n_holders_ = 0, n_survivors_ = 0;
  bool open_ = false;
  bool kept_ = false;  // changes that were committed may be taken back

 public:
  struct Record {
    std::vector<std::uint32_t> merges;
    std::vector<Move> moves;
    std::size_t n_holders = 0;
  };
};

}  // namespace linkstream
