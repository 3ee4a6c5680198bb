// What: from a subcluster's number to its row. Adding never asks, so adding pays nothing for it.
// Invariants: a note of where a number was is only believed where the row still bears that number;
//   else, if a subcluster was born or is no more since, all rows are walked and noted anew.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "journal.hpp"

namespace linkstream {

class Finder {
 public:
  Finder(const Graph& graph, const Journal& journal) : graph_(graph), journal_(journal) {}

  // The row of a number, or none.
  Row operator()(std::int64_t number) {
    if (number < 0) return kNoRow;
    if (bears(noted(number), number)) return noted(number);
    if (born_ != journal_.free_subcluster || there_ != graph_.n_nodes) note_all();
    if (noted(number) == kNoRow || bears(noted(number), number)) return noted(number);
    Row found = kNoRow;  // another number has the same note
    graph_.each_node([&](Row row) {
      if (graph_.number(row) == number) found = row;
    });
    return found;
  }

  // Numbers that were given are free again: what was noted may be wrong of those to come.
  void forget() {
    std::fill(notes_.begin(), notes_.end(), kNoRow);
    born_ = there_ = -1;
  }

 private:
  bool bears(Row row, std::int64_t number) const {
    return row < graph_.rows.size() && graph_.number(row) == number;
  }

  Row noted(std::int64_t number) const {
    if (notes_.empty()) return kNoRow;
    return notes_[static_cast<std::size_t>(number) & (notes_.size() - 1)];
  }

  void note_all() {
    std::size_t size = 64;
    while (size < 4 * static_cast<std::size_t>(graph_.n_nodes)) size *= 2;
    notes_.assign(size, kNoRow);
    born_ = journal_.free_subcluster;
    there_ = graph_.n_nodes;
    graph_.each_node([&](Row row) {
      notes_[static_cast<std::size_t>(graph_.number(row)) & (size - 1)] = row;
    });
  }

  const Graph& graph_;
  const Journal& journal_;
  std::vector<Row> notes_;
  std::int64_t born_ = -1, there_ = -1;  // when all were noted
};

}  // namespace linkstream
