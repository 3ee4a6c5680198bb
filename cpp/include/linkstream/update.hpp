// What: what follows when the centroid of a subcluster has changed: merges, cuts, re-joins, splits.
// Paper: section 3.4. Python twin: engine/update.py.
// Invariants: merges come first, most similar first; then edges are tested once, worst first; after
//   each cut the part is re-joined or the cluster is split. Ties go to the older.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cluster_sums.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "scan.hpp"
#include "sides.hpp"

namespace linkstream {

class Update {
 public:
  Update(Graph& graph, Search& search, Journal& journal, Members& members,
         ClusterSums& cluster_sums)
      : graph_(graph),
        search_(search),
        journal_(journal),
        members_(members),
        cluster_sums_(cluster_sums),
        sides_(graph),
        query_(kScanRows, graph.rows.width()) {}

  // Merges the node, then checks its edges. Returns the row that holds its vectors.
  Row operator()(Row row) {
    graph_.collect_due(row, due_);
    if (due_.empty()) return row;
    row = merge_neighbours(row);
    failing_.clear();
    for (const Judged& judged : judged_) {
      const double margin = judged.similarity - graph_.required(row, judged.other);
      if (margin < 0 && graph_.forest.is_tested(judged.edge)) {  // equation 22 no longer holds
        failing_.push_back({margin, graph_.number(judged.other), judged.edge});
      } else {
        graph_.renew(judged.edge, row, judged.other, judged.similarity);
      }
    }
    std::sort(failing_.begin(), failing_.end());  // worst first; tie: the older
    for (const Failing& failing : failing_) sever(row, failing.edge);
    return row;
  }

  // Removes an edge and splits the cluster.
  void cut(Row row, Edge edge) {
    const Row partner = remove_edge(row, edge);
    sides_.find(row, partner);
    split(row, partner);
  }

  // Lists the nodes that edges connect to one. Returns false if there are more than `limit`.
  bool reached(Row row, std::size_t limit, std::vector<Row>& nodes) {
    return sides_.list(row, limit, nodes);
  }

  // Lists the nodes of the smaller of two clusters, about. Returns that of two nodes that is in it.
  Row smaller_side(Row a, Row b, std::vector<Row>& nodes) {
    sides_.find(a, b);
    nodes = sides_.listed();
    return sides_.listed_is_cut_off ? b : a;
  }

 private:
  struct Judged {
    Edge edge;
    Row other;
    double similarity;
  };

  struct Failing {
    double margin;
    std::int64_t number;
    Edge edge;
    bool operator<(const Failing& other) const {
      return margin < other.margin || (margin == other.margin && number < other.number);
    }
  };

  // Merges with the most similar neighbour at or above T_s until there is none.
  Row merge_neighbours(Row row) {
    for (;;) {
      judge(row);
      const Judged* best = nullptr;
      for (const Judged& judged : judged_) {
        if (judged.similarity < graph_.thresholds.subcluster_similarity) continue;
        if (graph_.node(row).locked() || graph_.node(judged.other).locked()) continue;
        if (!best || judged.similarity > best->similarity ||
            (judged.similarity == best->similarity &&
             graph_.number(judged.other) < graph_.number(best->other))) {
          best = &judged;
        }
      }
      if (!best) return row;
      row = merge(row, best->other, best->edge);
    }
  }

  void judge(Row row) {
    judged_.clear();
    for (const Edge edge : due_) {
      const Row other = graph_.forest.other_end(edge, row);
      judged_.push_back({edge, other, graph_.exact(row, other)});
    }
  }

  // Replaces two neighbours by one node with the vectors and the edges of both. The row with more
  // edges stays, so that merges of a hub are cheap; the older number survives in either case.
  Row merge(Row a, Row b, Edge edge) {
    const bool keep_a = graph_.node(a).edges.size() >= graph_.node(b).edges.size();
    const Row kept = keep_a ? a : b, gone = keep_a ? b : a;
    const std::int64_t survivor = std::min(graph_.number(a), graph_.number(b));
    const std::int64_t absorbed = std::max(graph_.number(a), graph_.number(b));
    graph_.forest.remove_edge(edge);
    graph_.merge(kept, gone);
    graph_.set_number(kept, survivor);
    members_.merged(absorbed, survivor);
    if (!graph_.bars.empty()) {
      graph_.bars.merged(absorbed, survivor, graph_.node(kept).component);
    }
    journal_.record(Code::kMerged, survivor, absorbed, graph_.cluster(kept));
    // Due edges stay due, and all edges of the absorbed node have become due.
    still_due_.clear();
    if (keep_a) std::remove_copy(due_.begin(), due_.end(), std::back_inserter(still_due_), edge);
    graph_.collect_due(kept, due_);
    due_.insert(due_.end(), still_due_.begin(), still_due_.end());
    std::sort(due_.begin(), due_.end());
    due_.erase(std::unique(due_.begin(), due_.end()), due_.end());
    return kept;
  }

  // Removes an edge. Returns its other end.
  Row remove_edge(Row row, Edge edge) {
    const Row partner = graph_.forest.other_end(edge, row);
    graph_.forest.remove_edge(edge);
    journal_.record(Code::kSevered, graph_.number(row), graph_.number(partner),
                    graph_.cluster(row));
    return partner;
  }

  // Removes an edge; then re-joins the part cut off, or splits the cluster.
  void sever(Row row, Edge edge) {
    const Row partner = remove_edge(row, edge);
    sides_.find(row, partner);
    const Row found = find_partner(row);
    if (found != kNoRow) {
      graph_.add_edge(row, found, graph_.exact(row, found));
      journal_.record(Code::kRejoined, graph_.number(row), graph_.number(found),
                      graph_.cluster(row));
    } else {
      split(row, partner);
    }
  }

  // Returns the node of the part cut off with the greatest margin to the touched one, if it is >= 0.
  Row find_partner(Row row) {
    propose_partners(row);
    const std::uint32_t component = graph_.node(row).component;
    Row best = kNoRow;
    double best_margin = 0.0;
    for (const Proposal& proposal : proposed_.rows) {
      const Row other = proposal.row;
      const bool cut_off = sides_.is_listed(other) == sides_.listed_is_cut_off;
      if (graph_.node(other).component != component || !cut_off) continue;
      const double needed = graph_.required(row, other);
      if (proposal.upper - needed < best_margin) continue;
      const double margin = graph_.exact(row, other) - needed;
      if (margin > best_margin ||
          (margin == best_margin &&
           (best == kNoRow || graph_.number(other) < graph_.number(best)))) {
        best = other;
        best_margin = margin;
      }
    }
    return best;
  }

  // Proposes the part cut off, if it is small and listed; else all rows that, by a scan, may reach the
  // lowest threshold of an edge of the touched node.
  void propose_partners(Row row) {
    if (sides_.listed_is_cut_off && sides_.listed().size() <= graph_.rows.size() / 16 + 64) {
      proposed_.rows.clear();
      for (const Row other : sides_.listed()) proposed_.rows.push_back({other, 2.0f});
      return;
    }
    const Node& node = graph_.node(row);
    const double least = graph_.thresholds.edge(node.mass(), 1.0);
    query_.set(0, graph_.rows.sum(row), node.root, graph_.dimension(),
               static_cast<float>(least) - 1e-6f, graph_.kernel.encode_sum);
    search_.reaching(graph_.rows, query_, 0, proposed_);
  }

  // Gives the part with fewer claims a new ID (tie: the smaller; then not the oldest node's). The
  // listed side gets a new component, whichever of the two IDs it has.
  void split(Row row, Row partner) {
    std::vector<ClusterStats>& components = graph_.forest.components;
    const std::uint32_t old = graph_.node(row).component;
    const std::int64_t id = components[old].cluster, fresh_id = journal_.new_cluster();
    const std::uint32_t fresh = graph_.forest.open_component(fresh_id);
    ClusterStats &part = components[fresh], &rest = components[old];
    const bool cut_off = sides_.listed_is_cut_off;
    const std::vector<Row> listed = sides_.listed();
    for (const Row member : listed) {
      const Node& node = graph_.node(member);
      graph_.move_to(fresh, member);
      part.vectors += node.count;
      part.missing_weight += node.missing_weight;
      part.claims += node.claims();
    }
    rest.vectors -= part.vectors;
    rest.missing_weight -= part.missing_weight;
    rest.claims -= part.claims;
    part.member = listed[0];
    rest.member = cut_off ? row : partner;
    if (rest.oldest != kNoRow && graph_.node(rest.oldest).component == fresh) {
      std::swap(part.oldest, rest.oldest);
    }
    const bool leaves = part.claims != rest.claims     ? part.claims < rest.claims
                        : part.vectors != rest.vectors ? part.vectors < rest.vectors
                                                       : !is_older(listed, rest.member);
    if (!leaves) graph_.forest.swap_clusters(old, fresh);
    cluster_sums_.split(old, fresh, listed);
    const bool cut_off_leaves = leaves == cut_off;
    const Row inside = cut_off_leaves ? partner : row, outside = cut_off_leaves ? row : partner;
    journal_.record(Code::kSplit, graph_.number(inside), graph_.number(outside), id, fresh_id);
  }

  // Returns whether some nodes hold an older one than all that edges connect to `other`.
  bool is_older(const std::vector<Row>& nodes, Row other) {
    std::vector<Row> others;
    sides_.list(other, std::numeric_limits<std::size_t>::max(), others);
    return oldest(nodes) < oldest(others);
  }

  std::int64_t oldest(const std::vector<Row>& nodes) const {
    std::int64_t found = std::numeric_limits<std::int64_t>::max();
    for (const Row row : nodes) found = std::min(found, graph_.number(row));
    return found;
  }

  Graph& graph_;
  Search& search_;
  Journal& journal_;
  Members& members_;
  ClusterSums& cluster_sums_;
  Sides sides_;
  Queries query_;
  Shortlist proposed_;
  std::vector<Edge> due_, still_due_;
  std::vector<Judged> judged_;
  std::vector<Failing> failing_;
};

}  // namespace linkstream
