// What: requests of users, checked and then carried out; shares of vectors of less weight.
// Paper: beyond it (docs/identity.md). Python twin: engine/corrections.py.
// Invariants: a request that cannot be carried out is refused (std::invalid_argument) before anything
//   changes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "assess.hpp"
#include "finder.hpp"
#include "graph.hpp"
#include "journal.hpp"
#include "members.hpp"
#include "placement.hpp"

namespace linkstream {

inline constexpr std::int64_t kVectorsMax = 0xffffffff;      // they have numbers of 32 bits
inline constexpr std::int64_t kSubclustersMax = 0xfffffffe;  // likewise; one number means "none"

// How to place one vector: what it lacks to the full weight in 256ths; its outcome (-1: by the tests)
// and the subcluster to join or to link to; its number if it was withdrawn (-1: it is new); the rule
// of its edge.
struct Order {
  std::int64_t missing_weight = 0;
  int outcome = -1;
  std::int64_t target = -1;
  std::int64_t member = -1;
  int rule = kTested;
};

// Groups of subclusters: `places[i]`, below `size`, is the group of subcluster `numbers[i]`.
struct Groups {
  const std::int64_t* numbers;
  const std::int64_t* places;
  std::size_t n, size;
};

// The sum of each group; a group of one subcluster has that of the graph.
struct GroupSums {
  std::vector<const std::int64_t*> sums;
  std::vector<Block<std::int64_t>> own;
};

inline void refuse_unless(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

class Corrections {
 public:
  Corrections(Graph& graph, Journal& journal, Members& members, Placement& placement)
      : graph_(graph),
        journal_(journal),
        members_(members),
        placement_(placement),
        finder_(graph) {}

  // Returns the cluster of a subcluster; -1 if there is no such subcluster.
  std::int64_t cluster_of(std::int64_t number) {
    const Row row = finder_(number);
    return row == kNoRow ? -1 : graph_.cluster(row);
  }

  // Returns how many vectors a subcluster holds, and their sum; 0 and null if there is none.
  std::pair<std::int64_t, const std::int64_t*> total_of(std::int64_t number) {
    const Row row = finder_(number);
    if (row == kNoRow) return {0, nullptr};
    return {graph_.node(row).count, graph_.rows.sum(row)};
  }

  // Returns the sums of groups of subclusters; they hold until the graph changes.
  GroupSums sums_of(const Groups& groups) {
    GroupSums found{std::vector<const std::int64_t*>(groups.size, nullptr), {}};
    std::vector<std::int64_t*> own(groups.size, nullptr);
    for (std::size_t i = 0; i < groups.n; ++i) {
      const auto place = static_cast<std::size_t>(groups.places[i]);
      refuse_unless(place < groups.size, "no such group");
      const std::int64_t* const sum = graph_.rows.sum(live_row(groups.numbers[i]));
      if (!found.sums[place]) {
        found.sums[place] = sum;
        continue;
      }
      if (!own[place]) {
        found.own.push_back(aligned_block<std::int64_t>(graph_.dimension()));
        own[place] = found.own.back().get();
        std::copy_n(found.sums[place], graph_.dimension(), own[place]);
        found.sums[place] = own[place];
      }
      for (std::size_t k = 0; k < graph_.dimension(); ++k) own[place][k] += sum[k];
    }
    for (const std::int64_t* sum : found.sums) refuse_unless(sum, "a group without subclusters");
    return found;
  }

  // Adds the sums of subclusters to those of their groups, one after the other in `totals`.
  void add_sums(const Groups& groups, std::int64_t* totals) {
    const std::size_t dimension = graph_.dimension();
    for (std::size_t i = 0; i < groups.n; ++i) {
      const auto place = static_cast<std::size_t>(groups.places[i]);
      refuse_unless(place < groups.size, "no such group");
      const std::int64_t* const sum = graph_.rows.sum(live_row(groups.numbers[i]));
      for (std::size_t k = 0; k < dimension; ++k) totals[place * dimension + k] += sum[k];
    }
  }

  // Returns the row of a subcluster; refuses a number that none has.
  Row live_row(std::int64_t number) {
    const Row row = finder_(number);
    refuse_unless(row != kNoRow, "no such subcluster");
    return row;
  }

  // Checks what can be checked before the outcome is known.
  void check(const Order& order) const {
    check_vector(order.missing_weight, order.member);
    refuse_unless(order.member == -1 || order.outcome >= 0 ||
                      (members_.tracked() && members_.holder(order.member) < 0),
                  "a vector that is in a subcluster, without an outcome");
    refuse_unless(journal_.free_subcluster < kSubclustersMax, "no subcluster numbers left");
  }

  // Returns an outcome that is given instead of assessed.
  Verdict given(const Order& order) {
    refuse_unless(order.outcome <= static_cast<int>(Kind::kNew), "no such outcome");
    refuse_unless(order.rule >= kTested && order.rule <= kPinned, "no such edge rule");
    Verdict verdict;
    verdict.kind = static_cast<Kind>(order.outcome);
    verdict.rule = static_cast<EdgeRule>(order.rule);
    refuse_unless(verdict.kind != Kind::kNew || order.target == -1, "a new cluster at a target");
    if (verdict.kind != Kind::kNew) verdict.partner = live_row(order.target);
    return verdict;
  }

  // Returns what a vector adds to a sum if it lacks `missing_weight` 256ths of the full weight.
  IncomingVector share_of(const std::int32_t* q, std::int64_t missing_weight) {
    const std::size_t dimension = graph_.dimension();
    if (missing_weight) {
      share_.resize(dimension);
      for (std::size_t i = 0; i < dimension; ++i) {
        share_[i] = static_cast<std::int32_t>((q[i] * (kFull - missing_weight) + kFull / 2) >> 8);
      }
      q = share_.data();
    }
    const Integer square = graph_.kernel.square(q, dimension);
    return {q, square, root(square)};
  }

  // Returns the product of a share with the sum it will join; 0 if it joins none.
  Integer product_to_join(const Verdict& verdict, const IncomingVector& share) const {
    return verdict.kind == Kind::kJoined ? product_of(verdict.partner, share) : 0;
  }

  // The same; refuses a sum of zero.
  Integer check_sum(const Verdict& verdict, const IncomingVector& share) const {
    const Integer product = product_to_join(verdict, share);
    if (verdict.kind != Kind::kJoined) {
      refuse_unless(share.square > 0, kNothingLeft);
      return 0;
    }
    const Node& node = graph_.node(verdict.partner);
    const Integer united = node.square + 2 * product + share.square;
    refuse_unless(node.locked() || united > 0, kNothingLeft);
    return product;
  }

  // Returns a sum that arrives; refuses one that is too long for this number of vectors.
  IncomingSum incoming_sum(const std::int64_t* sum, const std::int64_t* missing_weights,
                           std::size_t n, std::int64_t flags) const {
    const auto count = static_cast<std::int64_t>(n);
    refuse_unless(count >= 1 && count <= kVectorsMax, "no vectors, or too many");
    refuse_unless(flags >= 0 && flags <= (kLocked | kClaim), "flags out of range");
    std::int64_t missing_weight = 0;
    for (std::size_t i = 0; i < n; ++i) {
      refuse_unless(missing_weights[i] >= 0 && missing_weights[i] <= kFull,
                    "a weight out of range");
      missing_weight += missing_weights[i];
    }
    const std::int64_t most = count * ((std::int64_t{1} << 30) + 1);
    Integer square = 0;
    for (std::size_t i = 0; i < graph_.dimension(); ++i) {
      refuse_unless(sum[i] >= -most && sum[i] <= most,
                    "the sum is too long for this number of vectors");
      square += Integer{sum[i]} * sum[i];
    }
    refuse_unless(square > 0, kNothingLeft);
    refuse_unless(square <= longest(count), "the sum is too long for this number of vectors");
    return {sum, count, missing_weight, square, root(square)};
  }

  // Takes a vector's share out of the subcluster that holds it, exactly.
  void withdraw(const std::int32_t* q, std::int64_t missing_weight, std::int64_t target,
                std::int64_t member) {
    check_vector(missing_weight, member);
    const Row row = live_row(target);
    if (members_.tracked()) {
      refuse_unless(member >= 0 && members_.holder(member) == target,
                    "a vector that the subcluster does not hold");
    }
    const Node& node = graph_.node(row);
    const IncomingVector share = share_of(q, missing_weight);
    const Integer product = product_of(row, share);
    if (node.count > 1) {
      const Integer left = node.square - 2 * product + share.square;
      const std::int64_t weighs_less = node.missing_weight - missing_weight;
      refuse_unless(left > 0, kNothingLeft);
      refuse_unless(left <= longest(node.count - 1),
                    "a vector whose removal leaves no possible sum of vectors");
      refuse_unless(weighs_less >= 0 && weighs_less <= kFull * (node.count - 1),
                    "a weight that the subcluster does not hold");
    }
    if (member >= 0) members_.removed(member);
    placement_.withdraw(row, {share, missing_weight, member}, product);
  }

  // Sets the flags of a subcluster.
  void flag(std::int64_t number, std::int64_t flags) {
    refuse_unless(flags >= 0 && flags <= (kLocked | kClaim), "flags out of range");
    placement_.flag(live_row(number), static_cast<std::uint8_t>(flags));
  }

  // Appends events that the engine does not produce itself; their vector is the newest.
  void note(const std::vector<EventRow>& rows) {
    for (EventRow row : rows) {
      row[1] = journal_.newest;
      journal_.log.append(row);
    }
  }

 private:
  static constexpr const char* kNothingLeft = "a subcluster whose vectors would sum to zero";

  void check_vector(std::int64_t missing_weight, std::int64_t member) const {
    refuse_unless(missing_weight >= 0 && missing_weight <= kFull, "a weight out of range");
    refuse_unless(member >= -1 && member < journal_.n_vectors, "no such vector");
  }

  Integer product_of(Row row, const IncomingVector& x) const {
    return dot(graph_.kernel, x.q, graph_.rows.sum(row), graph_.node(row).count,
               graph_.dimension());
  }

  // Returns the square of the longest sum that `count` vectors can have, as in state.py.
  Integer longest(std::int64_t count) const {
    const auto slack =
        static_cast<std::int64_t>(std::sqrt(static_cast<double>(graph_.dimension())));
    const Integer length = Integer{count} * ((std::int64_t{1} << 30) + slack);
    return length * length;
  }

  Graph& graph_;
  Journal& journal_;
  Members& members_;
  Placement& placement_;
  Finder finder_;
  std::vector<std::int32_t> share_;
};

}  // namespace linkstream
