// What: the graph: nodes (subclusters), edges, components (clusters).
// Paper: section 3.2. Python twin: engine/forest.py.
// Invariants: the graph is a forest. Each node's edges stand in a heap by how far the node may move
//   before they must be looked at again, so that a hub does not look at all of them each time. A firm
//   edge was tied by a settlement or a person: equation 22 does not judge it. Components that are gone
//   are used again, and hold nothing until then. While a change is open, each step is noted before it
//   is made, memory for it is found before it is noted, and taking it back needs none.
// Numerics: `moved` is an upper bound in radians.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "fixed_point.hpp"
#include "room.hpp"
#include "rows.hpp"

namespace linkstream {

using Edge = std::uint32_t;

// How firm an edge is: judged by equation 22; settled; a person's word.
using Firmness = std::uint8_t;
inline constexpr Firmness kLoose = 0, kFirm = 1, kLaw = 2;

// Flags of a node: its centroid stays; its part keeps the ID at a split.
inline constexpr std::uint8_t kLocked = 1, kClaim = 2;

inline constexpr std::int64_t kFull = 256;  // the weight of a vector of full weight

// What so many vectors weigh, as k; one at the least.
inline double mass(std::int64_t count, std::int64_t light) {
  constexpr double part = 1.0 / static_cast<double>(kFull);
  return std::max(static_cast<double>(count) - static_cast<double>(light) * part, 1.0);
}

struct HeldEdge {
  float expiry;  // look again once the node has moved further than this
  Edge edge;
};

struct Node {
  Integer square = 0;  // S.S
  double root = 0.0;   // its square root
  double moved = 0.0;  // since the anchor was noted; without one, along the whole way so far
  std::int64_t number = -1;
  std::int64_t count = 0;
  std::int64_t count_limit = 0;  // expiries hold while the count is at most this
  std::int64_t first_seen = 0;
  std::int64_t last_seen = 0;
  std::int64_t light = 0;  // how much less than `count` the vectors weigh, in 256ths
  std::uint32_t component = 0;
  std::uint32_t mark = 0;
  std::uint32_t hasty = 0;  // edges due at every touch, when all were last judged
  std::uint8_t flags = 0;
  bool saved = false;  // within the open change, what the node was before it is known
  std::vector<HeldEdge> edges;
  std::unique_ptr<float[]> anchor;  // of a node with many edges: where it was when they were judged

  double mass() const { return linkstream::mass(count, light); }
  bool locked() const { return flags & kLocked; }
  bool claims() const { return flags & kClaim; }

  // Makes it the node of a row that is free. The room for edges stays: a change may be taken back.
  void clear() {
    std::vector<HeldEdge> room = std::move(edges);
    const bool was_saved = saved;
    *this = Node();
    edges = std::move(room);
    edges.clear();
    saved = was_saved;
  }
};

// A cluster: vectors in it, what these weigh less, how many of its nodes claim its ID.
struct Component {
  std::int64_t cluster;
  std::int64_t vectors = 0;
  std::int64_t light = 0;
  std::int64_t claims = 0;

  double mass() const { return linkstream::mass(vectors, light); }
};

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

  bool is_firm(Edge edge) const { return ends_[edge].firm != kLoose; }
  Firmness firmness(Edge edge) const { return ends_[edge].firm; }

  Edge add_edge(Row a, Row b, float expiry_a, float expiry_b, Firmness firm = kLoose) {
    make_room_for_one(node(a).edges);
    make_room_for_one(node(b).edges);
    make_room_for_one(ends_);
    const bool made = free_.empty();
    const Edge edge = made ? static_cast<Edge>(ends_.size()) : free_.back();
    note({made ? EdgeStep::kMade : EdgeStep::kReused, edge, a, b, firm});
    if (made) {
      ends_.emplace_back();
    } else {
      free_.pop_back();
    }
    ends_[edge].row[0] = a;
    ends_[edge].row[1] = b;
    ends_[edge].firm = firm;
    hold(a, edge, expiry_a);
    hold(b, edge, expiry_b);
    return edge;
  }

  void remove_edge(Edge edge) {
    const Ends& ends = ends_[edge];
    make_room_for_one(free_);
    note({EdgeStep::kRemoved, edge, ends.row[0], ends.row[1], ends.firm});
    for (const Row row : ends.row) let_go(row, edge);
    free_.push_back(edge);
  }

  // One end of an edge becomes another node: what happens to the edges of a node that is no more.
  void move_edge(Edge edge, Row from, Row to) {
    make_room_for_one(node(to).edges);
    note({EdgeStep::kMoved, edge, from, to, ends_[edge].firm});
    relocate(edge, from, to);
  }

  // Has all edges of a node looked at whenever one of their ends is touched.
  void set_all_due(Row row) {
    for (HeldEdge& held : node(row).edges) {
      held.expiry = kAlways;  // a heap of equals is one
      set_expiry(held.edge, other_end(held.edge, row), kAlways);
    }
  }

  void set_expiry(Edge edge, Row row, float expiry) {
    std::vector<HeldEdge>& edges = node(row).edges;
    const std::uint32_t place = ends_[edge].place[side(edge, row)];
    edges[place].expiry = expiry;
    sift(row, place);
  }

  // Edges of a node that must be looked at again: those whose expiry its movement has passed, found
  // by walking down the heap no further than needed.
  void expired(Row row, std::vector<Edge>& found) const {
    const Node& held = node(row);
    std::vector<std::uint32_t>& todo = walk_;
    todo.clear();
    if (!held.edges.empty()) todo.push_back(0);
    while (!todo.empty()) {
      const std::uint32_t place = todo.back();
      todo.pop_back();
      if (held.edges[place].expiry >= held.moved) continue;
      found.push_back(held.edges[place].edge);
      for (std::uint32_t child = 2 * place + 1; child <= 2 * place + 2; ++child) {
        if (child < held.edges.size()) todo.push_back(child);
      }
    }
  }

  std::uint32_t open_component(std::int64_t cluster) {
    make_room_for_one(components);
    const bool made = free_components_.empty();
    const auto component =
        made ? static_cast<std::uint32_t>(components.size()) : free_components_.back();
    note({made ? ComponentStep::kMade : ComponentStep::kReused, component, 0, -1});
    if (made) {
      components.push_back({cluster});
    } else {
      free_components_.pop_back();
      components[component] = {cluster};
    }
    return component;
  }

  // A component without a node is no more.
  void close_component(std::uint32_t component) {
    make_room_for_one(free_components_);
    note({ComponentStep::kClosed, component, 0, components[component].cluster});
    free_components_.push_back(component);
    components[component] = {-1};
  }

  void swap_clusters(std::uint32_t one, std::uint32_t other) {
    note({ComponentStep::kSwapped, one, other, -1});
    std::swap(components[one].cluster, components[other].cluster);
  }

  std::size_t n_components() const { return components.size() - free_components_.size(); }

  std::vector<Component> components;  // free ones too

  // A change: wholly kept, or taken back. What the components hold must then be counted again.

  void begin() { open_ = true; }

  void commit() {
    forget_all(edge_steps_);
    forget_all(component_steps_);
    open_ = false;
  }

  void rollback() {
    open_ = false;
    for (; !edge_steps_.empty(); edge_steps_.pop_back()) take_back(edge_steps_.back());
    for (; !component_steps_.empty(); component_steps_.pop_back()) take_back(component_steps_.back());
  }

 private:
  // A step of the edges: an edge with a number of its own or one used again, between two rows; taken
  // away; or moved from one row to another.
  struct EdgeStep {
    enum Kind : std::uint8_t { kMade, kReused, kRemoved, kMoved } kind;
    Edge edge;
    Row a, b;
    Firmness firm;
  };

  // A step of the components: one made, or used again; closed; or two that swap their IDs.
  struct ComponentStep {
    enum Kind : std::uint8_t { kMade, kReused, kClosed, kSwapped } kind;
    std::uint32_t component, other;
    std::int64_t cluster;
  };

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
        ends_[step.edge] = {{step.a, step.b}, {0, 0}, step.firm};
        hold(step.a, step.edge, kAlways);
        hold(step.b, step.edge, kAlways);
        return;
      case EdgeStep::kMoved:
        relocate(step.edge, step.b, step.a);
        set_expiry(step.edge, other_end(step.edge, step.a), kAlways);
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
        return;
      case ComponentStep::kSwapped:
        std::swap(components[step.component].cluster, components[step.other].cluster);
        return;
    }
  }

  struct Ends {
    Row row[2];
    std::uint32_t place[2];  // where each end's heap holds the edge
    Firmness firm;
  };

  int side(Edge edge, Row row) const { return ends_[edge].row[0] == row ? 0 : 1; }

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
    const std::uint32_t place = ends_[edge].place[side(edge, row)];
    const HeldEdge last = edges.back();
    edges.pop_back();
    if (place == edges.size()) return;
    put(row, place, last);
    sift(row, place);
  }

  void put(Row row, std::uint32_t place, HeldEdge held) {
    node(row).edges[place] = held;
    ends_[held.edge].place[side(held.edge, row)] = place;
  }

  // Restores the heap around one place, whichever way it must move.
  void sift(Row row, std::uint32_t place) {
    std::vector<HeldEdge>& edges = node(row).edges;
    const HeldEdge held = edges[place];
    while (place > 0 && edges[(place - 1) / 2].expiry > held.expiry) {
      put(row, place, edges[(place - 1) / 2]);
      place = (place - 1) / 2;
    }
    for (;;) {
      std::uint32_t child = 2 * place + 1;
      if (child >= edges.size()) break;
      if (child + 1 < edges.size() && edges[child + 1].expiry < edges[child].expiry) ++child;
      if (edges[child].expiry >= held.expiry) break;
      put(row, place, edges[child]);
      place = child;
    }
    put(row, place, held);
  }

  std::vector<std::unique_ptr<Node[]>> nodes_;
  std::vector<Ends> ends_;
  std::vector<Edge> free_;
  std::vector<std::uint32_t> free_components_;
  std::vector<EdgeStep> edge_steps_;  // of the open change, oldest first
  std::vector<ComponentStep> component_steps_;
  bool open_ = false;
  mutable std::vector<std::uint32_t> walk_;
};

}  // namespace linkstream
