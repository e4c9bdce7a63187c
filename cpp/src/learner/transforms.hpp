// The gradient transforms of an update, applied in order, and the squares of the result in the same pass.
#pragma once

#include <vector>

#include "surefoot/crew.hpp"
#include "surefoot/learner.hpp"

namespace surefoot {

/// A range of the gradient that one task processes, within one part of the network.
struct Stretch {
  std::size_t first, count, part;
};

/// Applies all transforms to the gradient and adds their measures to the record. Returns the squares of each range;
/// none if `before`, the sum of its squares, is not finite or too large: then no transform changes or remembers the
/// gradient.
std::vector<double> transformed(const Kernels& kernels, Crew& crew, const std::vector<ActiveTransform>& transforms,
                                const FlatMemory& memory, const std::vector<Stretch>& stretches, double before,
                                UpdateRecord& record);

}  // namespace surefoot
