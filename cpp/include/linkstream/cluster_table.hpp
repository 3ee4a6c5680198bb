// What: all clusters as wholes at one moment: direction, size and weight of each, and the figures of its
//   edges. It is kept up with a graph: only clusters that changed are read again.
// Paper: beyond it (docs/identity.md, "Reviews"). Python twin: `Comparison` and `Parts` of
//   engine/comparison.py.
// Invariants: the row of a cluster is its component; a row without a cluster has the ID -1. Similarities
//   and thresholds are the twin's bit for bit.
// Numerics: directions, as in group_rows.hpp.
// Memory at dimension d: 4 d + 56 bytes for each cluster, 72 for each edge; while a cluster is read, 8 d
//   for each node on the way from its root to the node at hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "group_rows.hpp"

namespace linkstream {

// An edge: its ends by number, the older first; how many vectors are on the side of each; the figures of
// the two parts that it holds together, and of its ends.
struct EdgeFigures {
  std::int64_t a, b, size_a, size_b, rule;
  double similarity, threshold;
  double end_similarity, end_threshold;

  double margin() const { return similarity - threshold; }
  std::int64_t smaller() const { return std::min(size_a, size_b); }
};

class ClusterTable {
 public:
  ClusterTable(const Kernel& kernel, std::size_t dimension, const Thresholds& thresholds)
      : kernel_(kernel), dimension_(dimension), test_(thresholds) {
    std::size_t width = 1;
    while (width < dimension_) width *= 2;
    room_.resize(width);
    for (auto* row : {&below_, &rest_, &total_}) row->resize(dimension_);
    for (auto* unit : {&ours_, &theirs_}) unit->resize(dimension_);
  }

  std::size_t size() const { return clusters_.size(); }
  std::size_t dimension() const { return dimension_; }
  const Thresholds& thresholds() const { return test_; }
  bool is_there(Row row) const { return clusters_[row].cluster >= 0; }
  bool is_zero(Row row) const { return clusters_[row].zero; }
  std::int64_t cluster(Row row) const { return clusters_[row].cluster; }
  std::int64_t count(Row row) const { return clusters_[row].count; }
  std::int64_t heart(Row row) const { return clusters_[row].heart; }
  const std::vector<EdgeFigures>& edges(Row row) const { return clusters_[row].edges; }
  double size_of(Row row) const { return static_cast<double>(clusters_[row].count); }
  double mass(Row row) const { return clusters_[row].mass; }
  double reach(Row row) const { return 1.0 / std::sqrt(test_.spread(mass(row))); }
  const std::int32_t* direction(Row row) const {
    return directions_[row / kChunkRows].get() + row % kChunkRows * dimension_;
  }

  double similarity(Row a, Row b) const { return cosine(direction(a), direction(b)); }
  double required(Row a, Row b) const { return test_.edge(mass(a), mass(b)); }
  double margin(Row a, Row b) const { return similarity(a, b) - required(a, b); }

  // Returns the row of a cluster; kNoRow if it was not there when the table was read.
  Row row_of(std::int64_t cluster) const {
    const auto found = by_id_.find(cluster);
    return found == by_id_.end() ? kNoRow : found->second;
  }

  // Reads what changed since the last call, but ends after about `budget` numbers of sums. Returns
  // whether all is read; `parts`: the edges, too. Calls changed(row) for each cluster that changed.
  template <class Changed>
  bool read(Graph& graph, bool parts, std::size_t budget, Changed changed) {
    const std::size_t n = graph.forest.components.size();
    grow(std::max(n, size()));
    std::size_t done = 0;
    for (Row row = 0; row < size(); ++row) {
      const bool gone = row >= n;
      if (gone ? is_there(row) : graph.forest.stale[row] != 0) {
        changed(row);
        done += gone ? forget(row) : read_whole(graph, row);
        clusters_[row].unread = true;
        if (!gone) graph.forest.stale[row] = 0;
      }
      if (parts && !gone && clusters_[row].unread) done += read_parts(graph, row);
      if (done * dimension_ > budget) return row + 1 == size();
    }
    return true;
  }

 private:
  struct Cluster {
    std::int64_t cluster = -1, count = 0, heart = -1;
    double mass = 1.0;
    bool zero = true;    // the sum has no direction
    bool unread = true;  // the edges are not those of the cluster
    std::vector<EdgeFigures> edges;
  };

  // A node of a cluster, the place of its parent, and the edge to it.
  struct Visit {
    Row row;
    std::size_t above;
    Edge edge;
  };

  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::size_t kFigures = 6;  // passes over a sum for the figures of an edge, about

  void grow(std::size_t n) {
    while (directions_.size() * kChunkRows < n) {
      directions_.push_back(aligned_block<std::int32_t>(kChunkRows * dimension_));
    }
    clusters_.resize(n);
  }

  std::int32_t* direction(Row row) {
    return directions_[row / kChunkRows].get() + row % kChunkRows * dimension_;
  }

  double cosine(const std::int32_t* a, const std::int32_t* b) const {
    return static_cast<double>(kernel_.dot_directions(a, b, dimension_)) /
           (kDirectionScale * kDirectionScale);
  }

  double direct(const std::int64_t* sum, std::int32_t* unit) {
    return kernel_.direction(sum, dimension_, room_.data(), unit);
  }

  void set_id(Row row, std::int64_t cluster) {
    const auto before = by_id_.find(clusters_[row].cluster);
    if (before != by_id_.end() && before->second == row) by_id_.erase(before);
    if (cluster >= 0) by_id_[cluster] = row;
    clusters_[row].cluster = cluster;
  }

  std::size_t forget(Row row) {
    set_id(row, -1);
    clusters_[row].count = 0;
    clusters_[row].edges = {};
    return 1;
  }

  // Reads direction, size and weight of a cluster. Returns how many sums were read.
  std::size_t read_whole(Graph& graph, Row row) {
    const ClusterStats& stats = graph.forest.components[row];
    if (stats.cluster < 0 || stats.vectors == 0) return forget(row);
    list_nodes(graph, stats.member);
    add_up(graph);
    Cluster& found = clusters_[row];
    set_id(row, stats.cluster);
    found.count = stats.vectors;
    found.mass = stats.mass();
    found.zero = direct(total_.data(), direction(row)) == 0.0;
    return order_.size();
  }

  // Lists the nodes of a tree, each after its parent.
  void list_nodes(const Graph& graph, Row start) {
    order_.clear();
    todo_.assign(1, {start, kNone, kNoEdge});
    while (!todo_.empty()) {
      const Visit visit = todo_.back();
      todo_.pop_back();
      order_.push_back(visit);
      for (const HeldEdge& held : graph.node(visit.row).edges) {
        if (held.edge == visit.edge) continue;
        todo_.push_back(
            {graph.forest.other_end(held.edge, visit.row), order_.size() - 1, held.edge});
      }
    }
  }

  void add_up(const Graph& graph) {
    std::fill(total_.begin(), total_.end(), std::int64_t{0});
    for (const Visit& visit : order_) add(total_.data(), graph.rows.sum(visit.row));
  }

  void add(std::int64_t* total, const std::int64_t* more) const {
    for (std::size_t i = 0; i < dimension_; ++i) total[i] += more[i];
  }

  // Reads the edges of a cluster, and its node most similar to the whole (tie: the older).
  std::size_t read_parts(Graph& graph, Row row) {
    Cluster& found = clusters_[row];
    if (found.cluster < 0) {
      found.unread = false;
      return 1;
    }
    list_nodes(graph, graph.forest.components[row].member);
    add_up(graph);
    find_heart(graph, row);
    std::vector<EdgeFigures> edges;
    each_part(graph, [&](const Visit& visit, std::int64_t count, std::int64_t missing) {
      edges.push_back(figures(graph, row, visit, count, missing));
    });
    found.edges = std::move(edges);
    found.unread = false;
    return kFigures * order_.size();
  }

  void find_heart(const Graph& graph, Row row) {
    double best = -2.0;
    std::int64_t heart = -1;
    for (const Visit& visit : order_) {
      const std::int64_t number = graph.number(visit.row);
      direct(graph.rows.sum(visit.row), ours_.data());
      const double score = cosine(ours_.data(), direction(row));
      if (score > best || (score == best && number < heart)) {
        best = score;
        heart = number;
      }
    }
    clusters_[row].heart = heart;
  }

  // Passes each node but the root with the count and the missing weight of what hangs on it, the sum of
  // which is in `below_`. Sums of a subtree are kept only from its first leaf to its root.
  template <class Each>
  void each_part(const Graph& graph, Each each) {
    counts_.clear();
    for (const Visit& visit : order_) {
      const Node& node = graph.node(visit.row);
      counts_.emplace_back(node.count, node.missing_weight);
    }
    sums_.assign(order_.size(), {});
    for (std::size_t i = order_.size(); i-- > 1;) {
      const Visit& visit = order_[i];
      std::vector<std::int64_t> mine = std::move(sums_[i]);
      const std::int64_t* own = graph.rows.sum(visit.row);
      std::copy_n(mine.empty() ? own : mine.data(), dimension_, below_.data());
      each(visit, counts_[i].first, counts_[i].second);
      counts_[visit.above].first += counts_[i].first;
      counts_[visit.above].second += counts_[i].second;
      std::vector<std::int64_t>& parent = sums_[visit.above];
      if (parent.empty()) {
        if (mine.empty()) mine.resize(dimension_);
        std::copy(below_.begin(), below_.end(), mine.begin());
        parent = std::move(mine);
        add(parent.data(), graph.rows.sum(order_[visit.above].row));
      } else {
        add(parent.data(), below_.data());
      }
    }
  }

  // Returns the figures of the edge above a node; `count` and `missing` are those below it.
  EdgeFigures figures(const Graph& graph, Row row, const Visit& visit, std::int64_t count,
                      std::int64_t missing) {
    const ClusterStats& whole = graph.forest.components[row];
    const Row above = order_[visit.above].row;
    EdgeFigures edge{graph.number(visit.row),
                     graph.number(above),
                     count,
                     whole.vectors - count,
                     graph.forest.rule(visit.edge),
                     0.0,
                     0.0,
                     0.0,
                     0.0};
    for (std::size_t i = 0; i < dimension_; ++i) rest_[i] = total_[i] - below_[i];
    edge.similarity = compared(below_.data(), rest_.data());
    edge.threshold = test_.edge(linkstream::mass(count, missing),
                                linkstream::mass(edge.size_b, whole.missing_weight - missing));
    edge.end_similarity = compared(graph.rows.sum(visit.row), graph.rows.sum(above));
    edge.end_threshold = graph.required(visit.row, above);
    if (edge.a > edge.b) {
      std::swap(edge.a, edge.b);
      std::swap(edge.size_a, edge.size_b);
    }
    return edge;
  }

  double compared(const std::int64_t* one, const std::int64_t* other) {
    direct(one, ours_.data());
    direct(other, theirs_.data());
    return cosine(ours_.data(), theirs_.data());
  }

  static constexpr Edge kNoEdge = ~Edge{0};

  const Kernel& kernel_;
  std::size_t dimension_;
  Thresholds test_;
  std::vector<Block<std::int32_t>> directions_;
  std::vector<Cluster> clusters_;
  std::unordered_map<std::int64_t, Row> by_id_;
  std::vector<double> room_;
  std::vector<std::int64_t> below_, rest_, total_;
  std::vector<std::int32_t> ours_, theirs_;
  std::vector<Visit> order_, todo_;
  std::vector<std::pair<std::int64_t, std::int64_t>> counts_;
  std::vector<std::vector<std::int64_t>> sums_;
};

}  // namespace linkstream
