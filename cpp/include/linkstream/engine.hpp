// What: Links. Vectors in, decisions and events out: the state machine of sections 3.2-3.5.
// Python twin: engine/reference.py, the definition; this file follows it paragraph by paragraph.
// Invariants: decisions, events and state are those of the twin bit for bit, whatever the kernel,
//   the number of threads, and how a stream is cut into calls.
// Numerics: fixed_point.hpp. The search only proposes; every comparison that decides is between an
//   exact similarity and a threshold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "fixed_point.hpp"
#include "forest.hpp"
#include "log.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "scan.hpp"
#include "state.hpp"
#include "thresholds.hpp"
#include "touched.hpp"

namespace linkstream {

enum class Kind : std::int8_t { kJoined, kLinked, kNew };

struct Decision {
  std::int64_t cluster;
  std::int64_t subcluster;
  Kind kind;
  double similarity;  // NaN where nothing reaches the lowest threshold
  double threshold;
};

struct Candidate {
  std::int64_t subcluster;
  std::int64_t cluster;
  std::int64_t count;
  double similarity;
  double link_threshold;
};

inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
inline constexpr std::size_t kUntrackedEvents = 100000;
inline constexpr std::size_t kManyEdges = 16;

// How much of the edge checks may be skipped; `kNever` checks all edges of a touched node each time
// and exists so that a test can compare the two.
enum class Skip { kWithinBudget, kNever };

class Engine {
 public:
  Engine(const Thresholds& thresholds, std::size_t dimension, bool track_vectors,
         const Kernel& kernel, std::size_t threads, Skip skip = Skip::kWithinBudget)
      : thresholds_(thresholds),
        dimension_(dimension),
        track_vectors_(track_vectors),
        skip_(skip),
        kernel_(kernel),
        pool_(threads),
        search_(kernel, pool_),
        rows_(dimension),
        queries_(kBlockMax + kScanRows, rows_.width()),
        touched_(kBlockMax, rows_.width()),
        codes_(rows_.width(), 0),
        room_(rows_.width()),
        log_(track_vectors ? 0 : kUntrackedEvents),
        lowest_(thresholds.lowest()),
        // Rounded down, so that no row that reaches the lowest threshold stays below the bar.
        bar_(static_cast<float>(lowest_) - 1e-6f) {}

  std::int64_t n_vectors() const { return n_vectors_; }
  std::int64_t n_subclusters() const { return n_nodes_; }
  std::int64_t n_clusters() const { return static_cast<std::int64_t>(forest_.components.size()); }
  std::int64_t n_cluster_ids() const { return next_cluster_; }
  const EventLog& log() const { return log_; }

  // Takes fixed-point vectors in order of arrival. Blocks are scanned at once and decided one by one.
  void add(const std::int32_t* vectors, std::size_t n, Decision* decisions) {
    add_blocks(n, decisions, [=](std::size_t first, std::size_t) {
      return vectors + first * dimension_;
    });
  }

  // The same of vectors as they come, whose norms are given and in bounds.
  void add(const float* vectors, const double* norms, std::size_t n, Decision* decisions) {
    add_blocks(n, decisions, [=](std::size_t first, std::size_t block) {
      fixed_.resize(std::max(fixed_.size(), block * dimension_));
      for (std::size_t i = 0; i < block; ++i) {
        kernel_.quantise(vectors + (first + i) * dimension_, norms[first + i], dimension_,
                         fixed_.data() + i * dimension_);
      }
      return static_cast<const std::int32_t*>(fixed_.data());
    });
  }

  // What equations 20 and 21 say of each vector; nothing changes.
  void ask(const std::int32_t* vectors, std::size_t n, Decision* decisions) {
    for (std::size_t done = 0; done < n;) {
      const std::size_t block = std::min(n - done, kBlockMax);
      begin_block(vectors + done * dimension_, block);
      for (std::size_t i = 0; i < block; ++i) decisions[done + i] = ask_one(i);
      touched_.end_block();
      done += block;
    }
  }

  // The most similar subclusters, best first (tie: the older).
  std::vector<Candidate> ranked(const std::int32_t* q, std::size_t limit) const {
    const double root_q = root(kernel_.square(q, dimension_));
    std::vector<Candidate> all;
    all.reserve(static_cast<std::size_t>(n_nodes_));
    each_node([&](Row row, const Node& node) {
      all.push_back({node.number, cluster_of(node), node.count,
                     similarity(dot(kernel_, q, rows_.sum(row), node.count, dimension_), root_q,
                                node.root),
                     thresholds_.edge(static_cast<double>(node.count), 1.0)});
    });
    limit = std::min(limit, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(limit), all.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return a.similarity > b.similarity ||
                               (a.similarity == b.similarity && a.subcluster < b.subcluster);
                      });
    all.resize(limit);
    return all;
  }

 private:
  template <class Load>
  void add_blocks(std::size_t n, Decision* decisions, Load load) {
    for (std::size_t done = 0; done < n;) {
      const std::size_t block = std::min(n - done, block_size());
      begin_block(load(done, block), block);
      for (std::size_t i = 0; i < block; ++i) decisions[done + i] = add_one(i);
      touched_.end_block();
      done += block;
    }
  }

  struct Nearest {
    Row row = kNoRow;
    double similarity = kNothing;
  };

  // Section 3.3: assessing cluster membership

  Decision add_one(std::size_t index) {
    const Nearest nearest = find_nearest(index);
    auto [kind, threshold] = assess(nearest);
    Row row = nearest.row;
    if (kind == Kind::kJoined) {
      join(row, index);
      row = update(row);
    } else if (kind == Kind::kLinked) {
      row = link(row, index, nearest.similarity);
    } else {
      row = create(index);
    }
    const Node& node = forest_.node(row);
    if (track_vectors_) vector_numbers_.push_back(static_cast<std::uint32_t>(node.number));
    ++n_vectors_;
    return {cluster_of(node), node.number, kind, nearest.similarity, threshold};
  }

  // J = argmax x.mu_j (equation 19); no row where no similarity reaches the lowest threshold.
  Nearest find_nearest(std::size_t index) {
    Nearest best;
    Shortlist& list = lists_[index];
    list.rows.erase(std::remove_if(list.rows.begin(), list.rows.end(),
                                   [this](const Proposal& p) { return touched_.has(p.row); }),
                    list.rows.end());
    settle(list.rows, index, best);
    const float reach = best.row == kNoRow ? bar_ : static_cast<float>(best.similarity) - 1e-6f;
    touched_.propose(kernel_, queries_, index, reach, proposals_);
    settle(proposals_, index, best);
    // Rows that were not kept lie below the bar; only they could still beat the best.
    const bool decided = list.bar <= bar_ || (best.row != kNoRow && best.similarity >= list.bar);
    if (!decided) {
      best = Nearest();
      search_.nearest(rows_, queries_, index, list);
      settle(list.rows, index, best);
    }
    return best;
  }

  // Exact similarities of what the search proposed, the most promising first.
  void settle(std::vector<Proposal>& proposals, std::size_t index, Nearest& best) {
    if (proposals.empty()) return;
    std::iter_swap(proposals.begin(), std::min_element(proposals.begin(), proposals.end(),
                                                       Search::higher));
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
    const Node& node = forest_.node(proposal.row);
    const Incoming& x = block_[index];
    const Integer product = dot(kernel_, x.q, rows_.sum(proposal.row), node.count, dimension_);
    const double score = similarity(product, x.root, node.root);
    const bool better =
        score >= lowest_ &&
        (best.row == kNoRow || score > best.similarity ||
         (score == best.similarity && node.number < forest_.node(best.row).number));
    if (better) {
      best = {proposal.row, score};
      best_product_ = product;
    }
  }

  // Which of the three outcomes, and the threshold it was judged by.
  std::pair<Kind, double> assess(const Nearest& nearest) const {
    if (nearest.row == kNoRow) return {Kind::kNew, kNothing};
    if (nearest.similarity >= thresholds_.subcluster_similarity) {  // equation 20
      return {Kind::kJoined, thresholds_.subcluster_similarity};
    }
    const auto count = static_cast<double>(forest_.node(nearest.row).count);
    const double threshold = thresholds_.edge(count, 1.0);  // s~(k_J), equation 25
    return {nearest.similarity >= threshold ? Kind::kLinked : Kind::kNew, threshold};  // eq 21
  }

  Decision ask_one(std::size_t index) {
    const Nearest nearest = find_nearest(index);
    const auto [kind, threshold] = assess(nearest);
    if (nearest.row == kNoRow) return {-1, -1, Kind::kNew, kNothing, kNothing};
    const Node& node = forest_.node(nearest.row);
    return {kind == Kind::kNew ? -1 : cluster_of(node), kind == Kind::kJoined ? node.number : -1,
            kind, nearest.similarity, threshold};
  }

  // Adds x to subcluster J; |S+q|^2 = |S|^2 + 2 q.S + |q|^2 exactly.
  void join(Row row, std::size_t index) {
    Node& node = forest_.node(row);
    const Incoming& x = block_[index];
    const double turned = turn(node.square, best_product_, x.square);
    node.square += 2 * best_product_ + x.square;
    node.root = root(node.square);
    node.count += 1;
    node.last_seen = n_vectors_;
    forest_.components[node.component].vectors += 1;
    kernel_.add_vector(rows_.sum(row), x.q, dimension_);
    move(row, turned);
    encode(row);
    record(Code::kJoined, node.number, cluster_of(node));
  }

  // Starts a subcluster containing just x, with an edge to J.
  Row link(Row nearest, std::size_t index, double score) {
    const Row row = new_node(forest_.node(nearest).component, index);
    add_edge(row, nearest, score);
    const Node& node = forest_.node(row);
    record(Code::kLinked, node.number, forest_.node(nearest).number, cluster_of(node));
    return row;
  }

  // Starts a subcluster containing just x, in a cluster of its own.
  Row create(std::size_t index) {
    const auto component = static_cast<std::uint32_t>(forest_.components.size());
    forest_.components.push_back({next_cluster_++, 0});
    const Row row = new_node(component, index);
    record(Code::kCreated, forest_.node(row).number, cluster_of(forest_.node(row)));
    return row;
  }

  // Section 3.4: updating clusters

  struct Judged {
    Edge edge;
    Row other;
    double similarity;
  };

  // After a subcluster's centroid has changed: merge, then check the edges.
  Row update(Row row) {
    due_.clear();
    collect_due(row);
    if (due_.empty()) return row;
    row = merge_neighbours(row);
    failing_.clear();
    for (const Judged& judged : judged_) {
      const double margin = judged.similarity - required(row, judged.other);
      if (margin < 0) {  // equation 22 does not continue to hold
        failing_.push_back({margin, forest_.node(judged.other).number, judged.edge});
      } else {
        set_budget(judged.edge, row, judged.other, judged.similarity);
      }
    }
    std::sort(failing_.begin(), failing_.end());  // worst first; tie: the older
    for (const Failing& failing : failing_) sever(row, failing.edge);
    return row;
  }

  // Edges of a node that may have failed or come to merge since they were last judged. All of them
  // when the count has outgrown its limit, or when so many are due that judging all afresh pays.
  void collect_due(Row row) {
    Node& node = forest_.node(row);
    if (skip_ == Skip::kWithinBudget && node.count <= node.count_limit) {
      forest_.expired(row, due_);
      const std::size_t edges = node.edges.size();
      judging_all_ = false;
      if (edges < kManyEdges || due_.size() <= 2 * node.hasty + edges / 8) return;
    }
    judging_all_ = true;
    node.count_limit = 2 * node.count;
    node.hasty = 0;
    if (node.edges.size() >= kManyEdges) note_anchor(row);
    due_.clear();
    for (const HeldEdge& held : node.edges) due_.push_back(held.edge);
  }

  // Merges with the most similar neighbour at or above T_s, again and again.
  Row merge_neighbours(Row row) {
    for (;;) {
      judge(row);
      const Judged* best = nullptr;
      for (const Judged& judged : judged_) {
        if (judged.similarity < thresholds_.subcluster_similarity) continue;
        if (!best || judged.similarity > best->similarity ||
            (judged.similarity == best->similarity &&
             forest_.node(judged.other).number < forest_.node(best->other).number)) {
          best = &judged;
        }
      }
      if (!best) return row;
      row = merge(row, *best);
    }
  }

  void judge(Row row) {
    judged_.clear();
    for (const Edge edge : due_) {
      const Row other = forest_.other_end(edge, row);
      judged_.push_back({edge, other, exact(row, other)});
    }
  }

  // Replaces two joined nodes by one with the vectors and the edges of both. The row with more
  // edges stays, so that a hub absorbs cheaply; the older number survives whichever it is.
  Row merge(Row a, const Judged& judged) {
    const Row b = judged.other;
    const bool keep_a = forest_.node(a).edges.size() >= forest_.node(b).edges.size();
    const Row kept = keep_a ? a : b, gone = keep_a ? b : a;
    Node& node = forest_.node(kept);
    Node& absorbed = forest_.node(gone);
    const std::int64_t survivor = std::min(node.number, absorbed.number);
    const std::int64_t merged = std::max(node.number, absorbed.number);
    forest_.remove_edge(judged.edge);

    const Integer product =
        dot(kernel_, rows_.sum(kept), node.count, rows_.sum(gone), absorbed.count, dimension_);
    const double turned = turn(node.square, product, absorbed.square);
    node.square += 2 * product + absorbed.square;
    node.root = root(node.square);
    node.count += absorbed.count;
    node.first_seen = std::min(node.first_seen, absorbed.first_seen);
    node.last_seen = std::max(node.last_seen, absorbed.last_seen);
    node.number = survivor;
    std::int64_t* sum = rows_.sum(kept);
    const std::int64_t* more = rows_.sum(gone);
    for (std::size_t i = 0; i < dimension_; ++i) sum[i] += more[i];
    move(kept, turned);
    encode(kept);

    if (!keep_a) due_.clear();  // they were the absorbed node's: they come along below
    due_.erase(std::remove(due_.begin(), due_.end(), judged.edge), due_.end());
    while (!absorbed.edges.empty()) {
      const Edge edge = absorbed.edges.back().edge;
      forest_.move_edge(edge, gone, kept);
    }
    release(gone);
    if (track_vectors_) survivors_[static_cast<std::size_t>(merged)] = static_cast<std::uint32_t>(survivor);
    record(Code::kMerged, survivor, merged, cluster_of(node));
    add_due(kept);
    return kept;
  }

  // Edges that have become due by a merge, besides those that were.
  void add_due(Row row) {
    std::swap(due_, still_due_);
    due_.clear();
    collect_due(row);
    due_.insert(due_.end(), still_due_.begin(), still_due_.end());
    std::sort(due_.begin(), due_.end());
    due_.erase(std::unique(due_.begin(), due_.end()), due_.end());
  }

  // Removes an edge; then re-joins the part cut off, or lets the cluster be split.
  void sever(Row row, Edge edge) {
    const Row partner = forest_.other_end(edge, row);
    forest_.remove_edge(edge);
    Node& node = forest_.node(row);
    record(Code::kSevered, node.number, forest_.node(partner).number, cluster_of(node));
    const Sides sides = find_sides(row, partner);
    const Row found = find_partner(row, sides);
    if (found != kNoRow) {
      add_edge(row, found, exact(row, found));
      record(Code::kRejoined, node.number, forest_.node(found).number, cluster_of(node));
    } else {
      split(row, partner, sides);
    }
  }

  // The two sides of a cut: the one with fewer nodes is listed, and which of the two it is.
  struct Sides {
    const std::vector<Row>* listed;
    bool listed_is_cut_off;  // the side of the partner, not of the touched node
    std::uint32_t mark;      // of the nodes on the listed side
  };

  // Walks both sides in turn, an edge at a time, until one is exhausted: the larger is never
  // walked whole.
  Sides find_sides(Row row, Row partner) {
    const std::uint32_t mark = next_mark();
    Walk walks[2] = {{&near_side_, mark, 0, 0}, {&far_side_, mark + 1, 0, 0}};
    start(walks[0], row);
    start(walks[1], partner);
    for (int turn = 0;; turn ^= 1) {
      if (!step(walks[turn])) return {walks[turn].nodes, turn == 1, walks[turn].mark};
    }
  }

  // Two marks no node bears.
  std::uint32_t next_mark() {
    if (marks_ >= std::numeric_limits<std::uint32_t>::max() - 4) {
      for (std::size_t row = 0; row < rows_.size(); ++row) forest_.node(static_cast<Row>(row)).mark = 0;
      marks_ = 0;
    }
    return marks_ += 2;
  }

  struct Walk {
    std::vector<Row>* nodes;
    std::uint32_t mark;
    std::size_t node;
    std::size_t edge;
  };

  void start(Walk& walk, Row row) {
    walk.nodes->assign(1, row);
    forest_.node(row).mark = walk.mark;
  }

  // Follows one edge; false when there is none left.
  bool step(Walk& walk) {
    while (walk.node < walk.nodes->size()) {
      const Row row = (*walk.nodes)[walk.node];
      const std::vector<HeldEdge>& edges = forest_.node(row).edges;
      if (walk.edge < edges.size()) {
        const Row other = forest_.other_end(edges[walk.edge++].edge, row);
        if (forest_.node(other).mark != walk.mark) {
          forest_.node(other).mark = walk.mark;
          walk.nodes->push_back(other);
        }
        return true;
      }
      ++walk.node;
      walk.edge = 0;
    }
    return false;
  }

  // Of the part cut off, the node with the greatest margin to the touched one, if that is >= 0.
  Row find_partner(Row row, const Sides& sides) {
    const bool few = sides.listed_is_cut_off && sides.listed->size() <= rows_.size() / 16 + 64;
    if (!few) {
      find_reaching(row);
    } else {
      reaching_.rows.clear();
      for (const Row other : *sides.listed) reaching_.rows.push_back({other, 2.0f});
    }
    const std::uint32_t component = forest_.node(row).component;
    Row best = kNoRow;
    double best_margin = 0.0;
    for (const Proposal& proposal : reaching_.rows) {
      const Node& other = forest_.node(proposal.row);
      const bool listed = other.mark == sides.mark;
      if (other.component != component || listed != sides.listed_is_cut_off) continue;
      const double needed = required(row, proposal.row);
      if (proposal.upper - needed < best_margin) continue;
      const double margin = exact(row, proposal.row) - needed;
      if (margin > best_margin ||
          (margin == best_margin && (best == kNoRow || other.number < forest_.node(best).number))) {
        best = proposal.row;
        best_margin = margin;
      }
    }
    return best;
  }

  // All rows whose similarity to a node's centroid may reach what the least edge needs.
  void find_reaching(Row row) {
    const Node& node = forest_.node(row);
    const double least = thresholds_.edge(static_cast<double>(node.count), 1.0);
    queries_.set(kBlockMax, rows_.sum(row), node.root, dimension_,
                 static_cast<float>(least) - 1e-6f, kernel_.encode_sum);
    search_.reaching(rows_, queries_, kBlockMax, reaching_);
  }

  // Gives the smaller part a fresh ID; the larger keeps the old (tie: the oldest node's). The side
  // that was listed gets the new component; which of the two IDs it bears is another matter.
  void split(Row row, Row partner, const Sides& sides) {
    const std::uint32_t old = forest_.node(row).component;
    const auto fresh = static_cast<std::uint32_t>(forest_.components.size());
    std::int64_t vectors = 0;
    for (const Row member : *sides.listed) vectors += forest_.node(member).count;
    const std::int64_t others = forest_.components[old].vectors - vectors;
    const bool leaves = vectors != others ? vectors < others : !listed_has_oldest(old, sides);
    for (const Row member : *sides.listed) forest_.node(member).component = fresh;
    const std::int64_t id = forest_.components[old].cluster;
    const std::int64_t fresh_id = next_cluster_++;
    forest_.components.push_back({leaves ? fresh_id : id, vectors});
    forest_.components[old] = {leaves ? id : fresh_id, others};
    const bool cut_off_leaves = leaves == sides.listed_is_cut_off;
    const Row inside = cut_off_leaves ? partner : row, outside = cut_off_leaves ? row : partner;
    record(Code::kSplit, forest_.node(inside).number, forest_.node(outside).number, id, fresh_id);
  }

  // Whether the listed side of a component holds its oldest node; only asked when sizes tie.
  bool listed_has_oldest(std::uint32_t component, const Sides& sides) const {
    std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
    bool listed = false;
    each_node([&](Row, const Node& node) {
      if (node.component == component && node.number < oldest) {
        oldest = node.number;
        listed = node.mark == sides.mark;
      }
    });
    return listed;
  }

  // Budgets: when an edge must be looked at again (docs/choices.md, "hubs stay cheap")

  // An upper bound of the angle by which a sum a turns when b is added: the part of b across a,
  // over the length along a. The tangent is at least the angle; the rest is room for roundings.
  static double turn(Integer square_a, Integer product, Integer square_b) {
    const double a = static_cast<double>(square_a), d = static_cast<double>(product);
    const double along = a + d;  // times 1/|a|
    const double across = static_cast<double>(square_b) * a - d * d;
    const double bound = std::sqrt(std::max(across, 0.0) + 1e-12 * a * static_cast<double>(square_b));
    return along > 0 ? bound / along * (1.0 + 1e-9) + 1e-12 : 4.0;
  }

  // A node with many edges notes where it stands when all of them are judged: it wanders to and fro,
  // and its distance from there stays much smaller than the way it goes.
  void note_anchor(Row row) {
    Node& node = forest_.node(row);
    if (!node.anchor) node.anchor = std::make_unique<float[]>(dimension_);
    const std::int64_t* sum = rows_.sum(row);
    for (std::size_t i = 0; i < dimension_; ++i) {
      node.anchor[i] = static_cast<float>(static_cast<double>(sum[i]) / node.root);
    }
    node.moved = 0.0;
  }

  // The centroid has turned by at most an angle. An arc is at most its chord and a twentieth of
  // the chord's cube longer; the rest is room for the roundings of floats.
  void move(Row row, double turned) {
    Node& node = forest_.node(row);
    if (!node.anchor) {
      node.moved += turned;
      return;
    }
    const double square = kernel_.chord2(rows_.sum(row), node.root, node.anchor.get(), dimension_);
    const double chord = std::sqrt(square);
    node.moved = chord < 1.0 ? chord * (1.0 + 0.05 * square) + 4e-6 : 4.0;
  }

  // Just judged to hold at a similarity: it cannot fail equation 22, nor reach T_s, before its two
  // ends together have turned by the lesser of the angles to those bounds, with counts within
  // their limits. Each end holds half.
  void set_budget(Edge edge, Row a, Row b, double score) {
    const double half = half_slack(a, b, score);
    if (judging_all_ && half <= 0.0) forest_.node(a).hasty += 1;
    forest_.set_expiry(edge, a, expiry(a, half));
    forest_.set_expiry(edge, b, expiry(b, half));
  }

  void add_edge(Row a, Row b, double score) {
    const double half = half_slack(a, b, score);
    forest_.add_edge(a, b, expiry(a, half), expiry(b, half));
  }

  double half_slack(Row a, Row b, double score) const {
    const double needed = thresholds_.edge(static_cast<double>(forest_.node(a).count_limit),
                                           static_cast<double>(forest_.node(b).count_limit));
    if (score <= needed || score >= thresholds_.subcluster_similarity) return 0.0;
    const double angle = std::acos(score);
    const double to_fail = std::acos(std::min(needed, 1.0)) - angle;
    const double to_merge = angle - std::acos(thresholds_.subcluster_similarity);
    return 0.5 * (std::min(to_fail, to_merge) - 1e-6);
  }

  // How far the node may have moved before half of the slack is used up: further along its way; or,
  // from its anchor, so far that even going back past it and on would not use it up.
  float expiry(Row row, double half) const {
    const Node& node = forest_.node(row);
    const double reach = node.anchor ? half - node.moved : half;
    if (reach <= 0.0) return kAlways;
    return std::nextafter(static_cast<float>(node.anchor ? reach : node.moved + reach), kAlways);
  }

  // The graph

  Row new_node(std::uint32_t component, std::size_t index) {
    const Row row = rows_.take();
    forest_.make_room(row + 1);
    Node& node = forest_.node(row);
    const Incoming& x = block_[index];
    node = Node();
    node.square = x.square;
    node.root = x.root;
    node.number = next_subcluster_++;
    node.count = 1;
    node.count_limit = 2;
    node.first_seen = node.last_seen = n_vectors_;
    node.component = component;
    forest_.components[component].vectors += 1;
    std::copy(x.q, x.q + dimension_, rows_.sum(row));
    encode(row);
    if (track_vectors_) survivors_.push_back(static_cast<std::uint32_t>(node.number));
    ++n_nodes_;
    return row;
  }

  void release(Row row) {
    forest_.node(row) = Node();
    rows_.release(row);
    touched_.drop(row);
    --n_nodes_;
  }

  void encode(Row row) {
    float scale, residual;
    kernel_.encode_sum(rows_.sum(row), forest_.node(row).root, dimension_, codes_.data(),
                       room_.data(), &scale, &residual);
    rows_.codes(row).write(row % kChunkRows, codes_.data(), scale, residual);
    touched_.write(row, codes_.data(), scale, residual);
  }

  template <class... Numbers>
  void record(Code code, Numbers... numbers) {
    EventRow row{static_cast<std::int64_t>(code), n_vectors_, -1, -1, -1, -1};
    std::size_t place = 2;
    ((row[place++] = numbers), ...);
    log_.append(row);
  }

  std::int64_t cluster_of(const Node& node) const {
    return forest_.components[node.component].cluster;
  }

  double required(Row a, Row b) const {  // s~(k, k')
    return thresholds_.edge(static_cast<double>(forest_.node(a).count),
                            static_cast<double>(forest_.node(b).count));
  }

  double exact(Row a, Row b) const {
    const Node& one = forest_.node(a);
    const Node& other = forest_.node(b);
    return similarity(
        dot(kernel_, rows_.sum(a), one.count, rows_.sum(b), other.count, dimension_), one.root,
        other.root);
  }

  template <class Visit>
  void each_node(Visit visit) const {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const Node& node = forest_.node(static_cast<Row>(row));
      if (node.number >= 0) visit(static_cast<Row>(row), node);
    }
  }

  // Blocks: a batch equals one by one (docs/choices.md)

  struct Incoming {
    const std::int32_t* q;
    Integer square;
    double root;
  };

  // Larger blocks make the scan cheaper a vector and the rows touched within a block more: they
  // grow with the table.
  std::size_t block_size() const {
    const std::size_t size = rows_.size() / 8;
    return std::clamp<std::size_t>(size, 1, kBlockMax / 2);
  }

  void begin_block(const std::int32_t* vectors, std::size_t n) {
    block_.resize(n);
    lists_.resize(std::max(lists_.size(), n));
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t* q = vectors + i * dimension_;
      const Integer square = kernel_.square(q, dimension_);
      block_[i] = {q, square, root(square)};
      queries_.set(i, q, block_[i].root, dimension_, bar_, kernel_.encode_vector);
    }
    if (n == 1) {
      search_.nearest(rows_, queries_, 0, lists_[0]);
      lists_[0].bar = bar_;  // whatever may be the nearest is in the list
    } else {
      search_.best_few(rows_, queries_, n, lists_.data());
      touched_.begin_block();
    }
  }

  struct Failing {
    double margin;
    std::int64_t number;
    Edge edge;
    bool operator<(const Failing& other) const {
      return margin < other.margin || (margin == other.margin && number < other.number);
    }
  };

  Thresholds thresholds_;
  std::size_t dimension_;
  bool track_vectors_;
  Skip skip_;
  const Kernel& kernel_;
  Pool pool_;
  Search search_;
  Rows rows_;
  Forest forest_;
  std::int64_t n_nodes_ = 0;
  std::int64_t n_vectors_ = 0;
  std::int64_t next_subcluster_ = 0;
  std::int64_t next_cluster_ = 0;
  std::vector<std::uint32_t> vector_numbers_;  // subcluster of each vector, when it came
  std::vector<std::uint32_t> survivors_;       // of each subcluster: itself, or what absorbed it

  Queries queries_;
  Touched touched_;
  std::vector<std::int32_t> fixed_;
  std::vector<Incoming> block_;
  std::vector<Shortlist> lists_;
  Shortlist reaching_;
  std::vector<Proposal> proposals_;
  Integer best_product_ = 0;  // x.S of the nearest found last
  std::vector<std::int8_t> codes_;
  std::vector<float> room_;
  std::vector<Edge> due_, still_due_;
  bool judging_all_ = false;
  std::vector<Judged> judged_;
  std::vector<Failing> failing_;
  std::vector<Row> near_side_, far_side_;
  std::uint32_t marks_ = 0;
  EventLog log_;
  double lowest_;
  float bar_;

 public:
  // Exchange (state.hpp): all there is to know, as plain arrays, and back.

  std::vector<std::int64_t> live_numbers() {
    std::vector<std::int64_t> result;
    result.reserve(vector_numbers_.size());
    for (std::uint32_t& number : vector_numbers_) {
      while (survivors_[number] != number) number = survivors_[number] = survivors_[survivors_[number]];
      result.push_back(number);
    }
    return result;
  }

  std::vector<std::int64_t> labels() {
    std::vector<std::int64_t> clusters(static_cast<std::size_t>(next_subcluster_), -1);
    each_node([&](Row, const Node& node) {
      clusters[static_cast<std::size_t>(node.number)] = cluster_of(node);
    });
    std::vector<std::int64_t> result = live_numbers();
    for (std::int64_t& value : result) value = clusters[static_cast<std::size_t>(value)];
    return result;
  }

  State state() {
    State state;
    state.n_vectors = n_vectors_;
    state.n_events = log_.n_events();
    state.next_subcluster = next_subcluster_;
    state.next_cluster = next_cluster_;
    std::vector<Row> order;
    each_node([&](Row row, const Node&) { order.push_back(row); });
    std::sort(order.begin(), order.end(), [this](Row a, Row b) {
      return forest_.node(a).number < forest_.node(b).number;
    });
    for (const Row row : order) {
      const Node& node = forest_.node(row);
      state.numbers.push_back(node.number);
      state.clusters.push_back(cluster_of(node));
      state.counts.push_back(node.count);
      state.first_seen.push_back(node.first_seen);
      state.last_seen.push_back(node.last_seen);
      state.sums.insert(state.sums.end(), rows_.sum(row), rows_.sum(row) + dimension_);
      const std::size_t first = state.edges.size();
      for (const HeldEdge& held : node.edges) {
        const std::int64_t other = forest_.node(forest_.other_end(held.edge, row)).number;
        if (node.number < other) state.edges.push_back({node.number, other});
      }
      std::sort(state.edges.begin() + static_cast<std::ptrdiff_t>(first), state.edges.end());
    }
    state.vectors = live_numbers();
    state.events = log_.rows(log_.oldest());
    return state;
  }

  // Takes over a state, which the caller has checked; the engine must be new.
  void restore(const State& state) {
    n_vectors_ = state.n_vectors;
    next_subcluster_ = state.next_subcluster;
    next_cluster_ = state.next_cluster;
    for (const EventRow& row : state.events) log_.append(row);
    log_.set_n_events(state.n_events);
    if (track_vectors_) {
      survivors_.resize(static_cast<std::size_t>(next_subcluster_));
      for (std::size_t i = 0; i < survivors_.size(); ++i) survivors_[i] = static_cast<std::uint32_t>(i);
      for (const std::int64_t number : state.vectors) {
        vector_numbers_.push_back(static_cast<std::uint32_t>(number));
      }
    }
    restore_nodes(state);
    for (const auto& edge : state.edges) {
      forest_.add_edge(row_of(state, edge[0]), row_of(state, edge[1]), kAlways, kAlways);
    }
  }

 private:
  void restore_nodes(const State& state) {
    std::vector<std::int64_t> ids = state.clusters;
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    for (const std::int64_t id : ids) forest_.components.push_back({id, 0});
    for (std::size_t i = 0; i < state.numbers.size(); ++i) {
      const Row row = rows_.take();
      forest_.make_room(row + 1);
      const std::int64_t* sum = state.sums.data() + i * dimension_;
      std::copy(sum, sum + dimension_, rows_.sum(row));
      Node& node = forest_.node(row);
      node.number = state.numbers[i];
      node.count = state.counts[i];
      node.count_limit = 2 * node.count;
      node.first_seen = state.first_seen[i];
      node.last_seen = state.last_seen[i];
      node.square = dot(kernel_, sum, node.count, sum, node.count, dimension_);
      node.root = root(node.square);
      const auto place = std::lower_bound(ids.begin(), ids.end(), state.clusters[i]) - ids.begin();
      node.component = static_cast<std::uint32_t>(place);
      forest_.components[node.component].vectors += node.count;
      encode(row);
      ++n_nodes_;
    }
  }

  // Rows are taken in order of number when a state is restored.
  static Row row_of(const State& state, std::int64_t number) {
    return static_cast<Row>(
        std::lower_bound(state.numbers.begin(), state.numbers.end(), number) -
        state.numbers.begin());
  }
};

}  // namespace linkstream
