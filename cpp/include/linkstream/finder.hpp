// What: finds the row of a subcluster by its number. Adding vectors does not need it.
// Python twin: none; `Graph.nodes` is a dict.
// Invariants: a noted row is used only if the row still has that number; otherwise, if a subcluster was
//   created or removed since, all rows are noted again.
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

  // Returns the row of a number, or kNoRow.
  Row operator()(std::int64_t number) {
    if (number < 0) return kNoRow;
    if (bears(noted(number), number)) return noted(number);
    if (created_ != journal_.free_subcluster || n_nodes_ != graph_.n_nodes) note_all();
    if (noted(number) == kNoRow || bears(noted(number), number)) return noted(number);
    Row found = kNoRow;  // another number has the same note
    graph_.each_node([&](Row row) {
      if (graph_.number(row) == number) found = row;
    });
    return found;
  }

  // Forgets all notes: numbers were rolled back and will be given again.
  void forget() {
    std::fill(notes_.begin(), notes_.end(), kNoRow);
    created_ = n_nodes_ = -1;
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
    created_ = journal_.free_subcluster;
    n_nodes_ = graph_.n_nodes;
    graph_.each_node(
        [&](Row row) { notes_[static_cast<std::size_t>(graph_.number(row)) & (size - 1)] = row; });
  }

  const Graph& graph_;
  const Journal& journal_;
  std::vector<Row> notes_;
  std::int64_t created_ = -1, n_nodes_ = -1;  // when all rows were noted
};

}  // namespace linkstream
