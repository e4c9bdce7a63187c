// Orthonormal vectors with a fixed order of operations, so that initial weights are the same on every machine.
#pragma once

#include <cstddef>

namespace surefoot {

/// Makes vectors [count, size] orthonormal in place, in order (modified Gram-Schmidt); count is at most size.
void orthonormalize(std::size_t count, std::size_t size, double* vectors);

}  // namespace surefoot
