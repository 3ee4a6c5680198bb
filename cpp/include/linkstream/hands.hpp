// What: a person's side: what is asked is checked, then done; shares of vectors that weigh less.
// Python twin: `take`, `withdraw`, `flag` and `note` of engine/reference.py; kept.py for shares.
// Invariants: what cannot be is refused (std::invalid_argument) before anything changes.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "assess.hpp"
#include "finder.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "places.hpp"

namespace linkstream {

inline constexpr std::int64_t kVectorsMax = 0xffffffff;      // numbers of 32 bits name them
inline constexpr std::int64_t kSubclustersMax = 0xfffffffe;  // likewise; one number stands for none

// What is to be done with one vector: how much less than a full one it weighs; its outcome (-1: as
// the tests say) and whom that concerns; whether it is a member that was withdrawn (-1: it is new).
struct Order {
  std::int64_t light = 0;
  int outcome = -1;
  std::int64_t target = -1;
  std::int64_t member = -1;
  int firm = kLoose;
};

inline void refuse_unless(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

class Hands {
 public:
  Hands(Graph& graph, Journal& journal, Members& members, Places& places)
      : graph_(graph),
        journal_(journal),
        members_(members),
        places_(places),
        finder_(graph, journal) {}

  // The cluster of a subcluster; -1 if that is no more.
  std::int64_t cluster_of(std::int64_t number) {
    const Row row = finder_(number);
    return row == kNoRow ? -1 : graph_.cluster(row);
  }

  // How many vectors a subcluster holds, and their sum; none if it is no more.
  std::pair<std::int64_t, const std::int64_t*> total_of(std::int64_t number) {
    const Row row = finder_(number);
    if (row == kNoRow) return {0, nullptr};
    return {graph_.node(row).count, graph_.rows.sum(row)};
  }

  // Numbers of subclusters were taken back.
  void forget_rows() { finder_.forget(); }

  // What can be said of an order before its place is known.
  void check(const Order& order) const {
    check_vector(order.light, order.member);
    refuse_unless(order.member == -1 || order.outcome >= 0, "a member without a place");
    refuse_unless(journal_.free_subcluster < kSubclustersMax, "no numbers left");
  }

  // An outcome that is not assessed.
  Verdict given(const Order& order) {
    refuse_unless(order.outcome <= static_cast<int>(Kind::kNew), "no such outcome");
    refuse_unless(order.firm >= kLoose && order.firm <= kLaw, "no such firmness");
    Verdict verdict;
    verdict.kind = static_cast<Kind>(order.outcome);
    verdict.firm = static_cast<Firmness>(order.firm);
    refuse_unless(verdict.kind != Kind::kNew || order.target == -1, "a new cluster at a target");
    if (verdict.kind != Kind::kNew) verdict.partner = live_row(order.target);
    return verdict;
  }

  // What a vector adds to a sum when it weighs less than a full one.
  Incoming share_of(const std::int32_t* q, std::int64_t light) {
    const std::size_t dimension = graph_.dimension();
    if (light) {
      share_.resize(dimension);
      for (std::size_t i = 0; i < dimension; ++i) {
        share_[i] = static_cast<std::int32_t>((q[i] * (kFull - light) + kFull / 2) >> 8);
      }
      q = share_.data();
    }
    const Integer square = graph_.kernel.square(q, dimension);
    return {q, square, root(square)};
  }

  // The product of a share with the sum it will join; no sum may come to nothing.
  Integer check_sum(const Verdict& verdict, const Incoming& share) const {
    if (verdict.kind != Kind::kJoined) {
      refuse_unless(share.square > 0, kNothingLeft);
      return 0;
    }
    const Node& node = graph_.node(verdict.partner);
    const Integer product = product_of(verdict.partner, share);
    const Integer united = node.square + 2 * product + share.square;
    refuse_unless(node.locked() || united > 0, kNothingLeft);
    return product;
  }

  // Vectors that come together; refused where their sum is none that so many can have.
  Together together(const std::int64_t* sum, const std::int64_t* lights, std::size_t n,
                    std::int64_t flags) const {
    const auto count = static_cast<std::int64_t>(n);
    refuse_unless(count >= 1 && count <= kVectorsMax, "no vectors, or too many");
    refuse_unless(flags >= 0 && flags <= (kLocked | kClaim), "flags that are none");
    std::int64_t light = 0;
    for (std::size_t i = 0; i < n; ++i) {
      refuse_unless(lights[i] >= 0 && lights[i] <= kFull, "a weight that is none");
      light += lights[i];
    }
    const std::int64_t most = count * ((std::int64_t{1} << 30) + 1);
    Integer square = 0;
    for (std::size_t i = 0; i < graph_.dimension(); ++i) {
      refuse_unless(sum[i] >= -most && sum[i] <= most, "what is no sum of so many vectors");
      square += Integer{sum[i]} * sum[i];
    }
    refuse_unless(square > 0, kNothingLeft);
    refuse_unless(square <= longest(count), "what is no sum of so many vectors");
    return {sum, count, light, square, root(square)};
  }

  // Takes a vector's share out of the subcluster that holds it, exactly.
  void withdraw(const std::int32_t* q, std::int64_t light, std::int64_t target, std::int64_t member) {
    check_vector(light, member);
    const Row row = live_row(target);
    if (members_.tracked()) {
      refuse_unless(member >= 0 && members_.holder(member) == target, "a vector that is not there");
    }
    const Node& node = graph_.node(row);
    const Incoming share = share_of(q, light);
    const Integer product = product_of(row, share);
    if (node.count > 1) {
      const Integer left = node.square - 2 * product + share.square;
      const std::int64_t weighs_less = node.light - light;
      refuse_unless(left > 0, kNothingLeft);
      refuse_unless(left <= longest(node.count - 1), "what is left is no sum of vectors");
      refuse_unless(weighs_less >= 0 && weighs_less <= kFull * (node.count - 1),
                    "a weight that is not there");
    }
    if (member >= 0) members_.removed(member);
    places_.withdraw(row, {share, light, member}, product);
  }

  // Locks a subcluster, or gives it a claim to the ID at a split, or neither.
  void flag(std::int64_t number, std::int64_t flags) {
    refuse_unless(flags >= 0 && flags <= (kLocked | kClaim), "flags that are none");
    places_.flag(live_row(number), static_cast<std::uint8_t>(flags));
  }

  // Writes events of what is not the engine's to do; their vector is the newest.
  void note(const std::vector<EventRow>& rows) {
    for (EventRow row : rows) {
      row[1] = journal_.newest;
      journal_.log.append(row);
    }
  }

 private:
  static constexpr const char* kNothingLeft = "a subcluster whose vectors would sum to nothing";

  void check_vector(std::int64_t light, std::int64_t member) const {
    refuse_unless(light >= 0 && light <= kFull, "a weight that is none");
    refuse_unless(member >= -1 && member < journal_.n_vectors, "no such vector");
  }

  Integer product_of(Row row, const Incoming& x) const {
    return dot(graph_.kernel, x.q, graph_.rows.sum(row), graph_.node(row).count, graph_.dimension());
  }

  // The square of the longest sum that so many vectors can have: those of state.py.
  Integer longest(std::int64_t count) const {
    const auto slack = static_cast<std::int64_t>(std::sqrt(static_cast<double>(graph_.dimension())));
    const Integer length = Integer{count} * ((std::int64_t{1} << 30) + slack);
    return length * length;
  }

  Row live_row(std::int64_t number) {
    const Row row = finder_(number);
    refuse_unless(row != kNoRow, "no such subcluster");
    return row;
  }

  Graph& graph_;
  Journal& journal_;
  Members& members_;
  Places& places_;
  Finder finder_;
  std::vector<std::int32_t> share_;
};

}  // namespace linkstream
