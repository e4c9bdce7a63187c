// The gradient transforms of an update, one after the other, and the squares of what they give in the same pass.
#pragma once

#include <vector>

#include "surefoot/crew.hpp"
#include "surefoot/learner.hpp"

namespace surefoot {

/// Floats of the gradient that one task has, all of one part of the network.
struct Stretch {
  std::size_t first, count, part;
};

/// Run all transforms over the gradient and add to the record what they measured. Gives the squares of each stretch;
/// none if the gradient is not sound, with `before` the sum of its squares: then nothing changes it or remembers it.
std::vector<double> transformed(const Kernels& kernels, Crew& crew, const std::vector<ActiveTransform>& transforms,
                                const FlatMemory& memory, const std::vector<Stretch>& stretches, double before,
                                UpdateRecord& record);

}  // namespace surefoot
