// Normal noise from uniform noise (Box and Muller 1958).
#pragma once

#include <cstddef>

namespace surefoot {

struct NormalPair {
  float first;
  float second;
};

/// Two standard normals from two uniforms in [0, 1), computed in float64 and rounded once, as in the learner's
/// box_muller.
NormalPair box_muller(float radius_uniform, float angle_uniform);

/// Transforms an even number of uniforms in place, each pair of neighbors as above.
void box_muller(float* values, std::size_t count);

}  // namespace surefoot
