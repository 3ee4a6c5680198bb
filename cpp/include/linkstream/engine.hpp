// What: Links. Vectors in, decisions and events out: the state machine of sections 3.2-3.5.
// Python twin: engine/reference.py, the definition; the two read side by side.
// Invariants: decisions, events and state are those of the twin bit for bit, whatever the kernel,
//   the number of threads, and how a stream is cut into calls.
// Numerics: fixed_point.hpp. The search only proposes; every comparison that decides is between an
//   exact similarity and a threshold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrivals.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "pool.hpp"
#include "scan.hpp"
#include "state.hpp"
#include "thresholds.hpp"
#include "update.hpp"
#include "wholes.hpp"

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

inline constexpr std::size_t kUntrackedEvents = 100000;

class Engine {
 public:
  Engine(const Thresholds& thresholds, std::size_t dimension, bool track_vectors,
         bool cluster_evidence, const Kernel& kernel, std::size_t threads,
         Skip skip = Skip::kWithinBudget)
      : thresholds_(thresholds),
        kernel_(kernel),
        pool_(threads),
        search_(kernel, pool_),
        graph_(thresholds, dimension, kernel, skip),
        journal_(track_vectors ? 0 : kUntrackedEvents),
        members_(track_vectors),
        wholes_(graph_, search_, cluster_evidence),
        arrivals_(graph_, search_),
        update_(graph_, search_, journal_, members_, wholes_) {}

  std::int64_t n_vectors() const { return journal_.n_vectors; }
  std::int64_t n_subclusters() const { return graph_.n_nodes; }
  std::int64_t n_clusters() const {
    return static_cast<std::int64_t>(graph_.forest.components.size());
  }
  std::int64_t n_cluster_ids() const { return journal_.next_cluster; }
  const EventLog& log() const { return journal_.log; }

  // Takes fixed-point vectors in order of arrival.
  void add(const std::int32_t* vectors, std::size_t n, Decision* decisions) {
    each_block(n, [&](std::size_t first, std::size_t block) {
      arrivals_.begin(vectors + first * graph_.dimension(), block);
      for (std::size_t i = 0; i < block; ++i) decisions[first + i] = add_one(i);
    });
  }

  // The same of vectors as they come, whose norms are given and in bounds.
  void add(const float* vectors, const double* norms, std::size_t n, Decision* decisions) {
    const std::size_t dimension = graph_.dimension();
    each_block(n, [&](std::size_t first, std::size_t block) {
      fixed_.resize(std::max(fixed_.size(), block * dimension));
      for (std::size_t i = 0; i < block; ++i) {
        kernel_.quantise(vectors + (first + i) * dimension, norms[first + i], dimension,
                         fixed_.data() + i * dimension);
      }
      arrivals_.begin(fixed_.data(), block);
      for (std::size_t i = 0; i < block; ++i) decisions[first + i] = add_one(i);
    });
  }

  // What equations 20 and 21 say of each vector; nothing changes.
  void ask(const std::int32_t* vectors, std::size_t n, Decision* decisions) {
    each_block(n, [&](std::size_t first, std::size_t block) {
      arrivals_.begin(vectors + first * graph_.dimension(), block);
      for (std::size_t i = 0; i < block; ++i) decisions[first + i] = ask_one(i);
    });
  }

  // The most similar subclusters, best first (tie: the older).
  std::vector<Candidate> ranked(const std::int32_t* q, std::size_t limit) const {
    const std::size_t dimension = graph_.dimension();
    const double root_q = root(kernel_.square(q, dimension));
    std::vector<Candidate> all;
    all.reserve(static_cast<std::size_t>(graph_.n_nodes));
    graph_.each_node([&](Row row) {
      const Node& node = graph_.node(row);
      const Integer product = dot(kernel_, q, graph_.rows.sum(row), node.count, dimension);
      all.push_back({node.number, graph_.cluster(row), node.count,
                     similarity(product, root_q, node.root),
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

  // Current cluster of each vector, in order of arrival.
  std::vector<std::int64_t> labels() {
    std::vector<std::int64_t> clusters(static_cast<std::size_t>(journal_.next_subcluster), -1);
    graph_.each_node([&](Row row) {
      clusters[static_cast<std::size_t>(graph_.number(row))] = graph_.cluster(row);
    });
    std::vector<std::int64_t> result = members_.live();
    for (std::int64_t& value : result) value = clusters[static_cast<std::size_t>(value)];
    return result;
  }

  // All there is to know, as plain arrays.
  State state() {
    State state;
    state.n_vectors = journal_.n_vectors;
    state.n_events = journal_.log.n_events();
    state.next_subcluster = journal_.next_subcluster;
    state.next_cluster = journal_.next_cluster;
    write_nodes(state, graph_);
    state.vectors = members_.live();
    state.events = journal_.log.rows(journal_.log.oldest());
    return state;
  }

  // Takes over a state, which the caller has checked; the engine must be new.
  void restore(const State& state) {
    journal_.n_vectors = state.n_vectors;
    journal_.next_subcluster = state.next_subcluster;
    journal_.next_cluster = state.next_cluster;
    for (const EventRow& row : state.events) journal_.log.append(row);
    journal_.log.set_n_events(state.n_events);
    members_.restore(state.vectors, state.next_subcluster);
    read_nodes(state, graph_);
    wholes_.read();
  }

 private:
  template <class Work>
  void each_block(std::size_t n, Work work) {
    for (std::size_t done = 0; done < n;) {
      const std::size_t block = std::min(n - done, arrivals_.block_size());
      work(done, block);
      arrivals_.end();
      done += block;
    }
  }

  // Section 3.3: assessing cluster membership

  // Which outcome, by which similarity and threshold; whom to join or to link to.
  struct Verdict {
    Kind kind = Kind::kNew;
    double similarity = kNothing;
    double threshold = kNothing;
    Row partner = kNoRow;
  };

  Decision add_one(std::size_t index) {
    const Nearest nearest = arrivals_.nearest(index);
    const Verdict verdict = assess(nearest, arrivals_[index]);
    Row row = verdict.partner;
    if (row == kNoRow) {
      row = create(arrivals_[index]);
    } else if (verdict.kind == Kind::kJoined) {
      join(row, arrivals_[index], nearest.product);
      row = update_(row);
    } else {
      row = link(row, arrivals_[index], verdict.similarity);
    }
    members_.joined(graph_.number(row));
    journal_.n_vectors += 1;
    return {graph_.cluster(row), graph_.number(row), verdict.kind, verdict.similarity,
            verdict.threshold};
  }

  // Which of the three outcomes, and what it was judged by.
  Verdict assess(const Nearest& nearest, const Incoming& x) {
    const bool any = nearest.row != kNoRow;
    const double t_s = thresholds_.subcluster_similarity;
    if (any && nearest.similarity >= t_s) {  // equation 20
      return {Kind::kJoined, nearest.similarity, t_s, nearest.row};
    }
    if (wholes_.on()) return assess_wholes(nearest, x);
    if (!any) return {};
    const auto count = static_cast<double>(graph_.node(nearest.row).count);
    const double threshold = thresholds_.edge(count, 1.0);  // s~(k_J), equation 25
    if (nearest.similarity >= threshold) {                  // equation 21
      return {Kind::kLinked, nearest.similarity, threshold, nearest.row};
    }
    return {Kind::kNew, nearest.similarity, threshold, kNoRow};
  }

  // Equation 21 with each whole cluster in J's place (docs/choices.md, "cluster evidence").
  Verdict assess_wholes(const Nearest& nearest, const Incoming& x) {
    const Wholes::Best best = wholes_.best(x);
    if (!best.found) return {};
    if (best.similarity - best.threshold < 0) {
      return {Kind::kNew, best.similarity, best.threshold, kNoRow};
    }
    Row partner = nearest.row;
    if (partner == kNoRow || graph_.node(partner).component != best.component) {
      partner = oldest(best.component);
    }
    return {Kind::kLinked, best.similarity, best.threshold, partner};
  }

  Row oldest(std::uint32_t component) const {
    Row found = kNoRow;
    graph_.each_node([&](Row row) {
      if (graph_.node(row).component != component) return;
      if (found == kNoRow || graph_.number(row) < graph_.number(found)) found = row;
    });
    return found;
  }

  Decision ask_one(std::size_t index) {
    const Verdict verdict = assess(arrivals_.nearest(index), arrivals_[index]);
    const bool any = verdict.partner != kNoRow;
    return {any ? graph_.cluster(verdict.partner) : -1,
            any && verdict.kind == Kind::kJoined ? graph_.number(verdict.partner) : -1,
            verdict.kind, verdict.similarity, verdict.threshold};
  }

  // Adds x to subcluster J.
  void join(Row row, const Incoming& x, Integer product) {
    graph_.add_vector(row, x, product);
    Node& node = graph_.node(row);
    node.last_seen = journal_.n_vectors;
    wholes_.add(node.component, x);
    graph_.forest.components[node.component].vectors += 1;
    journal_.record(Code::kJoined, node.number, graph_.cluster(row));
  }

  // Starts a subcluster containing just x, with an edge to J. Where whole clusters gave the evidence
  // the edge is firm: that of J alone may not pass.
  Row link(Row nearest, const Incoming& x, double score) {
    const Row row = new_node(graph_.node(nearest).component, x);
    if (wholes_.on()) score = graph_.exact(row, nearest);
    graph_.add_edge(row, nearest, score, wholes_.on());
    journal_.record(Code::kLinked, graph_.number(row), graph_.number(nearest), graph_.cluster(row));
    return row;
  }

  // Starts a subcluster containing just x, in a cluster of its own.
  Row create(const Incoming& x) {
    const auto component = static_cast<std::uint32_t>(graph_.forest.components.size());
    graph_.forest.components.push_back({journal_.new_cluster(), 0});
    const Row row = new_node(component, x);
    journal_.record(Code::kCreated, graph_.number(row), graph_.cluster(row));
    return row;
  }

  Row new_node(std::uint32_t component, const Incoming& x) {
    const Row row = graph_.take(journal_.new_subcluster(), x.square);
    Node& node = graph_.node(row);
    node.count = 1;
    node.count_limit = 2;
    node.first_seen = node.last_seen = journal_.n_vectors;
    node.component = component;
    wholes_.add(component, x);
    graph_.forest.components[component].vectors += 1;
    std::copy(x.q, x.q + graph_.dimension(), graph_.rows.sum(row));
    graph_.encode(row);
    members_.born(node.number);
    return row;
  }

  Thresholds thresholds_;
  const Kernel& kernel_;
  Pool pool_;
  Search search_;
  Graph graph_;
  Journal journal_;
  Members members_;
  Wholes wholes_;
  Arrivals arrivals_;
  Update update_;
  std::vector<std::int32_t> fixed_;
};

}  // namespace linkstream
