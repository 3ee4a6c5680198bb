// What: what to do with vectors whose decision is unsure: to hold them, or to let them weigh less.
// Paper: beyond it (docs/confidence.md). Python twin: engine/policy.py.
// Numerics: cluster margins are compared with stored bounds; no probability is computed here.
#pragma once

#include <cstdint>

#include "assess.hpp"
#include "forest.hpp"

namespace linkstream {

struct Policy {
  bool on = false;
  double joined = 0.0,
         fresh = 0.0;  // least margin of a sure decision; of a new one with its sign changed
  std::int64_t missing_weight = 0;  // of an unsure vector, in 256ths; kFull: it is held

  bool holds() const { return missing_weight == kFull; }

  // Whether a decision is unsure; it is if the margin is unknown.
  bool doubts(Kind kind, double margin) const {
    return on && !(kind == Kind::kNew ? -margin >= fresh : margin >= joined);
  }
};

}  // namespace linkstream
