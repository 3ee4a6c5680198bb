// What: the table of subcluster sums and of their int8 codes, in chunks that never move.
// Paper: the centroids of section 3.2. Python twin: engine/rows.py.
// Invariants: a free row has scale 0 and a residual so negative that no scan reports it. Rows are
//   re-encoded whenever their sum changes; freed rows are reused before new ones are made. While a
//   change is open, rows are recorded before they are taken or released; a rollback needs no memory.
// Memory at dimension d: 8 d bytes for the sum, d padded to 64 for the codes, 8 for the bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "kernels.hpp"
#include "room.hpp"

namespace linkstream {

using Row = std::uint32_t;
inline constexpr Row kNoRow = 0xffffffff;  // no row

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using Block = std::unique_ptr<T[], FreeMemory>;

template <class T>
Block<T> aligned_block(std::size_t count) {
  const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, bytes ? bytes : 64);
  if (!memory) throw std::bad_alloc();
  return Block<T>(static_cast<T*>(memory));
}

inline constexpr float kFreeResidual = -1e30f;

// Codes of a fixed number of rows (a multiple of kScanRows), in the layout of the kernels.
class CodeTiles {
 public:
  CodeTiles(std::size_t rows, std::size_t width)
      : size_(rows),
        width_(width),
        tiles_(aligned_block<std::uint8_t>(rows * width)),
        scales_(aligned_block<float>(rows)),
        residuals_(aligned_block<float>(rows)) {
    std::fill_n(tiles_.get(), rows * width, std::uint8_t{128});
    std::fill_n(scales_.get(), rows, 0.0f);
    std::fill_n(residuals_.get(), rows, kFreeResidual);
  }

  void write(std::size_t slot, const std::int8_t* codes, float scale, float residual) {
    std::uint8_t* target =
        tiles_.get() + slot / kTileRows * kTileRows * width_ + slot % kTileRows * 4;
    for (std::size_t i = 0; i < width_; i += 4, target += 4 * kTileRows) {
      std::uint32_t four;
      __builtin_memcpy(&four, codes + i, 4);
      four ^= 0x80808080u;  // signed code + 128, byte by byte
      __builtin_memcpy(target, &four, 4);
    }
    scales_[slot] = scale;
    residuals_[slot] = residual;
  }

  void clear(std::size_t slot) {
    scales_[slot] = 0.0f;
    residuals_[slot] = kFreeResidual;
  }

  std::size_t size() const { return size_; }
  float residual(std::size_t slot) const { return residuals_[slot]; }

  // Returns the scan of rows from `first` (a multiple of kScanRows) on against vectors.
  ScanJob job(std::size_t first, std::size_t rows, const std::int8_t* vectors,
              const VectorCode* codes, std::size_t n_vectors) const {
    const std::size_t rounded = (rows + kScanRows - 1) / kScanRows * kScanRows;
    return {tiles_.get() + first * width_,
            scales_.get() + first,
            residuals_.get() + first,
            rounded,
            width_,
            vectors,
            codes,
            n_vectors};
  }

 private:
  std::size_t size_, width_;
  Block<std::uint8_t> tiles_;
  Block<float> scales_;
  Block<float> residuals_;
};

inline constexpr std::size_t kChunkRows = 1024;

class Rows {
 public:
  struct Step {
    enum Kind : std::uint8_t { kMade, kReused, kReleased } kind;
    Row row;
  };

  explicit Rows(std::size_t dimension) : dimension_(dimension), width_(padded(dimension)) {}

  std::size_t dimension() const { return dimension_; }
  std::size_t width() const { return width_; }
  std::size_t size() const { return size_; }  // rows ever made, with the free ones
  std::size_t n_chunks() const { return chunks_.size(); }

  Row take() {
    const bool made = free_.empty();
    if (made && size_ == chunks_.size() * kChunkRows) chunks_.emplace_back(dimension_, width_);
    const Row row = made ? static_cast<Row>(size_) : free_.back();
    note({made ? Step::kMade : Step::kReused, row});
    if (made) {
      ++size_;
    } else {
      free_.pop_back();
    }
    return row;
  }

  void release(Row row) {
    make_room_for_one(free_);
    note({Step::kReleased, row});
    clear_codes(row);
    free_.push_back(row);
  }

  void clear_codes(Row row) { chunks_[row / kChunkRows].codes.clear(row % kChunkRows); }

  // Changes. After a rollback the caller writes the codes of the rows that exist again.

  void begin() { open_ = true; }

  void commit() {
    forget_all(steps_);
    open_ = false;
  }

  // Commits, and moves what a rollback needs to a record.
  void commit(std::vector<Step>& record) {
    hand_over(steps_, record);
    open_ = false;
  }

  // Takes what a rollback needs from the record of the last change.
  void reopen(std::vector<Step>& record) { steps_ = std::move(record); }

  void rollback() {
    open_ = false;
    for (; !steps_.empty(); steps_.pop_back()) {
      const Step& step = steps_.back();
      if (step.kind == Step::kReleased) {
        free_.pop_back();
        continue;
      }
      clear_codes(step.row);
      if (step.kind == Step::kMade) {
        --size_;
      } else {
        free_.push_back(step.row);
      }
    }
  }

  // Calls visit(row) for each row that a change has released; it may have been taken again.
  template <class Visit>
  static void each_released(const std::vector<Step>& steps, Visit visit) {
    for (const Step& step : steps) {
      if (step.kind == Step::kReleased) visit(step.row);
    }
  }
  const std::vector<Step>& steps() const { return steps_; }

  std::int64_t* sum(Row row) {
    return chunks_[row / kChunkRows].sums.get() + row % kChunkRows * dimension_;
  }
  const std::int64_t* sum(Row row) const {
    return chunks_[row / kChunkRows].sums.get() + row % kChunkRows * dimension_;
  }

  CodeTiles& codes(Row row) { return chunks_[row / kChunkRows].codes; }
  const CodeTiles& chunk(std::size_t index) const { return chunks_[index].codes; }
  std::size_t rows_in_chunk(std::size_t index) const {
    return std::min(kChunkRows, size_ - index * kChunkRows);
  }

 private:
  void note(const Step& step) {
    if (open_) steps_.push_back(step);
  }

  struct Chunk {
    Chunk(std::size_t dimension, std::size_t width)
        : sums(aligned_block<std::int64_t>(kChunkRows * dimension)), codes(kChunkRows, width) {}
    Block<std::int64_t> sums;
    CodeTiles codes;
  };

  std::size_t dimension_;
  std::size_t width_;
  std::size_t size_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<Row> free_;
  std::vector<Step> steps_;  // of the open change, oldest first
  bool open_ = false;
};

}  // namespace linkstream
