// What: the search. It proposes rows with a proven upper bound on their similarity; it never decides
//   (the engine does, on exact similarities).
// Paper: the argmax of equation 19. Python twin: `near`, `reaching` and `top` of engine/rows.py.
// Invariants: every row that is not in a vector's Shortlist has a similarity below its `bar`, or,
//   in a search for the nearest alone, below the similarity of some row that is in it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "pool.hpp"
#include "rows.hpp"

namespace linkstream {

struct Proposal {
  Row row;
  float upper;
};

struct Shortlist {
  std::vector<Proposal> rows;
  float bar = 0.0f;
  std::size_t judged = 0;  // how many of the rows were used to raise the bar

  void begin(float lowest) {
    rows.clear();
    bar = lowest;
    judged = 0;
  }
};

// Vectors as codes to scan for; the capacity is a multiple of 16 (kernels read ahead).
class Queries {
 public:
  Queries(std::size_t capacity, std::size_t width)
      : width_(width),
        codes_(aligned_block<std::int8_t>(capacity * width)),
        parameters_(capacity),
        room_(width) {
    std::fill_n(codes_.get(), capacity * width, std::int8_t{0});
  }

  // Encodes a vector; `encode` is one of the kernel's two functions.
  template <class Number, class Encode>
  void set(std::size_t index, const Number* values, double root, std::size_t dimension, float bar,
           Encode encode) {
    std::int8_t* codes = codes_.get() + index * width_;
    VectorCode& code = parameters_[index];
    encode(values, root, dimension, codes, room_.data(), &code.scale, &code.residual);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < dimension; ++i) sum += codes[i];
    code.offset = 128 * sum;
    code.bar = bar;
  }

  // Takes over an encoded vector.
  void copy(std::size_t index, const Queries& from, std::size_t place, float bar) {
    std::copy_n(from.codes(place), width_, codes_.get() + index * width_);
    parameters_[index] = from.parameters(place);
    parameters_[index].bar = bar;
  }

  void set_bar(std::size_t index, float bar) { parameters_[index].bar = bar; }

  const std::int8_t* codes(std::size_t index) const { return codes_.get() + index * width_; }
  const VectorCode& parameters(std::size_t index) const { return parameters_[index]; }
  const VectorCode* all_parameters() const { return parameters_.data(); }

 private:
  std::size_t width_;
  Block<std::int8_t> codes_;
  std::vector<VectorCode> parameters_;
  std::vector<float> room_;
};

inline constexpr std::size_t kBlockMax = 256;
inline constexpr std::size_t kShortlist = 16;
inline constexpr float kInsurance = 0.1f;

class Search {
 public:
  Search(const Kernel& kernel, Pool& pool) : kernel_(kernel), pool_(pool), workers_(pool.size()) {}

  // Finds the best few rows of each of the first `n` queries; `bar` bounds the others.
  void best_few(const Rows& rows, const Queries& queries, std::size_t n, Shortlist* lists,
                std::size_t few = kShortlist, float insurance = kInsurance) {
    sweep(rows, queries, 0, n, lists,
          [=](const Rows& all, const VectorCode& code, Shortlist& list) {
            raise_bar(all, code, list, insurance);
            if (list.rows.size() < 2 * few) return;
            const auto last = list.rows.begin() + static_cast<std::ptrdiff_t>(few);
            std::nth_element(list.rows.begin(), last, list.rows.end(), higher);
            list.bar = std::max(list.bar, last->upper);
            list.rows.erase(last, list.rows.end());
            list.judged = list.rows.size();
            // Dropped rows are at most at the bar; one step higher, they are below it.
            list.bar = std::nextafter(list.bar, 2.0f);
          });
  }

  // Finds all rows that may be the nearest to one query.
  void nearest(const Rows& rows, const Queries& queries, std::size_t index, Shortlist& list) {
    sweep(rows, queries, index, 1, &list,
          [](const Rows& all, const VectorCode& code, Shortlist& l) {
            raise_bar(all, code, l, 0.0f);
          });
  }

  // Finds all rows whose similarity to one query may reach its bar.
  void reaching(const Rows& rows, const Queries& queries, std::size_t index, Shortlist& list) {
    sweep(rows, queries, index, 1, &list, [](const Rows&, const VectorCode&, Shortlist&) {});
  }

  static bool higher(const Proposal& a, const Proposal& b) { return a.upper > b.upper; }

 private:
  struct Worker {
    std::vector<Hit> hits;
    std::vector<Shortlist> lists;
    std::vector<VectorCode> parameters;
  };

  // Some row is at least as similar as its upper bound minus twice the error. Other rows are dropped
  // if they are below that, minus what the best may lose by being touched within a block.
  static void raise_bar(const Rows& rows, const VectorCode& code, Shortlist& list,
                        float insurance) {
    float bar = list.bar;
    for (std::size_t i = list.judged; i < list.rows.size(); ++i) {
      const Proposal& proposal = list.rows[i];
      const float residual =
          rows.chunk(proposal.row / kChunkRows).residual(proposal.row % kChunkRows);
      const float error = (1.0f + code.residual) * residual + code.residual + 1e-5f;
      bar = std::max(bar, proposal.upper - 2.0f * error - insurance);
    }
    if (bar > list.bar) {
      list.bar = bar;
      list.rows.erase(std::remove_if(list.rows.begin(), list.rows.end(),
                                     [bar](const Proposal& p) { return p.upper < bar; }),
                      list.rows.end());
    }
    list.judged = list.rows.size();
  }

  template <class Trim>
  void sweep(const Rows& rows, const Queries& queries, std::size_t first, std::size_t n,
             Shortlist* lists, Trim trim) {
    for (std::size_t v = 0; v < n; ++v) {
      lists[v].begin(queries.parameters(first + v).bar);
    }
    std::atomic<std::size_t> next{0};
    if (pool_.size() == 1 || rows.n_chunks() < 2 || !worth_threads(rows, n)) {
      sweep_chunks(rows, queries, first, n, next, lists, workers_[0], trim);
      return;
    }
    for (Worker& worker : workers_) {
      worker.lists.resize(std::max(worker.lists.size(), n));
      for (std::size_t v = 0; v < n; ++v) worker.lists[v].begin(lists[v].bar);
    }
    pool_.run([&](std::size_t part) {
      Worker& worker = workers_[part];
      sweep_chunks(rows, queries, first, n, next, worker.lists.data(), worker, trim);
    });
    for (const Worker& worker : workers_) {
      for (std::size_t v = 0; v < n; ++v) {
        const Shortlist& found = worker.lists[v];
        lists[v].rows.insert(lists[v].rows.end(), found.rows.begin(), found.rows.end());
        lists[v].bar = std::max(lists[v].bar, found.bar);
      }
    }
  }

  // Scans the next chunk until there is none left.
  template <class Trim>
  void sweep_chunks(const Rows& rows, const Queries& queries, std::size_t first, std::size_t n,
                    std::atomic<std::size_t>& next, Shortlist* lists, Worker& worker, Trim trim) {
    worker.hits.resize(std::max(worker.hits.size(), kChunkRows * n));
    worker.parameters.assign(queries.all_parameters() + first,
                             queries.all_parameters() + first + n);
    // Small steps first raise the bars early, so that later steps report few rows.
    std::size_t step = kScanRows;
    for (std::size_t chunk; (chunk = next++) < rows.n_chunks();) {
      const std::size_t size = rows.rows_in_chunk(chunk);
      for (std::size_t row = 0; row < size; row += step, step = std::min(2 * step, kChunkRows)) {
        const std::size_t n_rows = std::min(step, size - row);
        const ScanJob job =
            rows.chunk(chunk).job(row, n_rows, queries.codes(first), worker.parameters.data(), n);
        const std::size_t n_hits = kernel_.scan(job, worker.hits.data());
        if (!n_hits) continue;
        for (std::size_t i = 0; i < n_hits; ++i) {
          const Hit& hit = worker.hits[i];
          lists[hit.vector].rows.push_back(
              {static_cast<Row>(chunk * kChunkRows + row + hit.row), hit.upper});
        }
        for (std::size_t v = 0; v < n; ++v) {
          trim(rows, worker.parameters[v], lists[v]);
          worker.parameters[v].bar = lists[v].bar;
        }
      }
    }
  }

  // Waking a thread and waiting for it takes a large part of this on a virtual machine (measured).
  static constexpr double kWorthMicroseconds = 700.0;
  static constexpr double kBytesPerMicrosecond = 30e3;  // that one core reads, about

  bool worth_threads(const Rows& rows, std::size_t n) const {
    const double bytes = static_cast<double>(rows.size() * rows.width());
    const double products = bytes * static_cast<double>(n);
    return products > kWorthMicroseconds * kernel_.products_per_microsecond ||
           bytes > kWorthMicroseconds * kBytesPerMicrosecond;
  }

  const Kernel& kernel_;
  Pool& pool_;
  std::vector<Worker> workers_;
};

}  // namespace linkstream
