// The gradient transforms of an update, one after the other, and the squares of what they give in the same pass.
#pragma once

#include <vector>

#include "surefoot/crew.hpp"
#include "surefoot/learner.hpp"

namespace surefoot {

/// The sum of the squares of a gradient, in order.
double sum_of(const std::vector<double>& squares);

/// Run all transforms over the gradient, unless it is not sound: then nothing remembers it. Adds to the record what
/// they measured. Gives the squares of the gradient, part by part; `before` are those of the one that they were given.
std::vector<double> transformed(const Kernels& kernels, Crew& crew, const std::vector<ActiveTransform>& transforms,
                                const FlatMemory& memory, const std::vector<double>& before, UpdateRecord& record);

}  // namespace surefoot
