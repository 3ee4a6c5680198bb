// What: the log of events, packed: a few bytes each instead of a row of six integers.
// Python twins: engine/log.py; engine/events.py for the meaning of the codes.
// Invariants: the sequence number of an event is the number of events before it. Without a limit all
//   events are kept; with one, at least the newest `limit`, and `rows` returns no more than that. While
//   a change is open no event is dropped, so that the change can be rolled back, and all of its events
//   can be read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace linkstream {

// The codes of events that the engine writes itself; others come from the caller.
enum class Code : std::uint8_t {
  kCreated = 0,
  kJoined = 1,
  kLinked = 2,
  kMerged = 3,
  kSevered = 4,
  kRejoined = 5,
  kSplit = 6,
  kUnited = 7,
  kWeighed = 8,
  kMoved = 9,
  kRemoved = 10,
  kVanished = 11,
  kRuled = 14,
  kFlagged = 16,
  kDeferred = 39
};
inline constexpr std::size_t kEventWidth = 6;  // code, vector, and up to four numbers
using EventRow = std::array<std::int64_t, kEventWidth>;

class EventLog {
 public:
  explicit EventLog(std::size_t limit = 0) : limit_(limit) {}

  std::int64_t n_events() const { return n_events_; }
  void set_n_events(std::int64_t n) { n_events_ = n; }

  // Returns the sequence number of the oldest event that can be read.
  std::int64_t oldest() const {
    std::int64_t kept = 0;
    for (const Page& page : pages_) kept += page.n;
    const std::int64_t ours = open_ ? n_events_ - before_.n_events : 0;  // of the open change
    if (limit_) kept = std::min(kept, std::max(static_cast<std::int64_t>(limit_), ours));
    return n_events_ - kept;
  }

  void append(const EventRow& row) {
    if (pages_.empty() || pages_.back().n == kPage) open_page();
    Page& page = pages_.back();
    for (std::size_t i = 0; i < kEventWidth; ++i) {
      put(page.bytes, zigzag(row[i] - (i == 1 ? page.last_vector : 0)));
    }
    page.last_vector = row[1];
    ++page.n;
    ++n_events_;
  }

  // Whether the open change has appended an event.
  bool has_new() const { return n_events_ != before_.n_events; }

  // Changes

  void begin() {
    before_.pages = pages_.size();
    before_.n_events = n_events_;
    if (!pages_.empty()) {
      const Page& page = pages_.back();
      before_.place.bytes = page.bytes.size();
      before_.place.n = page.n;
      before_.place.last_vector = page.last_vector;
    }
    open_ = true;
  }

  void commit() {
    open_ = false;
    drop_old();
  }

  void rollback() {
    while (pages_.size() > before_.pages) pages_.pop_back();
    if (!pages_.empty()) {
      Page& page = pages_.back();
      page.bytes.resize(before_.place.bytes);
      page.n = before_.place.n;
      page.last_vector = before_.place.last_vector;
    }
    n_events_ = before_.n_events;
    open_ = false;
  }

  // Returns the rows from sequence number `since` (not before `oldest`) on.
  std::vector<EventRow> rows(std::int64_t since) const {
    std::vector<EventRow> result;
    std::int64_t sequence = n_events_;
    for (const Page& page : pages_) sequence -= page.n;
    for (const Page& page : pages_) {
      if (sequence + page.n > since) unpack(page, since - sequence, start(page, since), result);
      sequence += page.n;
    }
    return result;
  }

 private:
  static constexpr std::int64_t kPage = 4096;

  struct Page {
    std::vector<std::uint8_t> bytes;
    std::int64_t n = 0;
    std::int64_t last_vector = 0;
  };

  // A place in a page: bytes and events before it, and the vector of the last of these.
  struct Place {
    std::size_t bytes = 0;
    std::int64_t n = 0, last_vector = 0;
  };

  // Returns where to begin to unpack: where the last change began, unless events before it are wanted.
  Place start(const Page& page, std::int64_t since) const {
    const bool known = !limit_ && before_.pages > 0 && &page == &pages_[before_.pages - 1];
    return known && since >= before_.n_events ? before_.place : Place();
  }

  void open_page() {
    if (!pages_.empty()) pages_.back().bytes.shrink_to_fit();
    pages_.emplace_back();
    if (!open_) drop_old();
  }

  // Drops the pages before the newest `limit` events.
  void drop_old() {
    const auto excess = static_cast<std::int64_t>(limit_) + kPage;
    while (limit_ && static_cast<std::int64_t>(pages_.size() - 1) * kPage >= excess) {
      pages_.pop_front();
    }
  }

  static void unpack(const Page& page, std::int64_t skip, const Place& start,
                     std::vector<EventRow>& result) {
    const std::uint8_t* byte = page.bytes.data() + start.bytes;
    std::int64_t last_vector = start.last_vector;
    for (std::int64_t i = start.n; i < page.n; ++i) {
      EventRow row;
      for (std::int64_t& value : row) value = unzigzag(get(byte));
      row[1] += last_vector;
      last_vector = row[1];
      if (i >= skip) result.push_back(row);
    }
  }

  static std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  }
  static std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  static void put(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 128));
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
  static std::uint64_t get(const std::uint8_t*& byte) {
    std::uint64_t value = 0;
    int shift = 0;
    for (; *byte & 128; ++byte, shift += 7) value |= std::uint64_t{*byte & 127u} << shift;
    return value | std::uint64_t{*byte++} << shift;
  }

  std::size_t limit_;
  std::deque<Page> pages_;
  std::int64_t n_events_ = 0;
  struct {
    std::size_t pages = 0;
    std::int64_t n_events = 0;
    Place place;  // in the last page
  } before_;      // of the open change
  bool open_ = false;
};

}  // namespace linkstream
