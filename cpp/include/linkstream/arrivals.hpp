// What: a block of vectors (or sums of vectors) of one call, and the nearest subcluster of each.
// Paper: equation 19. Python twin: `Assess.nearest` of engine/assess.py.
// Invariants: a batch gives the decisions of one by one. The block is scanned once against the rows;
//   rows touched since are scanned again for each vector; if the few rows of its shortlist no longer
//   decide, the vector is scanned again alone (docs/choices.md, "A batch equals one by one").
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "cluster_scan.hpp"
#include "graph.hpp"
#include "scan.hpp"

namespace linkstream {

inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// J and x.mu_J; no row if no similarity reaches the lowest threshold.
struct Nearest {
  Row row = kNoRow;
  double similarity = kNothing;
  Integer product = 0;         // x.S
  std::size_t place = kAlone;  // of the query for clusters, in the scan of the block
};

inline constexpr double kBlockMicroseconds = 100e3;
inline constexpr std::size_t kBlockLeast = 16;

template <class Arriving>
class Arrivals {
 public:
  Arrivals(Graph& graph, Search& search)
      : graph_(graph),
        search_(search),
        queries_(kBlockMax, graph.rows.width()),
        lowest_(graph.thresholds.lowest()),
        // Rounded down, so that no row that reaches the lowest threshold is below the bar.
        bar_(static_cast<float>(lowest_) - 1e-6f) {}

  // Larger blocks make the scan of a vector cheaper, but more rows are touched within a block. The
  // size grows with the table, to a limit that keeps a block short enough to be interrupted.
  std::size_t block_size() const {
    const auto row_products = static_cast<double>(graph_.rows.size() * graph_.rows.width() + 1);
    const double most = kBlockMicroseconds * graph_.kernel.products_per_microsecond / row_products;
    const std::size_t longest = most < kBlockMax ? static_cast<std::size_t>(most) : kBlockMax;
    return std::min(std::clamp<std::size_t>(graph_.rows.size() / 8, 1, kBlockMax / 2),
                    std::max(longest, kBlockLeast));
  }

  // Begins a block; `each(i)` returns the i-th vector or sum.
  template <class Each>
  void begin(std::size_t n, Each each) {
    block_.resize(n);
    lists_.resize(std::max(lists_.size(), n));
    for (std::size_t i = 0; i < n; ++i) {
      block_[i] = each(i);
      graph_.ask(queries_, block_[i], bar_, i);
    }
    if (n == 1) {
      search_.nearest(graph_.rows, queries_, 0, lists_[0]);
      lists_[0].bar = bar_;  // every row that may be the nearest is in the list
    } else {
      search_.best_few(graph_.rows, queries_, n, lists_.data());
      graph_.touched.begin_block();
    }
  }

  const Arriving& operator[](std::size_t index) const { return block_[index]; }
  const Queries& queries() const { return queries_; }

  // Whether the i-th may be similar enough to join a subcluster, as far as the scan has shown.
  bool may_join(std::size_t index) const {
    const std::vector<Proposal>& rows = lists_[index].rows;
    const double t_s = graph_.thresholds.subcluster_similarity;
    return std::any_of(rows.begin(), rows.end(),
                       [=](const Proposal& proposal) { return proposal.upper >= t_s; });
  }

  Nearest nearest(std::size_t index) {
    Nearest best;
    Shortlist& list = lists_[index];
    const Touched& touched = graph_.touched;
    list.rows.erase(std::remove_if(list.rows.begin(), list.rows.end(),
                                   [&](const Proposal& p) { return touched.has(p.row); }),
                    list.rows.end());
    settle(list.rows, index, best);
    const float reach = best.row == kNoRow ? bar_ : static_cast<float>(best.similarity) - 1e-6f;
    touched.propose(graph_.kernel, queries_, index, reach, proposals_);
    settle(proposals_, index, best);
    // Rows outside the shortlist are below its bar; only they could still beat the best.
    const bool decided = list.bar <= bar_ || (best.row != kNoRow && best.similarity >= list.bar);
    if (!decided) {
      best = Nearest();
      search_.nearest(graph_.rows, queries_, index, list);
      settle(list.rows, index, best);
    }
    return best;
  }

  // The same whatever the similarity. The vector is scanned alone, so call it after `nearest`.
  Nearest nearest_of_all(std::size_t index) {
    Nearest best;
    lowest_ = kBelowAll;
    queries_.set_bar(index, static_cast<float>(kBelowAll));
    search_.nearest(graph_.rows, queries_, index, lists_[index]);
    settle(lists_[index].rows, index, best);
    lowest_ = graph_.thresholds.lowest();
    return best;
  }

 private:
  // Computes exact similarities of the proposed rows, the highest bound first.
  void settle(std::vector<Proposal>& proposals, std::size_t index, Nearest& best) {
    if (proposals.empty()) return;
    std::iter_swap(proposals.begin(),
                   std::min_element(proposals.begin(), proposals.end(), Search::higher));
    weigh(proposals[0], index, best);
    const double reached = best.row == kNoRow ? lowest_ : best.similarity;
    const auto rest = std::remove_if(proposals.begin() + 1, proposals.end(),
                                     [=](const Proposal& p) { return p.upper < reached; });
    std::sort(proposals.begin() + 1, rest, Search::higher);
    for (auto proposal = proposals.begin() + 1; proposal != rest; ++proposal) {
      if (best.row != kNoRow && proposal->upper < best.similarity) break;
      weigh(*proposal, index, best);
    }
  }

  void weigh(const Proposal& proposal, std::size_t index, Nearest& best) {
    const Node& node = graph_.node(proposal.row);
    const Arriving& x = block_[index];
    const Integer product = graph_.product(x, graph_.rows.sum(proposal.row), node.count);
    const double score = similarity(product, x.root, node.root);
    // Tie: the older subcluster.
    const bool better =
        score >= lowest_ && (best.row == kNoRow || score > best.similarity ||
                             (score == best.similarity && node.number < graph_.number(best.row)));
    if (better) best = {proposal.row, score, product};
  }

  static constexpr double kBelowAll = -2.0;  // less than any similarity

  Graph& graph_;
  Search& search_;
  Queries queries_;
  std::vector<Arriving> block_;
  std::vector<Shortlist> lists_;
  std::vector<Proposal> proposals_;
  double lowest_;
  float bar_;
};

}  // namespace linkstream
