#include "surefoot/philox.hpp"

#include "surefoot/kernels.hpp"

namespace surefoot {

void uniforms(std::uint64_t seed, std::uint64_t step, std::uint64_t first_row, std::size_t rows, std::size_t count,
              std::uint32_t stream, float* out) {
  kernels().uniforms({seed, step, first_row, stream, rows, count}, out);
}

}  // namespace surefoot
