// What: an index of all clusters for a Python class: the GIL is released, Ctrl-C or `progress` ends a
//   search. One question at a time; only `read` needs the engine.
#pragma once

#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "linkage.hpp"
#include "linkstream/cluster_index.hpp"

// Pairs: the two clusters and their sizes; similarity and s~.
using PairColumns = std::tuple<Array<std::int64_t>, Array<double>>;
// Edges: cluster, ends, sizes of the parts, rule; similarity and s~ of the parts, then of the ends.
using EdgeColumns = std::tuple<Array<std::int64_t>, Array<double>>;

class BoundIndex {
 public:
  using Index = linkstream::ClusterIndex;

  // Calls work(index) with the GIL released; `make` makes the index first, if there is none.
  template <class Make, class Work>
  auto locked(Make make, Work work) {
    const nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!index_) index_ = make();
    return work(*index_);
  }

  template <class Work>
  auto locked(Work work) {
    return locked([]() -> std::unique_ptr<Index> { throw nb::value_error("nothing was read yet"); },
                  work);
  }

  PairColumns best_pairs(const linkstream::Worth& worth, std::size_t limit, nb::handle progress) {
    Reports reports(progress);
    reports.tell(0.0);
    const auto pause = [&](double share) { reports(share); };
    return locked_columns([&](Index& index) {
      std::vector<std::pair<linkstream::Row, linkstream::Row>> pairs;
      for (const auto& pair : index.best_pairs(worth, limit, pause)) {
        pairs.emplace_back(pair.a, pair.b);
      }
      return pairs;
    });
  }

  PairColumns figures(EventRows given) {
    const std::int64_t* ids = given.data();
    const std::size_t n = given.shape(0);
    return locked_columns([&](Index& index) {
      std::vector<std::pair<linkstream::Row, linkstream::Row>> pairs;
      for (std::size_t i = 0; i < n; ++i) {
        pairs.emplace_back(row_of(index, ids[2 * i]), row_of(index, ids[2 * i + 1]));
      }
      return pairs;
    });
  }

  template <class Find>
  EdgeColumns edges(Find find) {
    std::vector<std::pair<std::int64_t, linkstream::EdgeFigures>> found;
    locked([&](Index& index) {
      find(index, [&](linkstream::Row row, const linkstream::EdgeFigures& edge) {
        found.emplace_back(index.table().cluster(row), edge);
      });
    });
    EdgeColumns columns(Array<std::int64_t>({found.size(), 6}), Array<double>({found.size(), 4}));
    std::int64_t* whole = std::get<0>(columns).data();
    double* figure = std::get<1>(columns).data();
    for (const auto& [cluster, edge] : found) {
      for (const std::int64_t value :
           {cluster, edge.a, edge.b, edge.size_a, edge.size_b, edge.rule}) {
        *whole++ = value;
      }
      for (const double value :
           {edge.similarity, edge.threshold, edge.end_similarity, edge.end_threshold}) {
        *figure++ = value;
      }
    }
    return columns;
  }

  Array<std::int64_t> hearts(Numbers clusters) {
    Array<std::int64_t> found({clusters.shape(0)});
    const std::int64_t* ids = clusters.data();
    const std::size_t n = clusters.shape(0);
    std::int64_t* const numbers = found.data();
    locked([&](Index& index) {
      for (std::size_t i = 0; i < n; ++i) numbers[i] = index.table().heart(row_of(index, ids[i]));
    });
    return found;
  }

 private:
  static linkstream::Row row_of(const Index& index, std::int64_t cluster) {
    const linkstream::Row row = index.table().row_of(cluster);
    if (row == linkstream::kNoRow) throw nb::value_error("no such cluster");
    return row;
  }

  template <class Find>
  PairColumns locked_columns(Find find) {
    struct Found {
      std::int64_t whole[4];
      double figures[2];
    };
    std::vector<Found> all;
    locked([&](Index& index) {
      const auto& table = index.table();
      for (const auto& [a, b] : find(index)) {
        all.push_back({{table.cluster(a), table.cluster(b), table.count(a), table.count(b)},
                       {table.similarity(a, b), table.required(a, b)}});
      }
    });
    PairColumns columns(Array<std::int64_t>({all.size(), 4}), Array<double>({all.size(), 2}));
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::copy_n(all[i].whole, 4, std::get<0>(columns).data() + 4 * i);
      std::copy_n(all[i].figures, 2, std::get<1>(columns).data() + 2 * i);
    }
    return columns;
  }

  std::mutex mutex_;
  std::unique_ptr<Index> index_;  // made when it is first read
};
