// What: subclusters and edges, with everything that changes with a sum: norm, codes, count, budget.
// Paper: section 3.2; the similarities of sections 3.3 and 3.4. Python twin: engine/graph.py.
// Invariants: codes are those of the sum; an edge that is not due satisfies equation 22 and is below
//   T_s (see `half_slack`), so that checking the due edges decides the same as checking all edges.
//   While a change is open, a node is saved before it is changed for the first time.
// Numerics: fixed_point.hpp. Budgets are bounds that allow for rounding errors; they never decide.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "bars.hpp"
#include "fixed_point.hpp"
#include "forest.hpp"
#include "rows.hpp"
#include "scan.hpp"
#include "thresholds.hpp"
#include "touched.hpp"

namespace linkstream {

inline constexpr std::size_t kManyEdges = 16;

// Which edge checks may be skipped; `kNever` checks all edges of a touched node each time, so that
// tests can compare the two.
enum class Skip { kWithinBudget, kNever };

// A vector that arrives: q, with its exact square.
struct IncomingVector {
  const std::int32_t* q;
  Integer square;
  double root;
};

// Vectors that arrive as one sum, and what they lack to their full weight, in 256ths.
struct IncomingSum {
  const std::int64_t* sum;
  std::int64_t n;
  std::int64_t missing_weight;
  Integer square;
  double root;
};

// Rows whose number was set since it was last cleared; `all`: there were too many to list.
struct Renumbered {
  std::vector<Row> rows;
  bool all = false;

  bool any() const { return all || !rows.empty(); }

  // Allocates the memory to add one row; not more than an eighth of the nodes need.
  void make_room(std::int64_t n_nodes) {
    const std::size_t most = 1024 + static_cast<std::size_t>(n_nodes) / 8;
    if (!all && rows.size() == rows.capacity() && rows.size() < most) make_room_for_one(rows);
  }

  // Needs no memory.
  void add(Row row) {
    if (all) return;
    all = rows.size() == rows.capacity();
    if (all) {
      rows.clear();
    } else {
      rows.push_back(row);
    }
  }

  void clear() {
    rows.clear();
    all = false;
  }
};

class Graph {
  // A node before the open change, without its edges, which the forest records, and its sum, which is
  // in `sums_`; number -1: the row was free.
  struct Image {
    Row row;
    std::size_t sum;
    struct {
      Integer square;
      double root;
      std::int64_t number, count, count_limit, first_seen, last_seen, missing_weight;
      std::uint32_t component;
      std::uint8_t flags;
    } node;
  };

  struct Move {
    Row row;
    std::uint32_t from;
  };

 public:
  // What a rollback of a change needs.
  struct Record {
    std::vector<Image> images;
    std::vector<std::int64_t> sums;
    std::vector<Move> moves;
    std::vector<Rows::Step> rows;
    Forest::Record forest;
    std::int64_t n_nodes = 0;
  };

  Graph(const Thresholds& limits, std::size_t dimension, const Kernel& kernel, Skip skip)
      : thresholds(limits),
        kernel(kernel),
        rows(dimension),
        touched(kBlockMax, rows.width()),
        skip_(skip),
        codes_(rows.width(), 0),
        room_(rows.width()) {}

  const Thresholds thresholds;
  const Kernel& kernel;
  Rows rows;
  Forest forest;
  Touched touched;
  Bars bars;
  Renumbered renumbered;
  std::int64_t n_nodes = 0;
  mutable std::int64_t n_walks = 0;  // over all nodes; a test counts them

  std::size_t dimension() const { return rows.dimension(); }
  Node& node(Row row) { return forest.node(row); }
  const Node& node(Row row) const { return forest.node(row); }
  std::int64_t number(Row row) const { return node(row).number; }
  std::int64_t cluster(Row row) const { return forest.components[node(row).component].cluster; }

  template <class Visit>
  void each_node(Visit visit) const {
    ++n_walks;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (number(static_cast<Row>(row)) >= 0) visit(static_cast<Row>(row));
    }
  }

  // s~(k, k') of two nodes.
  double required(Row a, Row b) const { return thresholds.edge(node(a).mass(), node(b).mass()); }

  // Returns the product of what arrives with a sum of `count` vectors.
  Integer product(const IncomingVector& x, const std::int64_t* sum, std::int64_t count) const {
    return dot(kernel, x.q, sum, count, dimension());
  }
  Integer product(const IncomingSum& x, const std::int64_t* sum, std::int64_t count) const {
    return dot(kernel, x.sum, x.n, sum, count, dimension());
  }

  // Encodes what arrives as a query of the scan.
  void ask(Queries& queries, const IncomingVector& x, float bar, std::size_t index = 0) const {
    queries.set(index, x.q, x.root, dimension(), bar, kernel.encode_vector);
  }
  void ask(Queries& queries, const IncomingSum& x, float bar, std::size_t index = 0) const {
    queries.set(index, x.sum, x.root, dimension(), bar, kernel.encode_sum);
  }

  // Returns the similarity of two centroids.
  double exact(Row a, Row b) const {
    return similarity(
        dot(kernel, rows.sum(a), node(a).count, rows.sum(b), node(b).count, dimension()),
        node(a).root, node(b).root);
  }

  // Nodes

  // Returns a row for a node of this number and square; the caller sets counts, times and component.
  Row take(std::int64_t number, Integer square) {
    renumbered.make_room(n_nodes);
    const Row row = rows.take();
    forest.make_room(row + 1);
    save(row);
    Node& fresh = node(row);
    fresh.clear();
    set_number(row, number);
    fresh.square = square;
    fresh.root = root(square);
    ++n_nodes;
    return row;
  }

  // Sets the number of a node that is saved.
  void set_number(Row row, std::int64_t number) {
    node(row).number = number;
    renumbered.add(row);
  }

  void release(Row row) {
    save(row);
    rows.release(row);
    touched.drop(row);
    node(row).clear();
    --n_nodes;
  }

  // Changes. A rollback needs no memory.

  void begin() {
    rows.begin();
    forest.begin();
    n_nodes_before_ = n_nodes;
    open_ = true;
  }

  void commit() {
    note_stale();
    free_edges(rows.steps());
    for (const Image& image : images_) node(image.row).saved = false;
    forget_all(images_);
    forget_all(sums_);
    forget_all(moves_);
    rows.commit();
    forest.commit();
    bars.commit();
    open_ = false;
  }

  // Commits, and moves what a rollback needs to a record. Released rows keep the memory of their edges
  // until `drop`.
  void commit(Record& record) {
    note_stale();
    for (const Image& image : images_) node(image.row).saved = false;
    hand_over(images_, record.images);
    hand_over(sums_, record.sums);
    hand_over(moves_, record.moves);
    record.n_nodes = n_nodes_before_;
    rows.commit(record.rows);
    forest.commit(record.forest);
    bars.commit();
    open_ = false;
  }

  // Returns the memory that a record of the open change takes.
  std::size_t change_bytes() const {
    return bytes_of(images_) + bytes_of(sums_) + bytes_of(moves_) + bytes_of(rows.steps()) +
           forest.change_bytes();
  }

  void drop(Record& record) {
    free_edges(record.rows);
    forest.drop(record.forest);
  }

  // Takes the last change back, by its record. No node is due then. What corrections require is not
  // taken back.
  void take_back(Record& record) {
    const bool any_due = due_unknown_;
    images_ = std::move(record.images);
    sums_ = std::move(record.sums);
    moves_ = std::move(record.moves);
    n_nodes_before_ = record.n_nodes;
    rows.reopen(record.rows);
    forest.reopen(record.forest);
    note_stale();
    for (Image& image : images_) image.node.flags &= static_cast<std::uint8_t>(~kDue);
    restore();
    clear_due(any_due);
  }

  // Notes the components that the open change has changed.
  void note_stale() {
    forest.note_stale();
    for (const Image& image : images_) {
      if (image.node.number >= 0) forest.stale[image.node.component] = 1;
      forest.note_stale(image.row);
    }
    for (const Move& move : moves_) {
      forest.stale[move.from] = 1;
      forest.note_stale(move.row);
    }
  }

  void rollback() {
    note_stale();  // a reader may have seen the open change
    bars.rollback();
    restore();
  }

 private:
  // Takes all steps back.
  void restore() {
    open_ = false;
    touched.end_block();
    forest.rollback();
    for (const Image& image : images_) put_back(image);
    for (; !moves_.empty(); moves_.pop_back())
      node(moves_.back().row).component = moves_.back().from;
    rows.rollback();
    for (const Image& image : images_) {
      if (image.node.number >= 0) encode(image.row);
    }
    forget_all(images_);
    forget_all(sums_);
    n_nodes = n_nodes_before_;
    due_unknown_ = true;
  }

  void clear_due(bool any) {
    const auto clear = [this](Row row) { node(row).flags &= static_cast<std::uint8_t>(~kDue); };
    if (any) each_node(clear);
    for (const Row row : due_rows_) clear(row);
    due_rows_.clear();
    due_unknown_ = false;
  }

  // Frees the memory of the edges of rows that were released and are free.
  void free_edges(const std::vector<Rows::Step>& steps) {
    Rows::each_released(steps, [this](Row row) {
      if (row < rows.size() && number(row) < 0) std::vector<HeldEdge>().swap(node(row).edges);
    });
  }

 public:
  // Saves a node; call it before any change of the node except its component.
  void save(Row row) {
    if (open_ && !node(row).saved) save_now(row);
  }

  // Moves a node to another component.
  void move_to(std::uint32_t component, Row row) {
    forest.save_stats(node(row).component);
    forest.save_stats(component);
    if (open_ && !node(row).saved) moves_.push_back({row, node(row).component});
    node(row).component = component;
    if (!bars.empty()) bars.moved(number(row), component);
  }

  // Computes the statistics of some components from all of their nodes.
  void count_components(const std::vector<std::uint32_t>& some, const std::vector<Row>& nodes) {
    for (const std::uint32_t component : some) {
      forest.save_stats(component);
      forest.components[component] = {forest.components[component].cluster};
    }
    for (const Row row : nodes) count(row);
  }

  // Writes the codes of a sum that has changed.
  void encode(Row row) {
    float scale, residual;
    kernel.encode_sum(rows.sum(row), node(row).root, dimension(), codes_.data(), room_.data(),
                      &scale, &residual);
    rows.codes(row).write(row % kChunkRows, codes_.data(), scale, residual);
    touched.write(row, codes_.data(), scale, residual);
  }

  // Adds a vector; |S+q|^2 = |S|^2 + 2 q.S + |q|^2 exactly.
  void add_vector(Row row, const IncomingVector& x, Integer product) {
    save(row);
    const double turned = turn(node(row).square, product, x.square);
    grow(row, product, x.square, 1);
    kernel.add_vector(rows.sum(row), x.q, dimension());
    moved(row, turned);
  }

  // Adds a sum of vectors in the same way.
  void add_sum(Row row, const IncomingSum& x, Integer product) {
    save(row);
    const double turned = turn(node(row).square, product, x.square);
    grow(row, product, x.square, x.n);
    std::int64_t* sum = rows.sum(row);
    for (std::size_t i = 0; i < dimension(); ++i) sum[i] += x.sum[i];
    moved(row, turned);
  }

  // Subtracts a vector.
  void take_vector(Row row, const IncomingVector& x, Integer product) {
    save(row);
    const double turned = turn(node(row).square, -product, x.square);
    grow(row, -product, x.square, -1);
    std::int64_t* sum = rows.sum(row);
    for (std::size_t i = 0; i < dimension(); ++i) sum[i] -= x.q[i];
    moved(row, turned);
  }

  // Adds the vectors and the edges of another node, which is released.
  void merge(Row row, Row gone) {
    save(row);
    save(gone);
    Node& kept = node(row);
    const Node& other = node(gone);
    const Integer product =
        dot(kernel, rows.sum(row), kept.count, rows.sum(gone), other.count, dimension());
    const double turned = turn(kept.square, product, other.square);
    grow(row, product, other.square, other.count);
    kept.missing_weight += other.missing_weight;
    forest.components[kept.component].claims -= kept.claims() && other.claims();
    kept.flags |= other.flags;
    if (kept.flags & kDue) due_rows_.push_back(row);
    if (forest.components[kept.component].member == gone) {
      forest.components[kept.component].member = row;
    }
    if (forest.components[kept.component].oldest == gone) {
      forest.components[kept.component].oldest = row;  // which gets the lower number
    }
    kept.first_seen = std::min(kept.first_seen, other.first_seen);
    kept.last_seen = std::max(kept.last_seen, other.last_seen);
    std::int64_t* sum = rows.sum(row);
    const std::int64_t* more = rows.sum(gone);
    for (std::size_t i = 0; i < dimension(); ++i) sum[i] += more[i];
    moved(row, turned);
    while (!other.edges.empty()) forest.move_edge(other.edges.back().edge, gone, row);
    release(gone);
  }

  // Healing

  // Marks a node that healing must look at again.
  void set_due(Row row) {
    save(row);
    due_rows_.push_back(row);
    node(row).flags |= kDue;
  }

  // Lists the nodes that are due, by number, and marks them no longer.
  void take_due(std::vector<Row>& found) {
    if (due_unknown_) {
      due_rows_.clear();
      each_node([this](Row row) { due_rows_.push_back(row); });
      due_unknown_ = false;
    }
    found.clear();
    for (const Row row : due_rows_) {
      if (number(row) < 0 || !(node(row).flags & kDue)) continue;
      save(row);
      node(row).flags &= static_cast<std::uint8_t>(~kDue);
      found.push_back(row);
    }
    due_rows_.clear();
    std::sort(found.begin(), found.end(), [this](Row a, Row b) { return number(a) < number(b); });
  }

  // Finds the nodes that are due by their flags the next time they are listed.
  void forget_due() { due_unknown_ = true; }

  // Edges

  void add_edge(Row a, Row b, double score, EdgeRule rule = kTested) {
    const double half = half_slack(a, b, score, rule == kTested);
    forest.add_edge(a, b, expiry(a, half), expiry(b, half), rule);
  }

  // Collects the edges of a node that may have failed or reached T_s since they were last tested: all
  // of them if the count is above its limit, or if so many are due that testing all is cheaper.
  void collect_due(Row row, std::vector<Edge>& due) {
    Node& held = node(row);
    due.clear();
    if (skip_ == Skip::kWithinBudget && held.count <= held.count_limit) {
      forest.expired(row, due);
      judging_all_ = false;
      if (held.edges.size() < kManyEdges) return;
      if (due.size() <= 2 * held.hasty + held.edges.size() / 8) return;
    }
    save(row);
    judging_all_ = true;
    held.count_limit = 2 * held.count;
    held.hasty = 0;
    if (held.edges.size() >= kManyEdges) note_anchor(row);
    due.clear();
    for (const HeldEdge& edge : held.edges) due.push_back(edge.edge);
  }

  // Sets the budget of an edge that was tested and holds at a similarity.
  void renew(Edge edge, Row row, Row other, double score) {
    const double half = half_slack(row, other, score, forest.is_tested(edge));
    if (judging_all_ && half <= 0.0) node(row).hasty += 1;
    forest.set_expiry(edge, row, expiry(row, half));
    forest.set_expiry(edge, other, expiry(other, half));
  }

 private:
  // Adds a node to the statistics of its component.
  void count(Row row) {
    const Node& counted = node(row);
    ClusterStats& component = forest.components[counted.component];
    component.vectors += counted.count;
    component.missing_weight += counted.missing_weight;
    component.claims += counted.claims();
    component.member = row;
  }

  void save_now(Row row) {
    Node& node = this->node(row);
    make_room_for_one(images_);
    const std::size_t offset = sums_.size();
    if (node.number >= 0) {
      forest.save_stats(node.component);
      const std::int64_t* sum = rows.sum(row);
      sums_.insert(sums_.end(), sum, sum + dimension());
    }
    images_.push_back(
        {row,
         offset,
         {node.square, node.root, node.number, node.count, node.count_limit, node.first_seen,
          node.last_seen, node.missing_weight, node.component, node.flags}});
    node.saved = true;
  }

  void put_back(const Image& image) {
    Node& node = this->node(image.row);
    node.square = image.node.square;
    node.root = image.node.root;
    set_number(image.row, image.node.number);
    node.count = image.node.count;
    node.count_limit = image.node.count_limit;
    node.first_seen = image.node.first_seen;
    node.last_seen = image.node.last_seen;
    node.missing_weight = image.node.missing_weight;
    node.component = image.node.component;
    node.flags = image.node.flags;
    node.saved = false;
    if (node.number >= 0) std::copy_n(sums_.data() + image.sum, dimension(), rows.sum(image.row));
    // Its edges hold budgets relative to positions that no longer exist: all become due.
    node.moved = 0.0;
    node.hasty = 0;
    node.anchor.reset();
    forest.set_all_due(image.row);
  }

  void grow(Row row, Integer product, Integer square, std::int64_t count) {
    Node& grown = node(row);
    grown.square += 2 * product + square;
    grown.root = root(grown.square);
    grown.count += count;
  }

  // Budgets (docs/choices.md, "Hubs stay cheap")

  // Returns an upper bound of the angle by which a sum a turns when b is added: the part of b across
  // a, over the length along a. The tangent is at least the angle; the rest allows for rounding.
  static double turn(Integer square_a, Integer product, Integer square_b) {
    const double a = static_cast<double>(square_a), b = static_cast<double>(square_b);
    const double d = static_cast<double>(product);
    const double across = std::sqrt(std::max(b * a - d * d, 0.0) + 1e-12 * a * b);
    return a + d > 0.0 ? across / (a + d) * (1.0 + 1e-9) + 1e-12 : 4.0;
  }

  // Saves the direction of a node with many edges when all of them are tested. Such a node moves to
  // and fro, and its distance from there stays much smaller than the length of its path.
  void note_anchor(Row row) {
    Node& noted = node(row);
    if (!noted.anchor) noted.anchor = std::make_unique<float[]>(dimension());
    const std::int64_t* sum = rows.sum(row);
    for (std::size_t i = 0; i < dimension(); ++i) {
      noted.anchor[i] = static_cast<float>(static_cast<double>(sum[i]) / noted.root);
    }
    noted.moved = 0.0;
  }

  // Records that a centroid has turned by at most an angle. An arc is longer than its chord by at most
  // a twentieth of the chord's cube; the rest allows for the rounding of floats.
  void moved(Row row, double turned) {
    Node& mover = node(row);
    if (mover.anchor) {
      const double square =
          kernel.chord2(rows.sum(row), mover.root, mover.anchor.get(), dimension());
      const double chord = std::sqrt(square);
      mover.moved = chord < 1.0 ? chord * (1.0 + 0.05 * square) + 4e-6 : 4.0;
    } else {
      mover.moved += turned;
    }
    encode(row);
  }

  // Returns half of the angle by which the ends of an edge, together, may turn before it can fail
  // equation 22 or reach T_s, while their counts stay within their limits (vectors weigh no more than
  // their count). Each end holds half of the slack. An edge that is not tested cannot fail.
  double half_slack(Row a, Row b, double score, bool tested) const {
    if (score >= thresholds.subcluster_similarity) return 0.0;
    const double angle = std::acos(std::max(score, -1.0));
    const double to_merge = angle - std::acos(thresholds.subcluster_similarity);
    if (!tested) return 0.5 * (to_merge - 1e-6);
    const double needed = thresholds.edge(static_cast<double>(node(a).count_limit),
                                          static_cast<double>(node(b).count_limit));
    if (score <= needed) return 0.0;
    const double to_fail = std::acos(std::min(needed, 1.0)) - angle;
    return 0.5 * (std::min(to_fail, to_merge) - 1e-6);
  }

  // Returns how far a node may have moved before half of the slack is used up: along its path; or from
  // its anchor, so far that even moving back past the anchor and on would not use it up.
  float expiry(Row row, double half) const {
    const Node& mover = node(row);
    const double reach = mover.anchor ? half - mover.moved : half;
    if (reach <= 0.0) return kAlways;
    return std::nextafter(static_cast<float>(mover.anchor ? reach : mover.moved + reach), kAlways);
  }

  Skip skip_;
  bool judging_all_ = false;
  std::vector<Row> due_rows_;  // rows that may be due
  bool due_unknown_ = false;   // any row may be due
  bool open_ = false;
  std::int64_t n_nodes_before_ = 0;
  std::vector<Image> images_;  // of nodes touched by the open change, in order
  std::vector<std::int64_t> sums_;
  std::vector<Move> moves_;
  std::vector<std::int8_t> codes_;
  std::vector<float> room_;
};

}  // namespace linkstream
