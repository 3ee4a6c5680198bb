// What: queries that are scanned together against the sums of all clusters, and the sums that changed
//   since, so that the proposals stay complete.
// Python twin: none; the reference engine scans for one vector at a time.
// Invariants: a cluster that is not proposed has a similarity below the bar of its query, also after
//   changes. If more sums change than fit, nothing is proposed any more, and each query is scanned alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "rows.hpp"
#include "scan.hpp"
#include "touched.hpp"

namespace linkstream {

inline constexpr std::size_t kAlone =
    ~std::size_t{0};  // the place of a query that is scanned alone
inline constexpr std::size_t kClusterShortlist = 256;
inline constexpr std::size_t kClustersTouched = 512;

class ClusterScan {
 public:
  void begin(std::size_t width) {
    end();
    if (!room_) room_ = std::make_unique<Room>(width);
  }

  std::size_t size() const { return n_; }

  // Adds a query, encoded by encode(queries, index). Returns its place; kAlone if there are too many.
  template <class Encode>
  std::size_t add(Encode encode) {
    if (n_ == kBlockMax) return kAlone;
    encode(room_->queries, n_);
    return n_++;
  }

  // Scans all queries; each keeps the rows that are at most `insurance` below its best, about, and of
  // these the best few.
  void run(Search& search, const Rows& rows, float insurance) {
    if (lists_.size() < n_) lists_.resize(n_);
    search.best_few(rows, room_->queries, n_, lists_.data(), kClusterShortlist, insurance);
    room_->touched.begin_block();
    active_ = true;
  }

  void end() {
    if (active_) room_->touched.end_block();
    active_ = false;
    n_ = 0;
  }

  // Notes that the sum of a row has changed, or is zero.
  void write(Row row, const std::int8_t* codes, float scale, float residual) {
    if (!active_) return;
    if (room_->touched.is_full()) {
      end();
    } else {
      room_->touched.write(row, codes, scale, residual);
    }
  }
  void drop(Row row) {
    if (active_) room_->touched.drop(row);
  }

  // Proposes rows for the query at a place, and the bar that all others are below. Returns false if
  // the query has to be scanned alone. `unchanged`: a row whose change makes the query a wrong one.
  bool propose(const Kernel& kernel, std::size_t place, Shortlist& found, Row unchanged = kNoRow) {
    if (!active_ || place >= n_ || room_->touched.has(unchanged)) return false;
    const Shortlist& list = lists_[place];
    const float bar = room_->queries.parameters(place).bar;
    room_->touched.propose(kernel, room_->queries, place, bar, found.rows);
    for (const Proposal& proposal : list.rows) {
      if (!room_->touched.has(proposal.row)) found.rows.push_back(proposal);
    }
    found.bar = list.bar;
    return true;
  }

  // Whether the list of a query has lost rows.
  bool is_cut(std::size_t place) const {
    return lists_[place].bar > room_->queries.parameters(place).bar;
  }

 private:
  struct Room {
    explicit Room(std::size_t width)
        : queries(kBlockMax, width), touched(kClustersTouched, width) {}
    Queries queries;
    Touched touched;
  };

  std::unique_ptr<Room> room_;  // made when it is first needed
  std::vector<Shortlist> lists_;
  std::size_t n_ = 0;
  bool active_ = false;
};

}  // namespace linkstream
