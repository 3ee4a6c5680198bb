// What: finds the row of a subcluster by its number. Adding vectors does not need it.
// Python twin: none; `Graph.nodes` is a dict.
// Invariants: a noted row is used only if the row still has that number. A number that is not found
//   after the rows whose number was set since have been noted is that of no subcluster. Notes are
//   never removed one by one; when half of the table is used, all rows are noted anew.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace linkstream {

class Finder {
 public:
  explicit Finder(Graph& graph) : graph_(graph) {}

  // Returns the row of a number, or kNoRow.
  Row operator()(std::int64_t number) {
    if (number < 0) return kNoRow;
    const Row found = noted(number);
    if (found != kNoRow || !graph_.renumbered.any()) return found;
    note_new();
    return noted(number);
  }

 private:
  bool bears(Row row, std::int64_t number) const {
    return row < graph_.rows.size() && graph_.number(row) == number;
  }

  std::size_t place_of(std::int64_t number) const {
    const std::uint64_t mixed = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(mixed >> 32) & (notes_.size() - 1);
  }

  Row noted(std::int64_t number) const {
    if (notes_.empty()) return kNoRow;
    std::size_t place = place_of(number);
    while (notes_[place] != kNoRow && !bears(notes_[place], number)) {
      place = (place + 1) & (notes_.size() - 1);
    }
    return notes_[place];
  }

  void note(Row row) {
    std::size_t place = place_of(graph_.number(row));
    while (notes_[place] != kNoRow) place = (place + 1) & (notes_.size() - 1);
    notes_[place] = row;
    ++used_;
  }

  void note_new() {
    const std::vector<Row>& rows = graph_.renumbered.rows;
    if (graph_.renumbered.all || 2 * (used_ + rows.size()) > notes_.size()) {
      note_all();
    } else {
      for (const Row row : rows) {
        if (row < graph_.rows.size() && graph_.number(row) >= 0) note(row);
      }
    }
    graph_.renumbered.clear();
  }

  void note_all() {
    std::size_t size = 64;
    while (size < 4 * static_cast<std::size_t>(graph_.n_nodes)) size *= 2;
    notes_.assign(size, kNoRow);
    used_ = 0;
    graph_.each_node([&](Row row) { note(row); });
  }

  Graph& graph_;
  std::vector<Row> notes_;
  std::size_t used_ = 0;
};

}  // namespace linkstream
