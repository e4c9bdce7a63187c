// Counter-based random numbers, equal to those of surefoot.philox (S13).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace surefoot {

/// Purpose of a random number; the same values as surefoot.philox.Stream.
enum class Stream : std::uint32_t { kAction = 0, kShuffle = 2 };

/// Ten rounds of Philox4x32 over one counter.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{counter[0]} * 0xD2511F53u;
    const std::uint64_t product1 = std::uint64_t{counter[2]} * 0xCD9E8D57u;
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Uniforms in [0, 1) with 24 bits, [rows, count]: word j of a (step, row) is word j % 4 of draw j / 4.
void uniforms(std::uint64_t seed, std::uint64_t step, std::uint64_t first_row, std::size_t rows, std::size_t count,
              std::uint32_t stream, float* out);

}  // namespace surefoot
