// What: what reviews and suggestions ask about all clusters, kept up with an engine between questions.
// Python twin: engine/cluster_index.py, the definition.
// Invariants: answers are those of the clusters when they were last read to the end. Only `read` looks at
//   the engine, so that the engine can go on while a question is computed.
// Memory: that of cluster_table.hpp, pair_search.hpp (d padded to 64 for each cluster) and, for each kind
//   of question that was asked, pair_ranking.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "best_few.hpp"
#include "cluster_bars.hpp"
#include "cluster_table.hpp"
#include "pair_ranking.hpp"
#include "pool.hpp"

namespace linkstream {

struct RankedEdge {
  Row row;
  const EdgeFigures* edge;
  double worth;

  std::pair<std::int64_t, std::int64_t> numbers() const { return {edge->a, edge->b}; }
  std::pair<double, double> figures() const {
    return {static_cast<double>(edge->smaller()), edge->margin()};
  }
};

class ClusterIndex {
 public:
  using Pause = PairRanking::Pause;

  static constexpr std::size_t kListed = std::size_t{1} << 16;

  // `listed`: how many pairs to list, about; 0: kListed. Short lists are for tests.
  ClusterIndex(const Kernel& kernel, std::size_t dimension, const Thresholds& thresholds,
               std::size_t threads, std::size_t listed)
      : pool_(threads),
        table_(kernel, dimension, thresholds),
        bars_(table_),
        search_(kernel, pool_, table_),
        margins_(table_, bars_, search_, pool_.size(), listed ? listed : kListed),
        gains_(table_, bars_, search_, pool_.size(), listed ? listed : kListed) {}

  const ClusterTable& table() const { return table_; }
  std::int64_t n_scanned() const { return margins_.n_scanned + gains_.n_scanned; }
  std::int64_t n_read = 0;  // clusters that were read; a test counts them

  // Reads what changed in a graph; see ClusterTable.
  bool read(Graph& graph, bool parts, std::size_t budget) {
    graph.note_stale();
    return table_.read(graph, parts, budget, [this](Row row) {
      ++n_read;
      if (row >= recode_.size()) recode_.resize(row + 1 + row / 2, 0);
      recode_[row] = 1;
      changed(row);
    });
  }

  void restrict(const ClusterRestrictions& given) {
    bars_.set(given, [this](Row row) { changed(row); });
  }

  std::vector<RankedPair> best_pairs(const Worth& worth, std::size_t limit, const Pause& pause) {
    place_changed(pause);
    return (worth.of_margin ? margins_ : gains_).best(worth, limit, pause);
  }

  // Returns the edge of each cluster that is worth most to ask about, of the best clusters, and edges of
  // about the same worth.
  std::vector<RankedEdge> best_cuts(const Worth& worth, std::size_t limit) const {
    BestFew<RankedEdge> best(limit, false);
    std::vector<RankedEdge> mine;
    each_free([&](Row row, const EdgeFigures& edge) {
      if (!mine.empty() && mine[0].row != row) add_best(mine, best);
      mine.push_back({row, &edge, gain_of_cut(worth, edge)});
    });
    if (!mine.empty()) add_best(mine, best);
    std::vector<RankedEdge> found = best.take(), all;
    for (const RankedEdge& cut : found) {
      for (const EdgeFigures& edge : table_.edges(cut.row)) {
        const double gain = gain_of_cut(worth, edge);
        if (edge.rule != kPinned && gain >= about(cut.worth, false))
          all.push_back({cut.row, &edge, gain});
      }
    }
    return all;
  }

  // Returns the edges of the least margins: of the edge itself or of its parts, whichever is less; of an
  // edge that is not tested that of the parts.
  std::vector<RankedEdge> weakest(std::size_t limit) const {
    BestFew<RankedEdge> best(limit, true);
    each_free([&](Row row, const EdgeFigures& edge) {
      const double own = edge.end_similarity - edge.end_threshold;
      const bool blended = edge.margin() < own || edge.rule != kTested;
      best.add({row, &edge, -(blended ? edge.margin() : own)});
    });
    return best.take();
  }

  // Returns the pinned edges.
  std::vector<RankedEdge> pinned() const {
    std::vector<RankedEdge> found;
    for (Row row = 0; row < table_.size(); ++row) {
      for (const EdgeFigures& edge : table_.edges(row)) {
        if (edge.rule == kPinned) found.push_back({row, &edge, 0.0});
      }
    }
    return found;
  }

 private:
  void changed(Row row) {
    margins_.changed(row);
    gains_.changed(row);
  }

  // Takes the changed clusters over into the search.
  void place_changed(const Pause& pause) {
    for (Row row = 0; row < recode_.size(); ++row) {
      if (!recode_[row]) continue;
      const bool there = table_.is_there(row) && !table_.is_zero(row);
      if (there && search_.has(row)) {
        search_.update(row);
      } else if (there) {
        search_.add(row);
      } else if (search_.has(row)) {
        search_.remove(row);
      }
      recode_[row] = 0;
      pause(0.0);
    }
    if (search_.n_places() > 2 * table_.size() + kChunkRows) lay_out_anew(pause);
  }

  void lay_out_anew(const Pause& pause) {
    std::vector<Row> all;
    for (Row row = 0; row < table_.size(); ++row) {
      if (table_.is_there(row) && !table_.is_zero(row)) all.push_back(row);
    }
    search_.arrange(all, pause);
  }

  // Calls visit for each edge that is not pinned, of clusters that take part.
  template <class Visit>
  void each_free(Visit visit) const {
    for (Row row = 0; row < table_.size(); ++row) {
      if (!bars_.takes_part(row)) continue;
      for (const EdgeFigures& edge : table_.edges(row)) {
        if (edge.rule != kPinned) visit(row, edge);
      }
    }
  }

  static double gain_of_cut(const Worth& worth, const EdgeFigures& edge) {
    const Worth mirrored{false, -worth.even, worth.spread};
    return mirrored(static_cast<double>(edge.smaller()), -edge.margin());
  }

  static void add_best(std::vector<RankedEdge>& mine, BestFew<RankedEdge>& best) {
    const auto better = [](const RankedEdge& one, const RankedEdge& other) {
      return one.worth != other.worth ? one.worth > other.worth : one.numbers() < other.numbers();
    };
    best.add(*std::min_element(mine.begin(), mine.end(), better));
    mine.clear();
  }

  Pool pool_;
  ClusterTable table_;
  ClusterBars bars_;
  PairRanking::Search search_;
  PairRanking margins_, gains_;
  std::vector<std::uint8_t> recode_;
};

}  // namespace linkstream
