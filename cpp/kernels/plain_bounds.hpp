// What: the upper bounds of similarities in plain loops, for kernels without masks of their own.
// Internal to the file that includes it, like body.hpp.
#pragma once

#include "body.hpp"

namespace {

std::uint32_t upper_bounds(const std::int32_t* dots, const float* scales, const float* residuals,
                           const linkstream::VectorCode& code, float* upper) {
  const float reach = 1.0f + code.residual;
  const float pad = code.residual + kSlack;
  std::uint32_t reaching = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const float estimate = static_cast<float>(dots[lane] - code.offset) * scales[lane] * code.scale;
    upper[lane] = estimate + reach * residuals[lane] + pad;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    reaching |= std::uint32_t{upper[lane] >= code.bar} << lane;
  }
  return reaching;
}

}  // namespace
