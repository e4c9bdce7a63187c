// Uniform to normal noise.
#pragma once

#include <cstddef>

namespace surefoot {

struct NormalPair {
  float first;
  float second;
};

/// Two standard normals from two uniforms in [0, 1); in float64 and rounded once, as the learner's box_muller.
NormalPair box_muller(float radius_uniform, float angle_uniform);

/// The same for neighbors of an even number of uniforms, in place.
void box_muller(float* values, std::size_t count);

}  // namespace surefoot
