// What: nodes (subclusters), edges and components (clusters).
// Paper: section 3.2. Python twin: engine/forest.py.
// Invariants: the edges form a forest. The edges of a node are in a heap by how far the node may move
//   before they must be tested again, so that a hub does not test all of them each time. Equation 22
//   tests only edges of the rule kTested. Removed components are reused, and are empty until then.
//   While a change is open, each step is recorded before it is made, and memory is allocated before
//   that; a rollback needs no memory. The index of cluster IDs keeps the IDs of components that the
//   change has removed until it ends, so that a rollback adds nothing to it.
// Numerics: `moved` is an upper bound in radians.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fixed_point.hpp"
#include "room.hpp"
#include "rows.hpp"

namespace linkstream {

using Edge = std::uint32_t;

// Rules of edges: equation 22 tests the edge; a settlement or cluster evidence holds it; a user pinned
// it.
using EdgeRule = std::uint8_t;
inline constexpr EdgeRule kTested = 0, kSettled = 1, kPinned = 2;

// Flags of a node: its centroid is fixed; its part keeps the ID at a split; healing looks at it again.
inline constexpr std::uint8_t kLocked = 1, kClaim = 2, kDue = 4;

inline constexpr std::int64_t kFull = 256;  // the weight of a vector of full weight

// Returns the weight of `count` vectors that lack `missing_weight` 256ths, as k; at least 1.
inline double mass(std::int64_t count, std::int64_t missing_weight) {
  constexpr double part = 1.0 / static_cast<double>(kFull);
  return std::max(static_cast<double>(count) - static_cast<double>(missing_weight) * part, 1.0);
}

struct HeldEdge {
  float expiry;  // test again once the node has moved further than this
  Edge edge;
};

struct Node {
  Integer square = 0;  // S.S
  double root = 0.0;   // its square root
  double moved = 0.0;  // since the anchor was saved; without an anchor, along the whole path
  std::int64_t number = -1;
  std::int64_t count = 0;
  std::int64_t count_limit = 0;  // expiries hold while the count is at most this
  std::int64_t first_seen = 0;
  std::int64_t last_seen = 0;
  std::int64_t missing_weight = 0;  // the weight that the vectors lack: 256 count - their weight
  std::uint32_t component = 0;
  std::uint32_t mark = 0;
  std::uint32_t hasty = 0;  // edges due at every touch, when all were last tested
  std::uint8_t flags = 0;
  bool saved = false;  // the open change has saved the node
  std::vector<HeldEdge> edges;
  std::unique_ptr<float[]> anchor;  // direction when all of its many edges were tested

  double mass() const { return linkstream::mass(count, missing_weight); }
  bool locked() const { return flags & kLocked; }
  bool claims() const { return flags & kClaim; }

  // Makes this the node of a free row. It keeps the memory of its edges for a rollback.
  void clear() {
    std::vector<HeldEdge> room = std::move(edges);
    const bool was_saved = saved;
    *this = Node();
    edges = std::move(room);
    edges.clear();
    saved = was_saved;
  }
};

// A cluster: its vectors, the weight they lack, how many of its nodes claim its ID, and any of its
// nodes.
struct ClusterStats {
  std::int64_t cluster;
  std::int64_t vectors = 0;
  std::int64_t missing_weight = 0;
  std::int64_t claims = 0;
  Row member = kNoRow;
  Row oldest = kNoRow;  // kNoRow: not known
  bool saved = false;   // the open change has saved the statistics

  double mass() const { return linkstream::mass(vectors, missing_weight); }
};

inline constexpr std::uint32_t kNoComponent = std::numeric_limits<std::uint32_t>::max();
inline constexpr float kAlways = -std::numeric_limits<float>::infinity();

class Forest {
 public:
  Node& node(Row row) { return nodes_[row / kChunkRows][row % kChunkRows]; }
  const Node& node(Row row) const { return nodes_[row / kChunkRows][row % kChunkRows]; }

  void make_room(std::size_t rows) {
    while (nodes_.size() * kChunkRows < rows) {
      nodes_.push_back(std::make_unique<Node[]>(kChunkRows));
    }
  }

  Row other_end(Edge edge, Row row) const {
    return ends_[edge].row[ends_[edge].row[0] == row ? 1 : 0];
  }

  bool is_tested(Edge edge) const { return ends_[edge].rule == kTested; }
  EdgeRule rule(Edge edge) const { return ends_[edge].rule; }

  Edge add_edge(Row a, Row b, float expiry_a, float expiry_b, EdgeRule rule = kTested) {
    make_room_for_one(node(a).edges);
    make_room_for_one(node(b).edges);
    make_room_for_one(ends_);
    const bool made = free_.empty();
    const Edge edge = made ? static_cast<Edge>(ends_.size()) : free_.back();
    note({made ? EdgeStep::kMade : EdgeStep::kReused, edge, a, b, rule});
    if (made) {
      ends_.emplace_back();
    } else {
      free_.pop_back();
    }
    ends_[edge].row[0] = a;
    ends_[edge].row[1] = b;
    ends_[edge].rule = rule;
    hold(a, edge, expiry_a);
    hold(b, edge, expiry_b);
    return edge;
  }

  void remove_edge(Edge edge) {
    const Ends& ends = ends_[edge];
    make_room_for_one(free_);
    note({EdgeStep::kRemoved, edge, ends.row[0], ends.row[1], ends.rule});
    for (const Row row : ends.row) let_go(row, edge);
    free_.push_back(edge);
  }

  // Sets the rule of an edge, which becomes due.
  void set_rule(Edge edge, EdgeRule rule) {
    const Ends& ends = ends_[edge];
    note({EdgeStep::kHeld, edge, ends.row[0], ends.row[1], ends.rule});
    hold_by(edge, rule);
  }

  // Moves one end of an edge to another node, before the first node is removed.
  void move_edge(Edge edge, Row from, Row to) {
    make_room_for_one(node(to).edges);
    note({EdgeStep::kMoved, edge, from, to, ends_[edge].rule});
    relocate(edge, from, to);
  }

  // Makes all edges of a node due whenever one of their ends is touched.
  void set_all_due(Row row) {
    for (HeldEdge& held : node(row).edges) {
      held.expiry = kAlways;  // a heap of equals is one
      set_expiry(held.edge, other_end(held.edge, row), kAlways);
    }
  }

  void set_expiry(Edge edge, Row row, float expiry) {
    std::vector<HeldEdge>& edges = node(row).edges;
    const std::uint32_t position = ends_[edge].position[side(edge, row)];
    edges[position].expiry = expiry;
    sift(row, position);
  }

  // Finds the edges of a node that must be tested again, whose expiry its movement has passed, by
  // walking down the heap no further than needed.
  void expired(Row row, std::vector<Edge>& found) const {
    const Node& held = node(row);
    std::vector<std::uint32_t>& todo = walk_;
    todo.clear();
    if (!held.edges.empty()) todo.push_back(0);
    while (!todo.empty()) {
      const std::uint32_t position = todo.back();
      todo.pop_back();
      if (held.edges[position].expiry >= held.moved) continue;
      found.push_back(held.edges[position].edge);
      for (std::uint32_t child = 2 * position + 1; child <= 2 * position + 2; ++child) {
        if (child < held.edges.size()) todo.push_back(child);
      }
    }
  }

  // Returns the component of a cluster ID; kNoComponent if there is no such cluster.
  std::uint32_t component_of(std::int64_t cluster) const {
    const auto found = index_.find(cluster);
    return found != index_.end() && is_current(*found) ? found->second : kNoComponent;
  }

  std::uint32_t open_component(std::int64_t cluster) {
    make_room_for_one(components);
    make_room_for_one(component_steps_);
    make_room_for_one(stale);
    const bool made = free_components_.empty();
    if (!made) save_stats(free_components_.back());
    const auto component =
        made ? static_cast<std::uint32_t>(components.size()) : free_components_.back();
    index_[cluster] = component;
    note({made ? ComponentStep::kMade : ComponentStep::kReused, component, 0, cluster});
    if (made) {
      components.push_back({cluster});
      if (stale.size() < components.size()) stale.push_back(1);
    } else {
      free_components_.pop_back();
      components[component] = {cluster};
    }
    return component;
  }

  // Removes a component that has no nodes.
  void close_component(std::uint32_t component) {
    make_room_for_one(free_components_);
    save_stats(component);
    note({ComponentStep::kClosed, component, 0, components[component].cluster});
    if (!open_) index_.erase(components[component].cluster);
    free_components_.push_back(component);
    components[component] = {-1};
  }

  void swap_clusters(std::uint32_t one, std::uint32_t other) {
    save_stats(one);
    save_stats(other);
    note({ComponentStep::kSwapped, one, other, -1});
    exchange(one, other);
  }

  std::size_t n_components() const { return components.size() - free_components_.size(); }

  std::vector<ClusterStats> components;  // free ones too

  // Of each component, also of those that are gone: whether it may have changed since a reader, which
  // clears it, has read it. A change of its nodes is noted when the change of the graph ends.
  std::vector<std::uint8_t> stale;

  void note_stale(Row row) {
    if (node(row).number >= 0) stale[node(row).component] = 1;
  }

  // Notes the components that the open change has changed, except by their nodes.
  void note_stale() {
    for (const EdgeStep& step : edge_steps_) {
      note_stale(step.a);
      note_stale(step.b);
    }
    for (const ComponentStep& step : component_steps_) {
      stale[step.component] = 1;
      stale[step.other] = 1;
    }
  }

  // Saves the statistics of a component; call it before any change of them.
  void save_stats(std::uint32_t component) {
    if (!open_ || components[component].saved) return;
    stats_.push_back({component, components[component]});
    components[component].saved = true;
  }

  // Changes

  struct Record;

  void begin() { open_ = true; }

  void commit() {
    end_saving();
    forget_all(edge_steps_);
    forget_all(stats_);
    forget_steps(component_steps_);
    open_ = false;
  }

  // Commits, and moves what a rollback needs to a record. The index keeps IDs until `drop`.
  void commit(Record& record) {
    end_saving();
    hand_over(edge_steps_, record.edge_steps);
    hand_over(component_steps_, record.component_steps);
    hand_over(stats_, record.stats);
    open_ = false;
  }

  void drop(Record& record) { forget_steps(record.component_steps); }

  // Takes what a rollback needs from the record of the last change.
  void reopen(Record& record) {
    edge_steps_ = std::move(record.edge_steps);
    component_steps_ = std::move(record.component_steps);
    stats_ = std::move(record.stats);
  }

  void rollback() {
    open_ = false;
    for (; !edge_steps_.empty(); edge_steps_.pop_back()) take_back(edge_steps_.back());
    for (std::size_t i = component_steps_.size(); i-- > 0;) take_back(component_steps_[i]);
    end_saving();
    for (; !stats_.empty(); stats_.pop_back()) {
      const SavedStats& last = stats_.back();
      if (last.component >= components.size()) continue;
      components[last.component] = last.stats;
      components[last.component].oldest = kNoRow;
    }
    forget_steps(component_steps_);
  }

 private:
  // A step of the edges: an edge made, with a new number or a reused one; removed; moved from one row
  // to another; or held by another rule, with the rule before.
  struct EdgeStep {
    enum Kind : std::uint8_t { kMade, kReused, kRemoved, kMoved, kHeld } kind;
    Edge edge;
    Row a, b;
    EdgeRule rule;
  };

  // A step of the components: one made, or reused; closed; or two that swap their IDs. `cluster` is
  // the ID that was opened or closed.
  struct ComponentStep {
    enum Kind : std::uint8_t { kMade, kReused, kClosed, kSwapped } kind;
    std::uint32_t component, other;
    std::int64_t cluster;
  };

  struct SavedStats {
    std::uint32_t component;
    ClusterStats stats;
  };

 public:
  struct Record {
    std::vector<EdgeStep> edge_steps;
    std::vector<ComponentStep> component_steps;
    std::vector<SavedStats> stats;
  };

  // Returns the memory that a record of the open change takes.
  std::size_t change_bytes() const {
    return bytes_of(edge_steps_) + bytes_of(component_steps_) + bytes_of(stats_);
  }

 private:
  void end_saving() {
    for (const SavedStats& each : stats_) {
      if (each.component < components.size()) components[each.component].saved = false;
    }
  }

  void note(const EdgeStep& step) {
    if (open_) edge_steps_.push_back(step);
  }
  void note(const ComponentStep& step) {
    if (open_) component_steps_.push_back(step);
  }

  void take_back(const EdgeStep& step) {
    switch (step.kind) {
      case EdgeStep::kMade:
      case EdgeStep::kReused:
        for (const Row row : ends_[step.edge].row) let_go(row, step.edge);
        if (step.kind == EdgeStep::kMade) {
          ends_.pop_back();
        } else {
          free_.push_back(step.edge);
        }
        return;
      case EdgeStep::kRemoved:
        free_.pop_back();
        ends_[step.edge] = {{step.a, step.b}, {0, 0}, step.rule};
        hold(step.a, step.edge, kAlways);
        hold(step.b, step.edge, kAlways);
        return;
      case EdgeStep::kMoved:
        relocate(step.edge, step.b, step.a);
        set_expiry(step.edge, other_end(step.edge, step.a), kAlways);
        return;
      case EdgeStep::kHeld:
        hold_by(step.edge, step.rule);
        return;
    }
  }

  void take_back(const ComponentStep& step) {
    switch (step.kind) {
      case ComponentStep::kMade:
        components.pop_back();
        return;
      case ComponentStep::kReused:
        components[step.component] = {-1};
        free_components_.push_back(step.component);
        return;
      case ComponentStep::kClosed:
        free_components_.pop_back();
        components[step.component] = {step.cluster};
        index_.find(step.cluster)->second = step.component;
        return;
      case ComponentStep::kSwapped:
        exchange(step.component, step.other);
        return;
    }
  }

  void exchange(std::uint32_t one, std::uint32_t other) {
    std::swap(components[one].cluster, components[other].cluster);
    for (const std::uint32_t component : {one, other}) {
      index_.find(components[component].cluster)->second = component;
    }
  }

  // Returns whether an entry of the index is that of a live component.
  bool is_current(const std::pair<const std::int64_t, std::uint32_t>& entry) const {
    return entry.second < components.size() && components[entry.second].cluster == entry.first;
  }

  // Forgets steps of the components, and the IDs that are no longer used.
  void forget_steps(std::vector<ComponentStep>& steps) {
    for (const ComponentStep& step : steps) {
      const auto found = index_.find(step.cluster);
      if (found != index_.end() && !is_current(*found)) index_.erase(found);
    }
    forget_all(steps);
  }

  struct Ends {
    Row row[2];
    std::uint32_t position[2];  // in the heap of each end
    EdgeRule rule;
  };

  int side(Edge edge, Row row) const { return ends_[edge].row[0] == row ? 0 : 1; }

  void hold_by(Edge edge, EdgeRule rule) {
    ends_[edge].rule = rule;
    for (const Row row : ends_[edge].row) set_expiry(edge, row, kAlways);
  }

  void relocate(Edge edge, Row from, Row to) {
    let_go(from, edge);
    ends_[edge].row[ends_[edge].row[0] == from ? 0 : 1] = to;
    hold(to, edge, kAlways);
  }

  void hold(Row row, Edge edge, float expiry) {
    std::vector<HeldEdge>& edges = node(row).edges;
    edges.push_back({expiry, edge});
    put(row, static_cast<std::uint32_t>(edges.size() - 1), {expiry, edge});
    sift(row, static_cast<std::uint32_t>(edges.size() - 1));
  }

  void let_go(Row row, Edge edge) {
    std::vector<HeldEdge>& edges = node(row).edges;
    const std::uint32_t position = ends_[edge].position[side(edge, row)];
    const HeldEdge last = edges.back();
    edges.pop_back();
    if (position == edges.size()) return;
    put(row, position, last);
    sift(row, position);
  }

  void put(Row row, std::uint32_t position, HeldEdge held) {
    node(row).edges[position] = held;
    ends_[held.edge].position[side(held.edge, row)] = position;
  }

  // Restores the heap around one position.
  void sift(Row row, std::uint32_t position) {
    std::vector<HeldEdge>& edges = node(row).edges;
    const HeldEdge held = edges[position];
    while (position > 0 && edges[(position - 1) / 2].expiry > held.expiry) {
      put(row, position, edges[(position - 1) / 2]);
      position = (position - 1) / 2;
    }
    for (;;) {
      std::uint32_t child = 2 * position + 1;
      if (child >= edges.size()) break;
      if (child + 1 < edges.size() && edges[child + 1].expiry < edges[child].expiry) ++child;
      if (edges[child].expiry >= held.expiry) break;
      put(row, position, edges[child]);
      position = child;
    }
    put(row, position, held);
  }

  std::vector<std::unique_ptr<Node[]>> nodes_;
  std::vector<Ends> ends_;
  std::vector<Edge> free_;
  std::vector<std::uint32_t> free_components_;
  std::unordered_map<std::int64_t, std::uint32_t> index_;  // cluster ID: component
  std::vector<EdgeStep> edge_steps_;                       // of the open change, oldest first
  std::vector<ComponentStep> component_steps_;
  std::vector<SavedStats> stats_;
  bool open_ = false;
  mutable std::vector<std::uint32_t> walk_;
};

}  // namespace linkstream
