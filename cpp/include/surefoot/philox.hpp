// Counter-based randomness, the same numbers as surefoot.core.philox (S13).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace surefoot {

/// What a number is for; the same values as surefoot.core.philox.Stream.
enum class Stream : std::uint32_t { kAction = 0, kShuffle = 2 };

/// Ten rounds of Philox4x32 over one counter.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Uniforms in [0, 1) with 24 bits, [rows, count]: word j of a (step, row) is word j % 4 of draw j / 4.
void uniforms(std::uint64_t seed, std::uint64_t step, std::uint64_t first_row, std::size_t rows, std::size_t count,
              std::uint32_t stream, float* out);

}  // namespace surefoot
