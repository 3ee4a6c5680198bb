// What: Links. Vectors in, decisions and events out: the state machine of sections 3.2-3.5.
// Python twin: engine/reference.py, the definition; the two read side by side.
// Invariants: decisions, events and state are those of the twin bit for bit, whatever the kernel,
//   the number of threads, and how a stream is cut into calls. Whatever is thrown, memory that ran out
//   included, the state is the one before the call, or before `begin`.
// Numerics: fixed_point.hpp. The search only proposes; every comparison that decides is between an
//   exact similarity and a threshold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "arrivals.hpp"
#include "assess.hpp"
#include "graph.hpp"
#include "hands.hpp"
#include "journal.hpp"
#include "kept.hpp"
#include "members.hpp"
#include "places.hpp"
#include "pool.hpp"
#include "receive.hpp"
#include "scan.hpp"
#include "state.hpp"
#include "thresholds.hpp"
#include "update.hpp"
#include "wholes.hpp"

namespace linkstream {

struct Decision {
  std::int64_t cluster;
  std::int64_t subcluster;
  Kind kind;
  double similarity;  // NaN where nothing reaches the lowest threshold
  double threshold;
};

// Vectors that come together: their sum, how much less each weighs, how many, and their flags.
struct Lot {
  const std::int64_t* sum;
  const std::int64_t* lights;
  std::size_t n;
  std::int64_t flags;
};

struct Candidate {
  std::int64_t subcluster;
  std::int64_t cluster;
  std::int64_t count;
  double similarity;
  double link_threshold;
};

inline constexpr std::size_t kUntrackedEvents = 100000;

// Asked between blocks whether to stop there; empty: never.
using Stop = std::function<bool()>;

class Engine {
 public:
  Engine(const Thresholds& thresholds, std::size_t dimension, bool track_vectors,
         bool cluster_evidence, const Kernel& kernel, std::size_t threads,
         Skip skip = Skip::kWithinBudget, std::shared_ptr<Kept> keep = nullptr)
      : thresholds_(thresholds),
        kernel_(kernel),
        pool_(threads),
        search_(kernel, pool_),
        graph_(thresholds, dimension, kernel, skip),
        journal_(track_vectors ? 0 : kUntrackedEvents),
        members_(track_vectors),
        wholes_(graph_, search_, cluster_evidence),
        assess_(graph_, wholes_),
        arrivals_(graph_, search_),
        update_(graph_, search_, journal_, members_, wholes_),
        places_(graph_, journal_, members_, wholes_, update_),
        hands_(graph_, journal_, members_, places_),
        receive_(graph_, search_, journal_, members_, wholes_, assess_),
        keep_(std::move(keep)) {}

  std::int64_t n_vectors() const { return journal_.n_vectors; }
  std::int64_t n_subclusters() const { return graph_.n_nodes; }
  std::int64_t n_clusters() const {
    return static_cast<std::int64_t>(graph_.forest.n_components());
  }
  std::int64_t n_cluster_ids() const { return journal_.free_cluster; }
  const EventLog& log() const { return journal_.log; }

  // A change of several calls: all of them are kept, or taken back, which needs no memory. A call
  // outside of one is a change of its own.

  void begin() {
    refuse_unless(!open_, "a change within a change");
    graph_.begin();
    members_.begin();
    journal_.begin();
    kept_before_ = keep_ ? keep_->size() : 0;
    open_ = true;
  }

  bool in_change() const { return open_; }

  void commit() {
    refuse_unless(open_ && !failed_, "no change, or one of which a part failed");
    graph_.commit();
    members_.commit();
    journal_.commit();
    open_ = false;
  }

  void rollback() {
    if (!open_) return;
    graph_.rollback();
    wholes_.read();
    members_.rollback();
    journal_.rollback();
    hands_.forget_rows();
    if (keep_) keep_->cut(kept_before_);
    open_ = failed_ = false;
  }

  // Takes fixed-point vectors in order of arrival; how many, where it was asked to stop.
  std::size_t add(const std::int32_t* vectors, std::size_t n, Decision* decisions,
                  const Stop& stop = {}) {
    Change change(*this);
    make_room(n);
    const std::size_t taken = each_block(n, stop, [&](std::size_t first, std::size_t block) {
      begin_block(vectors + first * graph_.dimension(), block);
      for (std::size_t i = 0; i < block; ++i) decisions[first + i] = add_one(i);
    });
    change.done();
    return taken;
  }

  // The same of vectors as they come, whose norms are given and in bounds.
  std::size_t add(const float* vectors, const double* norms, std::size_t n, Decision* decisions,
                  const Stop& stop = {}) {
    const std::size_t dimension = graph_.dimension();
    Change change(*this);
    make_room(n);
    const std::size_t taken = each_block(n, stop, [&](std::size_t first, std::size_t block) {
      fixed_.resize(std::max(fixed_.size(), block * dimension));
      for (std::size_t i = 0; i < block; ++i) {
        kernel_.quantise(vectors + (first + i) * dimension, norms[first + i], dimension,
                         fixed_.data() + i * dimension);
      }
      begin_block(fixed_.data(), block);
      for (std::size_t i = 0; i < block; ++i) decisions[first + i] = add_one(i);
    });
    change.done();
    return taken;
  }

  // What equations 20 and 21 say of each vector; nothing changes.
  std::size_t ask(const std::int32_t* vectors, std::size_t n, Decision* decisions,
                  const Stop& stop = {}) {
    return each_block(n, stop, [&](std::size_t first, std::size_t block) {
      begin_block(vectors + first * graph_.dimension(), block);
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
                     thresholds_.edge(node.mass(), 1.0)});
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

  // Current cluster of each vector, in order of arrival; -1 for one that was removed.
  std::vector<std::int64_t> labels() {
    return members_.live([this](auto visit) {
      graph_.each_node([&](Row row) { visit(graph_.number(row), graph_.cluster(row)); });
    });
  }

  // The subcluster that holds a vector, where these are tracked; -1 if it was removed.
  std::int64_t holder(std::int64_t member) {
    refuse_unless(members_.tracked() && member >= 0 && member < journal_.n_vectors, "no such vector");
    return members_.holder(member);
  }

  std::int64_t cluster_of(std::int64_t number) { return hands_.cluster_of(number); }
  bool has_cluster(std::int64_t cluster) const {
    const std::vector<Component>& all = graph_.forest.components;
    return cluster >= 0 && std::any_of(all.begin(), all.end(), [=](const Component& component) {
             return component.cluster == cluster && component.vectors > 0;
           });
  }
  auto total_of(std::int64_t number) { return hands_.total_of(number); }

  // Beyond the paper: a person's side. What cannot be is refused before anything changes.

  // Takes one vector of less weight, or with an outcome that is given; or puts a member that was
  // withdrawn in a new place.
  Decision take(const std::int32_t* q, const Order& order) {
    hands_.check(order);
    const bool is_new = order.member == -1;
    Change change(*this);
    if (is_new) make_room(1);
    const Verdict verdict = order.outcome < 0 ? tested(q) : hands_.given(order);
    const Incoming share = hands_.share_of(q, order.light);
    const Integer product = hands_.check_sum(verdict, share);
    if (is_new) journal_.newest = journal_.n_vectors;
    if (is_new && order.light) journal_.record(Code::kWeighed, kFull - order.light);
    const std::int64_t member = is_new ? journal_.n_vectors : order.member;
    // The node that is made holds the share, not the vector the verdict is about.
    const Row row = place(verdict, {share, order.light, member}, product, kNothing);
    if (is_new) {
      arrived(row, q);
    } else {
      members_.moved(member, graph_.number(row));
    }
    change.done();
    return {graph_.cluster(row), graph_.number(row), verdict.kind, verdict.similarity,
            verdict.threshold};
  }

  // Takes a vector's share out of the subcluster that holds it, exactly.
  void withdraw(const std::int32_t* q, std::int64_t light, std::int64_t target, std::int64_t member) {
    Change change(*this);
    hands_.withdraw(q, light, target, member);
    change.done();
  }

  void flag(std::int64_t number, std::int64_t flags) {
    Change change(*this);
    hands_.flag(number, flags);
    change.done();
  }

  // Takes lots, one after the other, as the tests say.
  void receive(const std::vector<Lot>& lots, Decision* decisions) {
    Change change(*this);
    const std::vector<Together> all = checked(lots);
    each_block(all.size(), {}, [&](std::size_t first, std::size_t block) {
      receive_.arrivals.begin(block, [&](std::size_t i) { return all[first + i]; });
      for (std::size_t i = 0; i < block; ++i) {
        const Lot& lot = lots[first + i];
        const Verdict verdict = receive_.test(i, (lot.flags & kLocked) != 0);
        decisions[first + i] = settled(verdict, all[first + i], lot, nullptr);
      }
    });
    change.done();
  }

  // Takes one lot; `vectors` is null where they are not kept. As the tests say; or in a cluster of
  // their own.
  Decision receive(const Lot& lot, const std::int32_t* vectors, bool apart) {
    Change change(*this);
    const Together x = checked({lot})[0];
    receive_.arrivals.begin(1, [&](std::size_t) { return x; });
    const Verdict verdict =
        apart ? Verdict() : receive_.test(0, (lot.flags & kLocked) != 0);
    const Decision decision = settled(verdict, x, lot, vectors);
    change.done();
    return decision;
  }

  // Writes events of what is not the engine's to do; their vector is the newest.
  void note(const std::vector<EventRow>& rows) {
    Change change(*this);
    hands_.note(rows);
    change.done();
  }

  // All there is to know, as plain arrays.
  State state() {
    State state;
    state.n_vectors = journal_.n_vectors;
    state.n_events = journal_.log.n_events();
    state.next_subcluster = journal_.next_subcluster;
    state.next_cluster = journal_.next_cluster;
    state.free_subcluster = journal_.free_subcluster;
    state.free_cluster = journal_.free_cluster;
    write_nodes(state, graph_);
    state.vectors = members_.live();
    state.events = journal_.log.rows(journal_.log.oldest());
    return state;
  }

  // Takes over a state, which the caller has checked; the engine must be new.
  void restore(const State& state) {
    Change change(*this);
    journal_.n_vectors = state.n_vectors;
    journal_.next_subcluster = state.next_subcluster;
    journal_.next_cluster = state.next_cluster;
    journal_.free_subcluster = state.free_subcluster;
    journal_.free_cluster = state.free_cluster;
    journal_.newest = std::max<std::int64_t>(state.n_vectors - 1, 0);
    for (const EventRow& row : state.events) journal_.log.append(row);
    journal_.log.set_n_events(state.n_events);
    read_nodes(state, graph_);
    wholes_.read();
    members_.restore(state.vectors, state.numbers, state.free_subcluster);
    change.done();
  }

 private:
  // A change of one call, unless it is part of a larger one: taken back where `done` is not reached.
  class Change {
   public:
    explicit Change(Engine& engine) : engine_(engine), whole_(!engine.open_) {
      if (whole_) engine_.begin();
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() {
      if (done_) return;
      if (whole_) {
        engine_.rollback();
      } else {
        engine_.failed_ = true;
      }
    }
    void done() {
      if (whole_) engine_.commit();
      done_ = true;
    }

   private:
    Engine& engine_;
    const bool whole_;
    bool done_ = false;
  };

  // What happens within a block ends with it, whatever is thrown.
  struct BlockEnd {
    Graph& graph;
    ~BlockEnd() { graph.touched.end_block(); }
  };

  // Does the work block by block; how much of it was done.
  template <class Work>
  std::size_t each_block(std::size_t n, const Stop& stop, Work work) {
    std::size_t done = 0;
    while (done < n) {
      const std::size_t block = std::min(n - done, arrivals_.block_size());
      const BlockEnd end{graph_};
      work(done, block);
      done += block;
      if (stop && done < n && stop()) break;
    }
    return done;
  }

  void begin_block(const std::int32_t* vectors, std::size_t n) {
    arrivals_.begin(n, [&](std::size_t i) {
      const std::int32_t* q = vectors + i * graph_.dimension();
      const Integer square = kernel_.square(q, graph_.dimension());
      return Incoming{q, square, root(square)};
    });
  }

  // Section 3.3: assessing cluster membership

  Decision add_one(std::size_t index) {
    journal_.newest = journal_.n_vectors;
    const Nearest nearest = arrivals_.nearest(index);
    const Incoming& x = arrivals_[index];
    const Verdict verdict = assess_(nearest, x);
    const double score = wholes_.on() ? kNothing : verdict.similarity;
    const Row row = place(verdict, {x, 0, journal_.n_vectors}, nearest.product, score);
    arrived(row, x.q);
    return {graph_.cluster(row), graph_.number(row), verdict.kind, verdict.similarity,
            verdict.threshold};
  }

  // Does what the verdict says; the row that holds the vector then. The product is that with the sum
  // it joins; the score is the similarity to what it is linked to, or NaN.
  Row place(const Verdict& verdict, const Part& part, Integer product, double score) {
    if (verdict.partner == kNoRow) return places_.create(part);
    if (verdict.kind == Kind::kJoined) return places_.join(verdict.partner, part, product);
    return places_.link(verdict.partner, part, score, verdict.firm);
  }

  // A new vector is in its place.
  void arrived(Row row, const std::int32_t* q) {
    members_.joined(graph_.number(row));
    if (keep_) keep_->append(q, 1);
    journal_.n_vectors += 1;
  }

  Decision ask_one(std::size_t index) {
    const Verdict verdict = assess_(arrivals_.nearest(index), arrivals_[index]);
    const bool any = verdict.partner != kNoRow;
    return {any ? graph_.cluster(verdict.partner) : -1,
            any && verdict.kind == Kind::kJoined ? graph_.number(verdict.partner) : -1,
            verdict.kind, verdict.similarity, verdict.threshold};
  }

  // Beyond the paper

  // Each vector that comes is kept: memory for that is found before anything changes.
  void make_room(std::size_t n) {
    const auto more = static_cast<std::int64_t>(n);
    refuse_unless(more <= kVectorsMax - journal_.n_vectors, "more vectors than can be numbered");
    refuse_unless(more <= kSubclustersMax - journal_.free_subcluster, "no numbers left");
    if (keep_) keep_->reserve(n);
  }

  // Lots that can be taken, all of them, or none is.
  std::vector<Together> checked(const std::vector<Lot>& lots) {
    std::vector<Together> all;
    std::size_t n = 0;
    for (const Lot& lot : lots) {
      all.push_back(hands_.together(lot.sum, lot.lights, lot.n, lot.flags));
      n += lot.n;
    }
    make_room(n);
    return all;
  }

  Decision settled(const Verdict& verdict, const Together& x, const Lot& lot,
                   const std::int32_t* vectors) {
    Row row = receive_.put(verdict, x, lot.lights);
    if (keep_ && vectors) keep_->append(vectors, lot.n);
    if (lot.flags) hands_.flag(graph_.number(row), lot.flags);
    if (verdict.kind == Kind::kJoined) row = update_(row);
    return {graph_.cluster(row), graph_.number(row), verdict.kind, verdict.similarity,
            verdict.threshold};
  }

  Verdict tested(const std::int32_t* q) {
    begin_block(q, 1);
    return assess_(arrivals_.nearest(0), arrivals_[0]);
  }

  Thresholds thresholds_;
  const Kernel& kernel_;
  Pool pool_;
  Search search_;
  Graph graph_;
  Journal journal_;
  Members members_;
  Wholes wholes_;
  Assess assess_;
  Arrivals<Incoming> arrivals_;
  Update update_;
  Places places_;
  Hands hands_;
  Receive receive_;
  std::shared_ptr<Kept> keep_;
  std::vector<std::int32_t> fixed_;
  std::size_t kept_before_ = 0;  // the open change
  bool open_ = false;
  bool failed_ = false;  // a part of the open change: it can only be taken back
};

}  // namespace linkstream
