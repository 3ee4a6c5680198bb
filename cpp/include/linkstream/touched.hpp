// What: rows that changed since a block of vectors was scanned, packed together so that each later
//   vector of the block is scanned against them alone.
// Python twin: none; the reference engine scans for one vector at a time.
// Invariants: a row for which `has` is true must not be taken from the scan of the block; if it still
//   exists, `propose` proposes it. A vector touches at most one more row (a merge frees a slot before
//   the next), so a block never needs more slots than twice its vectors.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "rows.hpp"
#include "scan.hpp"

namespace linkstream {

class Touched {
 public:
  Touched(std::size_t capacity, std::size_t width)
      : codes_(capacity, width), hits_(capacity), rows_(capacity, kNoRow) {}

  void begin_block() { active_ = true; }

  void end_block() {
    for (const Row row : known_) slots_[row] = kUnknown;
    for (std::size_t slot = 0; slot < used_; ++slot) codes_.clear(slot);
    known_.clear();
    free_.clear();
    used_ = 0;
    active_ = false;
  }

  bool is_full() const { return free_.empty() && used_ == rows_.size(); }

  bool has(Row row) const { return row < slots_.size() && slots_[row] != kUnknown; }

  void write(Row row, const std::int8_t* codes, float scale, float residual) {
    if (!active_) return;
    std::int32_t& slot = slot_of(row);
    if (slot == kGone) {
      if (free_.empty()) free_.push_back(static_cast<std::int32_t>(used_++));
      slot = free_.back();
      free_.pop_back();
      rows_[static_cast<std::size_t>(slot)] = row;
    }
    codes_.write(static_cast<std::size_t>(slot), codes, scale, residual);
  }

  // Forgets a row that was removed.
  void drop(Row row) {
    if (!active_) return;
    std::int32_t& slot = slot_of(row);
    if (slot == kGone) return;
    codes_.clear(static_cast<std::size_t>(slot));
    free_.push_back(slot);
    slot = kGone;
  }

  // Proposes the rows whose similarity to a query may reach `bar`.
  void propose(const Kernel& kernel, const Queries& queries, std::size_t index, float bar,
               std::vector<Proposal>& proposals) const {
    proposals.clear();
    if (!used_) return;
    VectorCode code = queries.parameters(index);
    code.bar = bar;
    const ScanJob job = codes_.job(0, used_, queries.codes(index), &code, 1);
    const std::size_t n = kernel.scan(job, hits_.data());
    for (std::size_t i = 0; i < n; ++i) proposals.push_back({rows_[hits_[i].row], hits_[i].upper});
  }

 private:
  static constexpr std::int32_t kUnknown = -1, kGone = -2;

  // Returns the slot of a row, which is known from now on.
  std::int32_t& slot_of(Row row) {
    if (row >= slots_.size()) slots_.resize(row + 1 + row / 2, kUnknown);
    if (slots_[row] == kUnknown) {
      known_.push_back(row);  // first: `end_block` forgets the rows in this list
      slots_[row] = kGone;
    }
    return slots_[row];
  }

  CodeTiles codes_;
  mutable std::vector<Hit> hits_;
  std::vector<Row> rows_;
  std::vector<std::int32_t> slots_;  // of each row: its slot here, unknown, or gone
  std::vector<Row> known_;
  std::vector<std::int32_t> free_;
  std::size_t used_ = 0;
  bool active_ = false;
};

}  // namespace linkstream
