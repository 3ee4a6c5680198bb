// What: settling as the stream goes on: clusters that have grown are settled with what is near them.
// Paper: beyond it; equation 24 as the test of two groups. Python twin: engine/healing.py, the
//   definition.
// Invariants: cuts, ties and their order are the twin's. The work is bounded by kLeaves and kAround; a
//   join also walks the two clusters.
// Numerics: candidates are tested by exact similarities, groups by directions (group_rows.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster_sums.hpp"
#include "graph.hpp"
#include "group_rows.hpp"
#include "journal.hpp"
#include "update.hpp"

namespace linkstream {

inline constexpr std::int64_t kPoint = 32;   // vectors between two points
inline constexpr std::size_t kLeaves = 256;  // subclusters of a cluster that is settled
inline constexpr std::size_t kAround = 8;    // clusters near it that take part

// Returns whether a mark lies above `before` and is at most `now`: 1, 2, ..., each about `growth`
// times the one before.
inline bool passes_mark(std::int64_t before, std::int64_t now, double growth) {
  std::int64_t mark = 1;
  for (;;) {
    const auto grown = static_cast<std::int64_t>(static_cast<double>(mark) * growth);
    const std::int64_t following = std::max(mark + 1, grown);
    if (following > now) break;
    mark = following;
  }
  return before < mark && mark <= now;
}

class Healer {
 public:
  Healer(Graph& graph, Journal& journal, ClusterSums& cluster_sums, Update& update)
      : graph_(graph), journal_(journal), cluster_sums_(cluster_sums), update_(update) {}

  bool on() const { return growth_ > 0.0; }

  void set(double growth, double steadiness, std::int64_t final_after) {
    growth_ = growth;
    steadiness_ = steadiness;
    final_after_ = final_after;
  }

  // Marks a node that has taken `n` vectors if its cluster has passed a mark.
  void arrived(Row row, std::int64_t n = 1) {
    if (!on()) return;
    const std::int64_t size = graph_.forest.components[graph_.node(row).component].vectors;
    if (passes_mark(size - n, size, growth_)) graph_.set_due(row);
  }

  // Keeps what corrections require; it follows subclusters through merges.
  void require(const Requirements& requirements) {
    graph_.bars.set_pairs(requirements.barred);
    labels_of_ = requirements.labels;
  }

  // Settles the clusters that are due, each with what is near it.
  void settle() {
    graph_.take_due(due_);
    const ScanEnd end{cluster_sums_.healing};
    scan_due();
    while (!due_.empty()) {
      const std::uint32_t component = graph_.node(due_[0]).component;
      const auto rest = std::stable_partition(due_.begin(), due_.end(), [&](Row row) {
        return graph_.node(row).component == component;
      });
      grown_.assign(due_.begin(), rest);
      due_.erase(due_.begin(), rest);
      settle_cluster(component);
    }
  }

 private:
  // Subclusters that are one from the start: tied ones, old ones, or a whole cluster.
  struct Part {
    std::vector<Row> nodes;  // of a whole cluster: none
    std::uint32_t component;
    std::int64_t cluster;
    std::int64_t label;
  };

  struct Near {
    double margin;
    std::int64_t cluster;
    std::uint32_t component;
    bool operator<(const Near& other) const {
      return margin > other.margin || (margin == other.margin && cluster < other.cluster);
    }
  };

  // Ends the scan for clusters that are due, also after an exception.
  struct ScanEnd {
    ClusterScan& scan;
    ~ScanEnd() { scan.end(); }
  };

  // Scans for what is near the clusters that are due, all at once.
  void scan_due() {
    ClusterScan& scan = cluster_sums_.healing;
    cluster_sums_.begin_block(scan);
    row_places_.clear();
    component_places_.clear();
    for (const Row row : due_) {
      const std::uint32_t component = graph_.node(row).component;
      if (!is_whole(row)) row_places_.emplace(row, place(sum_of(row)));
      if (!component_places_.count(component)) {
        component_places_.emplace(component, place(sum_of_cluster(component)));
      }
    }
    cluster_sums_.scan_block(scan, false);
  }

  std::size_t place(const IncomingSum& x) {
    return x.square == 0 ? kAlone : cluster_sums_.add_query(cluster_sums_.healing, x);
  }

  bool is_whole(Row row) const {
    const Node& node = graph_.node(row);
    return node.count == graph_.forest.components[node.component].vectors;
  }

  IncomingSum sum_of(Row row) const {
    const Node& node = graph_.node(row);
    return {graph_.rows.sum(row), node.count, 0, node.square, root(node.square)};
  }

  IncomingSum sum_of_cluster(std::uint32_t component) const {
    const Integer square = cluster_sums_.square(component);
    return {cluster_sums_.sum(component), graph_.forest.components[component].vectors, 0, square,
            root(square)};
  }

  // Settles the cluster of the subclusters that have grown.
  void settle_cluster(std::uint32_t component) {
    find_rows(component);
    if (rows_.size() < 2) return;
    find_bars();
    unite();
    cut();
    tie();
  }

  std::int64_t label(std::int64_t cluster) const {
    const auto found = labels_of_.find(cluster);
    return found == labels_of_.end() ? -1 : found->second;
  }

  // The rows

  // Finds the subclusters of the cluster, oldest first, then whole clusters by ID.
  void find_rows(std::uint32_t component) {
    rows_.clear();
    find_around(component);
    if (update_.reached(grown_[0], kLeaves, leaves_)) {
      std::sort(leaves_.begin(), leaves_.end(),
                [this](Row a, Row b) { return graph_.number(a) < graph_.number(b); });
      add_tied(leaves_);
    } else {
      near_.push_back({0.0, graph_.forest.components[component].cluster, component});
    }
    std::sort(near_.begin(), near_.end(),
              [](const Near& a, const Near& b) { return a.cluster < b.cluster; });
    for (const Near& whole : near_) rows_.push_back({{}, whole.component, 0, 0});
    for (Part& part : rows_) {
      part.cluster = graph_.forest.components[part.component].cluster;
      part.label = label(part.cluster);
    }
  }

  // Adds a row for each group of leaves that are one by pinned edges or by their age, by their oldest.
  void add_tied(const std::vector<Row>& leaves) {
    std::unordered_map<Row, std::size_t> place;
    for (std::size_t i = 0; i < leaves.size(); ++i) place[leaves[i]] = i;
    std::vector<std::size_t> root(leaves.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      for (const HeldEdge& held : graph_.node(leaves[i]).edges) {
        if (graph_.forest.rule(held.edge) != kPinned) continue;
        tie_roots(root, i, place.at(graph_.forest.other_end(held.edge, leaves[i])));
      }
    }
    tie_final(leaves, root);
    std::vector<std::size_t> row_of(leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const std::size_t top = find_root(root, i);
      if (top == i) {
        row_of[i] = rows_.size();
        rows_.push_back({{}, graph_.node(leaves[i]).component, 0, 0});
      }
      rows_[row_of[top]].nodes.push_back(leaves[i]);
    }
  }

  // Ties the leaves that stay together, since their first vectors are old.
  void tie_final(const std::vector<Row>& leaves, std::vector<std::size_t>& root) const {
    if (final_after_ == 0) return;
    const std::int64_t since = journal_.n_vectors - final_after_;
    std::size_t known = leaves.size();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (graph_.node(leaves[i]).first_seen >= since) continue;
      if (known < leaves.size()) tie_roots(root, known, i);
      known = i;
    }
  }

  static void tie_roots(std::vector<std::size_t>& root, std::size_t i, std::size_t j) {
    const std::size_t a = find_root(root, i), b = find_root(root, j);
    root[std::max(a, b)] = std::min(a, b);
  }

  static std::size_t find_root(std::vector<std::size_t>& root, std::size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  }

  // Finds the clusters with the greatest margins over s~ to the cluster or what has grown, among those
  // that reach the least s~ (tie: the lower ID).
  void find_around(std::uint32_t own) {
    near_.clear();
    for (const Row row : grown_) {
      if (is_whole(row)) continue;
      ask(own, sum_of(row), graph_.node(row).mass(), place_of(row_places_, row), kNoRow);
    }
    const double mass = graph_.forest.components[own].mass();
    ask(own, sum_of_cluster(own), mass, place_of(component_places_, own), own);
  }

  static std::size_t place_of(const std::unordered_map<std::uint32_t, std::size_t>& places,
                              std::uint32_t row) {
    const auto found = places.find(row);
    return found == places.end() ? kAlone : found->second;
  }

  // Adds the clusters with the greatest margins over a sum. `source` is the cluster of the sum, if the
  // scan at its place is wrong once that has changed.
  void ask(std::uint32_t own, const IncomingSum& x, double mass, std::size_t place, Row source) {
    if (x.square == 0) return;
    const auto visit = [&](std::uint32_t component, double score, double threshold) {
      if (component != own) {
        keep_near({score - threshold, graph_.forest.components[component].cluster, component});
      }
      return near_.size() < kAround ? kNone : near_.back().margin;
    };
    cluster_sums_.by_margin(x, mass, cluster_sums_.healing, place, source, visit);
  }

  // Keeps the greatest margin of each cluster, of kAround clusters.
  void keep_near(const Near& found) {
    const auto known = std::find_if(near_.begin(), near_.end(), [&](const Near& kept) {
      return kept.component == found.component;
    });
    if (known != near_.end()) {
      if (known->margin >= found.margin) return;
      near_.erase(known);
    }
    near_.insert(std::upper_bound(near_.begin(), near_.end(), found), found);
    if (near_.size() > kAround) near_.pop_back();
  }

  // Finds the rows that may not be united: only the clusters that take part are looked at.
  void find_bars() {
    const std::size_t n = rows_.size();
    apart_.assign(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) apart_[i * n + i] = 1;
    if (graph_.bars.empty()) return;
    find_barred();
    for (const auto& [number, i] : barred_) {
      graph_.bars.each_apart(number, [&, i = i](std::int64_t other) {
        const auto found = barred_.find(other);
        if (found == barred_.end() || found->second == i) return;
        apart_[i * n + found->second] = apart_[found->second * n + i] = 1;
      });
    }
  }

  // Finds the subclusters of the rows that must stay apart from others.
  void find_barred() {
    Bars& bars = graph_.bars;
    if (!bars.placed()) {
      bars.unplace();
      graph_.each_node(
          [&](Row row) { bars.moved(graph_.number(row), graph_.node(row).component); });
    }
    barred_.clear();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::vector<std::int64_t>& inside = bars.inside(rows_[i].component);
      if (rows_[i].nodes.empty()) {
        for (const std::int64_t number : inside) barred_[number] = i;
      } else if (!inside.empty()) {
        for (const Row row : rows_[i].nodes) {
          if (bars.has(graph_.number(row))) barred_[graph_.number(row)] = i;
        }
      }
    }
  }

  // The groups

  // Unites the pair of greatest margin (tie: the lowest rows) while one is 0 or more.
  void unite() {
    const std::size_t n = rows_.size(), dimension = graph_.dimension();
    std::vector<std::vector<std::int64_t>> tied;  // sums of rows of several nodes
    std::vector<const std::int64_t*> sums;
    std::vector<double> masses;
    for (const Part& part : rows_) {
      sums.push_back(sum_of(part, tied));
      masses.push_back(mass_of(part));
    }
    GroupRows groups(graph_.kernel, std::move(sums), masses.data(), dimension, graph_.thresholds);
    clusters_.resize(n);
    labels_.resize(n);
    margins_.assign(n * n, kNone);
    best_.assign(n, 0);
    live_.resize(n);
    std::iota(live_.begin(), live_.end(), std::size_t{0});
    for (std::size_t i = 0; i < n; ++i) {
      clusters_[i] = rows_[i].cluster;
      labels_[i] = rows_[i].label;
      groups.measure(static_cast<Row>(i), room_);
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) set_margin(groups, i, j);
    }
    for (std::size_t i = 0; i < n; ++i) look(i);
    unions_.clear();
    for (;;) {
      std::size_t row = live_[0];
      for (const std::size_t i : live_) {
        if (best(i) > best(row)) row = i;
      }
      if (!(best(row) >= 0.0)) return;
      const std::size_t a = std::min(row, best_[row]), b = std::max(row, best_[row]);
      unions_.emplace_back(a, b);
      join_groups(groups, a, b);
      if (live_.size() < 2) return;
    }
  }

  const std::int64_t* sum_of(const Part& part, std::vector<std::vector<std::int64_t>>& tied) const {
    if (part.nodes.empty()) return cluster_sums_.sum(part.component);
    if (part.nodes.size() == 1) return graph_.rows.sum(part.nodes[0]);
    std::vector<std::int64_t> sum(graph_.dimension(), 0);
    for (const Row row : part.nodes) {
      const std::int64_t* more = graph_.rows.sum(row);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    }
    tied.push_back(std::move(sum));
    return tied.back().data();
  }

  double mass_of(const Part& part) const {
    if (part.nodes.empty()) return graph_.forest.components[part.component].mass();
    double mass = 0.0;
    for (const Row row : part.nodes) mass += graph_.node(row).mass();
    return mass;
  }

  double best(std::size_t i) const { return margins_[i * rows_.size() + best_[i]]; }

  void set_margin(const GroupRows& groups, std::size_t a, std::size_t b) {
    const std::size_t n = rows_.size();
    const bool labelled = labels_[a] >= 0 && labels_[b] >= 0 && labels_[a] != labels_[b];
    double margin = kNone;
    if (!apart_[a * n + b] && !labelled) {
      margin = groups.margin(static_cast<Row>(a), static_cast<Row>(b)) +
               (clusters_[a] == clusters_[b] ? steadiness_ : -steadiness_);
    }
    margins_[a * n + b] = margins_[b * n + a] = margin;
  }

  // Finds the partner of a row with the greatest margin (tie: the lowest row).
  void look(std::size_t i) {
    const double* margins = margins_.data() + i * rows_.size();
    std::size_t found = live_[0];
    for (const std::size_t j : live_) {
      if (margins[j] > margins[found]) found = j;
    }
    best_[i] = found;
  }

  void join_groups(GroupRows& groups, std::size_t kept, std::size_t gone) {
    const std::size_t n = rows_.size();
    if (groups.mass(static_cast<Row>(gone)) > groups.mass(static_cast<Row>(kept))) {
      clusters_[kept] = clusters_[gone];
    }
    labels_[kept] = std::max(labels_[kept], labels_[gone]);
    groups.unite(static_cast<Row>(kept), static_cast<Row>(gone));
    live_.erase(std::lower_bound(live_.begin(), live_.end(), gone));
    for (const std::size_t i : live_) {
      const bool apart = apart_[kept * n + i] || apart_[gone * n + i];
      apart_[kept * n + i] = apart_[i * n + kept] = apart;
      if (i != kept) set_margin(groups, kept, i);
    }
    for (const std::size_t i : live_) {
      if (i == kept || best_[i] == kept || best_[i] == gone) {
        look(i);
      } else if (margins_[i * n + kept] > best(i) ||
                 (margins_[i * n + kept] == best(i) && kept < best_[i])) {
        best_[i] = kept;
      }
    }
  }

  // The changes

  // Cuts the edges between subclusters of different groups, by their numbers.
  void cut() {
    std::vector<std::size_t> root(rows_.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    for (const auto& [kept, gone] : unions_) root[gone] = kept;
    std::unordered_map<Row, std::size_t> group;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (const Row row : rows_[i].nodes) group[row] = find_root(root, i);
    }
    std::vector<Crossing> crossing;
    for (const auto& [row, own] : group) {
      for (const HeldEdge& held : graph_.node(row).edges) {
        const Row other = graph_.forest.other_end(held.edge, row);
        if (graph_.number(row) < graph_.number(other) && group.at(other) != own) {
          crossing.push_back({graph_.number(row), graph_.number(other), row, held.edge});
        }
      }
    }
    std::sort(crossing.begin(), crossing.end());
    for (const Crossing& edge : crossing) update_.cut(edge.row, edge.edge);
  }

  struct Crossing {
    std::int64_t a, b;
    Row row;
    Edge edge;
    bool operator<(const Crossing& other) const {
      return a < other.a || (a == other.a && b < other.b);
    }
  };

  // Ties the largest subclusters of the groups that were united, in order.
  void tie() {
    std::vector<Row> heads(rows_.size(), kNoRow);
    for (const auto& [kept, gone] : unions_) {
      for (const std::size_t i : {kept, gone}) {
        if (heads[i] == kNoRow) heads[i] = head(rows_[i]);
      }
      Row a = heads[kept], b = heads[gone];
      if (graph_.number(a) > graph_.number(b)) std::swap(a, b);
      if (graph_.node(a).component != graph_.node(b).component) join(a, b);
      heads[kept] = larger(a, b) ? a : b;
    }
  }

  bool larger(Row a, Row b) const {
    const Node &one = graph_.node(a), &other = graph_.node(b);
    return one.count > other.count || (one.count == other.count && one.number < other.number);
  }

  Row head(const Part& part) {
    std::vector<Row> all;
    if (part.nodes.empty()) {
      update_.reached(graph_.forest.components[part.component].member, kEverything, all);
    }
    const std::vector<Row>& nodes = part.nodes.empty() ? all : part.nodes;
    Row found = nodes[0];
    for (const Row row : nodes) found = larger(row, found) ? row : found;
    return found;
  }

  // Joins two clusters by an edge; a labelled one keeps its ID, then the older. The nodes of the
  // smaller component move, whichever ID is kept.
  void join(Row a, Row b) {
    Forest& forest = graph_.forest;
    const std::int64_t one = graph_.cluster(a), other = graph_.cluster(b);
    const bool unlabelled[2] = {label(one) < 0, label(other) < 0};
    const bool first = unlabelled[0] != unlabelled[1] ? unlabelled[1] : one < other;
    const std::int64_t kept = first ? one : other, gone = first ? other : one;
    std::vector<Row> nodes;
    const Row moving = update_.smaller_side(a, b, nodes);
    const std::uint32_t to = graph_.node(moving == a ? b : a).component;
    const std::uint32_t from = graph_.node(moving).component;
    if (forest.components[to].cluster != kept) forest.swap_clusters(to, from);
    for (const Row row : nodes) graph_.move_to(to, row);
    ClusterStats &into = forest.components[to], &left = forest.components[from];
    into.vectors += left.vectors;
    into.missing_weight += left.missing_weight;
    into.claims += left.claims;
    for (const Row row : nodes) {
      const bool known = into.oldest != kNoRow;
      if (known && graph_.number(row) < graph_.number(into.oldest)) into.oldest = row;
    }
    cluster_sums_.join(to, from);
    forest.close_component(from);
    graph_.add_edge(a, b, graph_.exact(a, b), kSettled);
    journal_.record(Code::kUnited, graph_.number(a), graph_.number(b), kept, gone);
  }

  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  static constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max();

  Graph& graph_;
  Journal& journal_;
  ClusterSums& cluster_sums_;
  Update& update_;
  double growth_ = 0.0, steadiness_ = 0.0;
  std::int64_t final_after_ = 0;
  std::vector<Row> due_, grown_, leaves_;
  std::unordered_map<std::uint32_t, std::size_t> row_places_, component_places_;  // in the scan
  std::vector<Near> near_;
  std::vector<Part> rows_;
  std::vector<std::uint8_t> apart_;
  std::unordered_map<std::int64_t, std::int64_t> labels_of_;  // of clusters, by ID
  std::unordered_map<std::int64_t, std::size_t> barred_;      // subclusters, and their rows
  std::vector<double> margins_, room_;
  std::vector<std::size_t> best_, live_;
  std::vector<std::int64_t> clusters_, labels_;
  std::vector<std::pair<std::size_t, std::size_t>> unions_;
};

}  // namespace linkstream
