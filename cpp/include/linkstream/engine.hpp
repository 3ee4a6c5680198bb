// What: Links. Vectors in, decisions and events out: the state machine of sections 3.2-3.5.
// Python twin: engine/reference.py, the definition. Both are composed of the same parts.
// Invariants: decisions, events and state equal those of the twin bit for bit, for every kernel, every
//   number of threads, and every way to cut a stream into calls. After any exception, std::bad_alloc
//   included, the state is that before the call, or before `begin`.
// Numerics: fixed_point.hpp. The search only proposes; every comparison that decides is between an
//   exact similarity and a threshold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absorb.hpp"
#include "arrivals.hpp"
#include "assess.hpp"
#include "cluster_index.hpp"
#include "cluster_margin.hpp"
#include "cluster_sums.hpp"
#include "corrections.hpp"
#include "graph.hpp"
#include "healing.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "placement.hpp"
#include "policy.hpp"
#include "pool.hpp"
#include "regroup.hpp"
#include "scan.hpp"
#include "state.hpp"
#include "thresholds.hpp"
#include "update.hpp"
#include "vector_store.hpp"

namespace linkstream {

struct Decision {
  std::int64_t cluster;
  std::int64_t subcluster;
  Kind kind;
  double similarity;  // NaN if no subcluster reaches the lowest threshold
  double threshold;
  double cluster_margin = kNothing;  // NaN if margins are off or no cluster was there
};

// Vectors that arrive as one sum: the sum, what each lacks to the full weight in 256ths, how many, and
// the flags of their subcluster.
struct VectorGroup {
  const std::int64_t* sum;
  const std::int64_t* missing_weights;
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

// A cluster as a whole: its weight, and its similarity to a vector.
struct Whole {
  std::int64_t cluster;
  double mass, similarity;
};

inline constexpr std::size_t kUntrackedEvents = 100000;

// Memory for changes that can be taken back, half of it at most for one of them; and what a change takes
// beside its contents, about.
inline constexpr std::size_t kKeptBytes = std::size_t{1} << 25;
inline constexpr std::size_t kRecordBytes = 4096;

// Called between blocks; true ends the call there. Empty: never.
using Stop = std::function<bool()>;

class Engine {
 public:
  Engine(const Thresholds& thresholds, std::size_t dimension, bool track_vectors,
         bool cluster_evidence, const Kernel& kernel, std::size_t threads,
         Skip skip = Skip::kWithinBudget, std::shared_ptr<VectorStore> vector_store = nullptr)
      : thresholds_(thresholds),
        kernel_(kernel),
        pool_(threads),
        search_(kernel, pool_),
        graph_(thresholds, dimension, kernel, skip),
        journal_(track_vectors ? 0 : kUntrackedEvents),
        members_(track_vectors),
        cluster_sums_(graph_, search_, cluster_evidence),
        update_(graph_, search_, journal_, members_, cluster_sums_),
        assess_(graph_, cluster_sums_, update_, cluster_evidence),
        arrivals_(graph_, search_),
        margin_(graph_, cluster_sums_, arrivals_, cluster_evidence),
        placement_(graph_, journal_, members_, cluster_sums_, update_),
        corrections_(graph_, journal_, members_, placement_),
        healer_(graph_, journal_, cluster_sums_, update_),
        regroup_(graph_, journal_, cluster_sums_, corrections_),
        absorb_(graph_, search_, journal_, members_, cluster_sums_, assess_),
        vector_store_(std::move(vector_store)) {}

  std::int64_t n_vectors() const { return journal_.n_vectors; }
  std::int64_t n_subclusters() const { return graph_.n_nodes; }
  std::int64_t n_clusters() const {
    return static_cast<std::int64_t>(graph_.forest.n_components());
  }
  std::int64_t n_walks() const { return graph_.n_walks; }
  std::int64_t n_visited() const { return members_.n_visited; }
  std::int64_t n_cluster_ids() const { return journal_.free_cluster; }
  std::int64_t n_events() const { return journal_.log.n_events(); }
  const EventLog& log() const { return journal_.log; }

  // A change of several calls is kept or rolled back as a whole; a rollback needs no memory. A call
  // outside of a change is a change of its own.

  void begin() {
    refuse_unless(!open_, "a change within a change");
    if (kept_.bytes > kKeptBytes / 2) kept_.clear(*this);
    graph_.begin();
    cluster_sums_.begin();
    members_.begin();
    journal_.begin();
    stored_before_ = vector_store_ ? vector_store_->size() : 0;
    open_ = true;
  }

  bool in_change() const { return open_; }

  // Whether the open change is small enough to be kept.
  bool can_keep() const { return change_bytes() <= kKeptBytes / 2; }

  // `keep`: so that `take_back` can take the change back, if it is small enough and memory allows it.
  void commit(bool keep = false) {
    refuse_unless(open_ && !failed_, "no open change, or one in which a call failed");
    const bool changed = journal_.has_events();
    if (!changed || !keep || !can_keep() || !make_record()) {
      if (changed) kept_.clear(*this);
      graph_.commit();
      cluster_sums_.commit();
      members_.commit();
    }
    journal_.commit();
    open_ = false;
  }

  // Returns how many of the newest changes `take_back` can take back.
  std::size_t n_kept() const { return kept_.records.size(); }

  // Takes the newest changes back, the last one first; their events and numbers stay given. An event
  // with the reason is appended. Nothing changes if memory does not suffice for that.
  void take_back(std::size_t n, EventRow reason) {
    refuse_unless(!open_ && n > 0 && n <= n_kept(), "changes that were not kept");
    const Record& first = kept_.records[n_kept() - n];
    const std::int64_t newest = std::max<std::int64_t>(first.counters.n_vectors - 1, 0);
    reason[1] = newest;
    append_alone(reason);
    for (; n > 0; --n) {
      Record& last = kept_.records.back();
      graph_.take_back(last.graph);
      cluster_sums_.take_back(last.cluster_sums);
      members_.take_back(last.members);
      journal_.take_back(last.counters);
      if (vector_store_) vector_store_->cut(last.stored);
      kept_.bytes -= last.bytes;
      kept_.records.pop_back();
    }
    journal_.newest = newest;
    members_.keep_chains(!kept_.records.empty());
  }

  void rollback() {
    if (!open_) return;
    graph_.rollback();
    cluster_sums_.rollback();
    members_.rollback();
    journal_.rollback();
    if (vector_store_) vector_store_->cut(stored_before_);
    open_ = failed_ = false;
  }

  // Adds fixed-point vectors in order of arrival. Returns how many: fewer than `n` if `stop` said so.
  std::size_t add(const std::int32_t* vectors, std::size_t n, Decision* decisions,
                  const Stop& stop = {}) {
    Change change(*this);
    make_room(n);
    const std::size_t taken = each_block(n, stop, [&](std::size_t first, std::size_t block) {
      begin_block(vectors + first * graph_.dimension(), block);
      add_block(block, decisions + first);
    });
    change.done();
    return taken;
  }

  // The same for float vectors, whose norms are given and in bounds.
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
      add_block(block, decisions + first);
    });
    change.done();
    return taken;
  }

  // Tells what equations 20 and 21 say of each vector; changes nothing.
  std::size_t ask(const std::int32_t* vectors, std::size_t n, Decision* decisions,
                  const Stop& stop = {}) {
    return each_block(n, stop, [&](std::size_t first, std::size_t block) {
      begin_block(vectors + first * graph_.dimension(), block);
      for (std::size_t i = 0; i < block; ++i) decisions[first + i] = ask_one(i);
    });
  }

  // Returns the most similar subclusters, best first (tie: the older). The scan proposes a few; if they
  // cannot be proven to have the best, more.
  std::vector<Candidate> ranked(const std::int32_t* q, std::size_t limit) {
    const auto all = static_cast<std::size_t>(graph_.n_nodes);
    const double root_q = root(kernel_.square(q, graph_.dimension()));
    limit = std::min(limit, all);
    Queries queries(kScanRows, graph_.rows.width());
    queries.set(0, q, root_q, graph_.dimension(), -kBelowAll, kernel_.encode_vector);
    Shortlist near;
    for (std::size_t few = 4 * limit + 64; limit && few < all; few *= 8) {
      search_.best_few(graph_.rows, queries, 1, &near, few, kBelowAll);
      std::vector<Candidate> found;
      for (const Proposal& proposal : near.rows)
        found.push_back(candidate(q, root_q, proposal.row));
      sort_best(found, limit);
      if (found.size() == limit && found.back().similarity >= near.bar) return found;
    }
    std::vector<Candidate> found;
    graph_.each_node([&](Row row) { found.push_back(candidate(q, root_q, row)); });
    sort_best(found, limit);
    return found;
  }

  // Returns each cluster as a whole and its similarity to a vector, -1 if it has no direction; by ID.
  std::vector<Whole> wholes(const std::int32_t* q) {
    cluster_sums_.turn_on();
    const std::size_t dimension = graph_.dimension();
    const double root_q = root(kernel_.square(q, dimension));
    std::vector<Whole> all;
    for (std::uint32_t i = 0; i < graph_.forest.components.size(); ++i) {
      const ClusterStats& stats = graph_.forest.components[i];
      if (stats.vectors == 0) continue;
      const Integer square = cluster_sums_.square(i);
      const Integer product = dot(kernel_, q, cluster_sums_.sum(i), stats.vectors, dimension);
      const double score = square == 0 ? -1.0 : similarity(product, root_q, root(square));
      all.push_back({stats.cluster, stats.mass(), score});
    }
    std::sort(all.begin(), all.end(),
              [](const Whole& a, const Whole& b) { return a.cluster < b.cluster; });
    return all;
  }

  // Finds the clusters with the greatest margins to each vector, best first, and calls
  // `found(i, j, cluster, margin)` for the j-th of vector i.
  template <class Found>
  void near_clusters(const std::int32_t* vectors, std::size_t n, std::size_t limit, Found found) {
    cluster_sums_.greatest_margins(
        vectors, n, limit,
        [&](std::size_t i, std::size_t j, std::uint32_t component, double margin) {
          found(i, j, graph_.forest.components[component].cluster, margin);
        });
  }

  // Computes the greatest similarity of each vector to another cluster as a whole; -1 if none.
  void elsewhere(const std::int32_t* vectors, std::size_t n, std::int64_t cluster, double* best) {
    cluster_sums_.elsewhere(vectors, n, graph_.forest.component_of(cluster), best);
  }

  // Returns the cluster of each vector, in order of arrival; -1 for a removed vector.
  std::vector<std::int64_t> labels() {
    return members_.live([this](auto visit) {
      graph_.each_node([&](Row row) { visit(graph_.number(row), graph_.cluster(row)); });
    });
  }

  // Returns the tracked vectors of a cluster that arrived before vector `before`: the newest first, and
  // at most `limit`.
  std::vector<std::int64_t> members(std::int64_t cluster, std::size_t limit, std::int64_t before) {
    std::vector<std::int64_t> numbers;
    for (const Row row : rows_of(cluster)) numbers.push_back(graph_.number(row));
    return members_.vectors_of(numbers, limit, before);
  }

  // The same of one subcluster, which must exist.
  std::vector<std::int64_t> held_by(std::int64_t number, std::size_t limit, std::int64_t before) {
    refuse_unless(corrections_.cluster_of(number) >= 0, "no such subcluster");
    return members_.vectors_of({number}, limit, before);
  }

  // Returns the subcluster that holds a tracked vector; -1 if the vector was removed.
  std::int64_t holder(std::int64_t member) {
    refuse_unless(members_.tracked() && member >= 0 && member < journal_.n_vectors,
                  "no such vector");
    return members_.holder(member);
  }

  std::int64_t cluster_of(std::int64_t number) { return corrections_.cluster_of(number); }
  bool has_cluster(std::int64_t cluster) const {
    return graph_.forest.component_of(cluster) != kNoComponent;
  }
  auto total_of(std::int64_t number) { return corrections_.total_of(number); }

  // Beyond the paper. A request that cannot be carried out is refused before anything changes.

  // Places one vector, a new one or one that was withdrawn, by the tests or by a given outcome.
  Decision place(const std::int32_t* q, const Order& order) {
    corrections_.check(order);
    const bool is_new = order.member == -1;
    Change change(*this);
    if (is_new) make_room(1);
    const bool tests = order.outcome < 0;
    double margin = kNothing;
    const Verdict verdict = tests ? tested(q, margin) : corrections_.given(order);
    const bool doubtful = is_new && tests && doubts(verdict, margin);
    if (is_new) journal_.newest = journal_.n_vectors;
    if (doubtful && policy_.holds()) {
      const Decision decision = hold(verdict, margin, q, order.missing_weight);
      change.done();
      return decision;
    }
    const std::int64_t missing =
        doubtful ? std::max(order.missing_weight, policy_.missing_weight) : order.missing_weight;
    const IncomingVector share = corrections_.share_of(q, missing);
    const Integer product = corrections_.check_sum(verdict, share);
    if (is_new && missing) journal_.record(Code::kWeighed, kFull - missing);
    const std::int64_t member = is_new ? journal_.n_vectors : order.member;
    // A new node holds the share, not the vector that was assessed.
    const Row row = apply(verdict, {share, missing, member}, product, kNothing);
    if (is_new) {
      arrived(row, q);
    } else {
      members_.moved(member, graph_.number(row));
      if (tests) healer_.arrived(row);
      if (tests && verdict.kind == Kind::kLinked) {  // the event of a move tells of a pinned edge
        journal_.record(Code::kRuled, graph_.number(row), graph_.number(verdict.partner),
                        static_cast<std::int64_t>(verdict.rule));
      }
    }
    change.done();
    return {graph_.cluster(row), graph_.number(row), verdict.kind,
            verdict.similarity,  verdict.threshold,  margin};
  }

  // Takes a vector's share out of the subcluster that holds it, exactly.
  void withdraw(const std::int32_t* q, std::int64_t missing_weight, std::int64_t target,
                std::int64_t member) {
    Change change(*this);
    corrections_.withdraw(q, missing_weight, target, member);
    change.done();
  }

  void flag(std::int64_t number, std::int64_t flags) {
    Change change(*this);
    corrections_.flag(number, flags);
    change.done();
  }

  // Adds groups of vectors by their sums, one after the other, by the tests or, `apart`, each in a
  // cluster of its own. `vectors` are those of all groups, or null if they are not to be stored.
  void absorb(const std::vector<VectorGroup>& groups, const std::int32_t* vectors, bool apart,
              Decision* decisions) {
    Change change(*this);
    const std::vector<IncomingSum> all = checked(groups);
    each_block(all.size(), {}, [&](std::size_t first, std::size_t block) {
      absorb_.arrivals.begin(block, [&](std::size_t i) { return all[first + i]; });
      for (std::size_t i = 0; i < block; ++i) {
        const VectorGroup& group = groups[first + i];
        const Verdict verdict = apart ? Verdict() : absorb_.test(i, (group.flags & kLocked) != 0);
        decisions[first + i] = absorbed(verdict, all[first + i], group, vectors);
        if (vectors) vectors += group.n * graph_.dimension();
      }
    });
    change.done();
  }

  // Marks clusters that grow from now on; `alone`: settles them at each point within `add`;
  // `final_after`: subclusters older than so many vectors stay together (0: never).
  void set_healing(double growth, double steadiness, bool alone, std::int64_t final_after) {
    healer_.set(growth, steadiness, final_after);
    heals_alone_ = alone && healer_.on();
    if (healer_.on()) cluster_sums_.turn_on();
  }

  // Computes the cluster margin of each decision from now on, or no longer; sums that are absorbed have
  // none.
  void set_cluster_margins(bool on) { margin_.set(on); }

  // Says what to do with the vectors that come from now on if their decision is unsure.
  void set_policy(const Policy& policy) {
    refuse_unless(policy.missing_weight >= 0 && policy.missing_weight <= kFull,
                  "a weight out of range");
    policy_ = policy;
  }

  // Replaces what corrections require when clusters are settled. It is the caller's to do so again
  // after a rollback of the change in which it was called.
  void require(const Requirements& requirements) { healer_.require(requirements); }

  // Settles the clusters that are due.
  void heal() {
    Change change(*this);
    healer_.settle();
    change.done();
  }

  // Appends events that the engine does not produce itself; their vector is the newest.
  void note(const std::vector<EventRow>& rows) {
    Change change(*this);
    corrections_.note(rows);
    change.done();
  }

  // Replaces the edges and clusters of the subclusters, or of some that make up whole clusters.
  void regroup(const Regrouped& given) {
    Change change(*this);
    regroup_(given);
    change.done();
  }

  // Returns the sums of groups of subclusters, which hold until the next change.
  GroupSums sums_of(const Groups& groups) { return corrections_.sums_of(groups); }
  void add_sums(const Groups& groups, std::int64_t* totals) {
    corrections_.add_sums(groups, totals);
  }

  // Reads the clusters that changed into an index; see ClusterIndex::read.
  bool read_clusters(ClusterIndex& index, bool parts, std::size_t budget) {
    return index.read(graph_, parts, budget);
  }

  // Returns the state without sums, vectors and events.
  State outline() const {
    State state = counters();
    write_nodes(state, graph_, rows_by_number(graph_));
    return state;
  }

  // Returns the subclusters of some clusters, with their sums and edges; no vectors, no events.
  State parts(const std::vector<std::int64_t>& clusters) {
    State state = counters();
    std::vector<Row> rows;
    for (const std::int64_t cluster : clusters) {
      const std::vector<Row> more = rows_of(cluster);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    sort_by_number(rows, graph_);
    write_nodes(state, graph_, rows);
    write_sums(state, graph_, rows);
    return state;
  }

  // Returns the whole state as plain arrays.
  State state() {
    State state = counters();
    const std::vector<Row> rows = rows_by_number(graph_);
    write_nodes(state, graph_, rows);
    write_sums(state, graph_, rows);
    state.vectors = members_.live();
    state.events = journal_.log.rows(journal_.log.oldest());
    return state;
  }

  // Takes over a state that the caller has checked; the engine must be new.
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
    cluster_sums_.read();
    members_.restore(state.vectors, state.numbers, state.free_subcluster);
    graph_.forget_due();
    change.done();
  }

 private:
  // A change that was committed and can be taken back.
  struct Record {
    Graph::Record graph;
    ClusterSums::Record cluster_sums;
    Members::Record members;
    Counters counters;
    std::size_t stored = 0, bytes = 0;
  };

  // The newest changes, oldest first.
  struct Kept {
    std::deque<Record> records;
    std::size_t bytes = 0;

    void clear(Engine& engine) {
      for (Record& record : records) {
        engine.graph_.drop(record.graph);
        engine.members_.drop(record.members);
      }
      records.clear();
      bytes = 0;
      engine.members_.keep_chains(false);
    }
  };

  // Appends an event outside of a change, wholly or not at all.
  void append_alone(const EventRow& row) {
    journal_.log.begin();
    try {
      journal_.log.append(row);
    } catch (...) {
      journal_.log.rollback();
      throw;
    }
    journal_.log.commit();
  }

  // Commits the parts, and keeps what takes them back. Returns false if there is no memory for that.
  bool make_record() {
    try {
      kept_.records.emplace_back();
    } catch (const std::bad_alloc&) {
      return false;
    }
    Record& made = kept_.records.back();
    made.bytes = change_bytes();
    graph_.commit(made.graph);
    cluster_sums_.commit(made.cluster_sums);
    members_.commit(made.members);
    made.counters = journal_.before();
    made.stored = stored_before_;
    kept_.bytes += made.bytes;
    members_.keep_chains(true);
    return true;
  }

  std::size_t change_bytes() const {
    return kRecordBytes + graph_.change_bytes() + cluster_sums_.change_bytes() +
           members_.change_bytes();
  }

  // Makes a call a change of its own unless a change is open; rolls it back if `done` is not reached.
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

  // Returns the rows of a cluster, in any order; none if it does not exist.
  std::vector<Row> rows_of(std::int64_t cluster) {
    std::vector<Row> rows;
    const std::uint32_t component = graph_.forest.component_of(cluster);
    if (component != kNoComponent) {
      update_.reached(graph_.forest.components[component].member,
                      std::numeric_limits<std::size_t>::max(), rows);
    }
    return rows;
  }

  static constexpr float kBelowAll = 4.0f;  // similarities differ by less

  Candidate candidate(const std::int32_t* q, double root_q, Row row) const {
    const Node& node = graph_.node(row);
    const Integer product = dot(kernel_, q, graph_.rows.sum(row), node.count, graph_.dimension());
    return {node.number, graph_.cluster(row), node.count, similarity(product, root_q, node.root),
            thresholds_.edge(node.mass(), 1.0)};
  }

  static void sort_best(std::vector<Candidate>& all, std::size_t limit) {
    limit = std::min(limit, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(limit), all.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return a.similarity > b.similarity ||
                               (a.similarity == b.similarity && a.subcluster < b.subcluster);
                      });
    all.resize(limit);
  }

  State counters() const {
    State state;
    state.n_vectors = journal_.n_vectors;
    state.n_events = journal_.log.n_events();
    state.next_subcluster = journal_.next_subcluster;
    state.next_cluster = journal_.next_cluster;
    state.free_subcluster = journal_.free_subcluster;
    state.free_cluster = journal_.free_cluster;
    return state;
  }

  // Ends the block of rows touched, also after an exception.
  struct BlockEnd {
    Engine& engine;
    ~BlockEnd() {
      engine.graph_.touched.end_block();
      engine.cluster_sums_.arriving.end();
    }
  };

  // Does the work block by block. Returns how much was done.
  template <class Work>
  std::size_t each_block(std::size_t n, const Stop& stop, Work work) {
    std::size_t done = 0;
    while (done < n) {
      const std::size_t block = std::min(n - done, arrivals_.block_size());
      const BlockEnd end{*this};
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
      return IncomingVector{q, square, root(square)};
    });
    if (assess_.cluster_evidence() && n > 1) scan_clusters(n);
  }

  // Scans the clusters for those vectors of a block that may have to be compared with them.
  void scan_clusters(std::size_t n) {
    ClusterScan& block = cluster_sums_.arriving;
    cluster_sums_.begin_block(block);
    places_.assign(n, kAlone);
    for (std::size_t i = 0; i < n; ++i) {
      if (!arrivals_.may_join(i)) {
        places_[i] = cluster_sums_.add_query(block, arrivals_.queries(), i);
      }
    }
    cluster_sums_.scan_block(block, true);
  }

  Verdict assessed(std::size_t index, Nearest& nearest) {
    nearest = arrivals_.nearest(index);
    nearest.place = index < places_.size() ? places_[index] : kAlone;
    return assess_(nearest, arrivals_[index]);
  }

  // Section 3.3: assessing cluster membership

  void add_block(std::size_t n, Decision* decisions) {
    for (std::size_t i = 0; i < n; ++i) {
      decisions[i] = add_one(i);
      if (heals_alone_ && journal_.n_vectors % kPoint == 0) healer_.settle();
    }
  }

  Decision add_one(std::size_t index) {
    journal_.newest = journal_.n_vectors;
    Nearest nearest;
    const IncomingVector& x = arrivals_[index];
    const Verdict verdict = assessed(index, nearest);
    const double score = assess_.cluster_evidence() ? kNothing : verdict.similarity;
    const double margin = margin_(verdict, nearest, index);
    if (doubts(verdict, margin)) return doubtful(verdict, margin, x.q);
    const Row row = apply(verdict, {x, 0, journal_.n_vectors}, nearest.product, score);
    arrived(row, x.q);
    return {graph_.cluster(row), graph_.number(row), verdict.kind,
            verdict.similarity,  verdict.threshold,  margin};
  }

  // Whether the policy has a decision as unsure. A vector is surely new if there is no other.
  bool doubts(const Verdict& verdict, double margin) const {
    return policy_.on && graph_.n_nodes > 0 && policy_.doubts(verdict.kind, margin);
  }

  // Does as the policy says with an unsure vector.
  Decision doubtful(const Verdict& verdict, double margin, const std::int32_t* q) {
    if (policy_.holds()) return hold(verdict, margin, q, 0);
    const std::int64_t missing = policy_.missing_weight;
    const IncomingVector share = corrections_.share_of(q, missing);
    const Integer product = corrections_.product_to_join(verdict, share);
    journal_.record(Code::kWeighed, kFull - missing);
    const Row row = apply(verdict, {share, missing, journal_.n_vectors}, product, kNothing);
    arrived(row, q);
    return {graph_.cluster(row), graph_.number(row), verdict.kind,
            verdict.similarity,  verdict.threshold,  margin};
  }

  // Counts and stores a new vector that is in no subcluster.
  Decision hold(const Verdict& verdict, double margin, const std::int32_t* q,
                std::int64_t missing_weight) {
    cluster_sums_.forget_product();
    if (missing_weight) journal_.record(Code::kWeighed, kFull - missing_weight);
    journal_.record(Code::kDeferred);
    members_.deferred();
    if (vector_store_) vector_store_->append(q, 1);
    journal_.n_vectors += 1;
    return {-1, -1, Kind::kHeld, verdict.similarity, verdict.threshold, margin};
  }

  // Carries out a verdict. Returns the row that then holds the vector. `product` is that with the sum
  // it joins; `score` is the similarity to the node it is linked to, or NaN.
  Row apply(const Verdict& verdict, const Contribution& part, Integer product, double score) {
    const Row row = placed(verdict, part, product, score);
    cluster_sums_.forget_product();
    return row;
  }

  Row placed(const Verdict& verdict, const Contribution& part, Integer product, double score) {
    if (verdict.partner == kNoRow) return placement_.create(part);
    if (verdict.kind == Kind::kJoined) return placement_.join(verdict.partner, part, product);
    return placement_.link(verdict.partner, part, score, verdict.rule);
  }

  // Counts and stores a new vector that a row holds.
  void arrived(Row row, const std::int32_t* q) {
    members_.joined(graph_.number(row));
    if (vector_store_) vector_store_->append(q, 1);
    journal_.n_vectors += 1;
    healer_.arrived(row);
  }

  Decision ask_one(std::size_t index) {
    Nearest nearest;
    const Verdict verdict = assessed(index, nearest);
    const bool any = verdict.partner != kNoRow;
    const double margin = margin_(verdict, nearest, index);
    cluster_sums_.forget_product();
    return {any ? graph_.cluster(verdict.partner) : -1,
            any && verdict.kind == Kind::kJoined ? graph_.number(verdict.partner) : -1,
            verdict.kind,
            verdict.similarity,
            verdict.threshold,
            margin};
  }

  // Beyond the paper

  // Allocates the memory to store `n` vectors before anything changes.
  void make_room(std::size_t n) {
    const auto more = static_cast<std::int64_t>(n);
    refuse_unless(more <= kVectorsMax - journal_.n_vectors, "more vectors than can be numbered");
    refuse_unless(more <= kSubclustersMax - journal_.free_subcluster, "no numbers left");
    if (vector_store_) vector_store_->reserve(n);
  }

  // Checks all groups before the first is added.
  std::vector<IncomingSum> checked(const std::vector<VectorGroup>& groups) {
    std::vector<IncomingSum> all;
    std::size_t n = 0;
    for (const VectorGroup& group : groups) {
      all.push_back(
          corrections_.incoming_sum(group.sum, group.missing_weights, group.n, group.flags));
      n += group.n;
    }
    make_room(n);
    return all;
  }

  Decision absorbed(const Verdict& verdict, const IncomingSum& x, const VectorGroup& group,
                    const std::int32_t* vectors) {
    Row row = absorb_.put(verdict, x, group.missing_weights);
    if (vector_store_ && vectors) vector_store_->append(vectors, group.n);
    if (group.flags) corrections_.flag(graph_.number(row), group.flags);
    if (verdict.kind == Kind::kJoined) row = update_(row);
    healer_.arrived(row, x.n);
    return {graph_.cluster(row), graph_.number(row), verdict.kind, verdict.similarity,
            verdict.threshold};
  }

  Verdict tested(const std::int32_t* q, double& margin) {
    begin_block(q, 1);
    const Nearest nearest = arrivals_.nearest(0);
    const Verdict verdict = assess_(nearest, arrivals_[0]);
    margin = margin_(verdict, nearest, 0);
    return verdict;
  }

  Thresholds thresholds_;
  const Kernel& kernel_;
  Pool pool_;
  Search search_;
  Graph graph_;
  Journal journal_;
  Members members_;
  ClusterSums cluster_sums_;
  Update update_;
  Assess assess_;
  Arrivals<IncomingVector> arrivals_;
  ClusterMargin margin_;
  Placement placement_;
  Corrections corrections_;
  Healer healer_;
  Regroup regroup_;
  Absorb absorb_;
  std::shared_ptr<VectorStore> vector_store_;
  std::vector<std::int32_t> fixed_;
  std::vector<std::size_t> places_;  // of the vectors of a block in the scan of clusters
  std::size_t stored_before_ = 0;    // vectors in the store before the open change
  Kept kept_;
  Policy policy_;
  bool heals_alone_ = false;
  bool open_ = false;
  bool failed_ = false;  // a call of the open change failed: only `rollback` may follow
};

}  // namespace linkstream
