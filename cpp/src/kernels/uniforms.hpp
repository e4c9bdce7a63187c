// Philox4x32-10 over many rows at once.
#pragma once

#include "surefoot/kernels.hpp"
#include "vector.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kPhiloxRows = 2 * kLanes;

/// The four words of a draw for neighboring rows. Plain loops: compilers make vectors of the wide products.
SUREFOOT_INLINE void philox_rows(std::uint32_t draw, std::uint32_t row, const UniformBlock& block,
                                 std::uint32_t (&words)[4][kPhiloxRows]) {
  for (std::size_t i = 0; i < kPhiloxRows; ++i) {
    words[0][i] = draw;
    words[1][i] = static_cast<std::uint32_t>(block.step);
    words[2][i] = row + static_cast<std::uint32_t>(i);
    words[3][i] = block.stream;
  }
  std::uint32_t key0 = static_cast<std::uint32_t>(block.seed);
  std::uint32_t key1 = static_cast<std::uint32_t>(block.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kPhiloxRows; ++i) {
      const std::uint64_t product0 = std::uint64_t{words[0][i]} * 0xD2511F53u;
      const std::uint64_t product1 = std::uint64_t{words[2][i]} * 0xCD9E8D57u;
      words[0][i] = static_cast<std::uint32_t>(product1 >> 32) ^ words[1][i] ^ key0;
      words[1][i] = static_cast<std::uint32_t>(product1);
      words[2][i] = static_cast<std::uint32_t>(product0 >> 32) ^ words[3][i] ^ key1;
      words[3][i] = static_cast<std::uint32_t>(product0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

void uniforms(const UniformBlock& block, float* out) {
  alignas(Vector) std::uint32_t words[4][kPhiloxRows];
  for (std::size_t first = 0; first < block.rows; first += kPhiloxRows) {
    const std::size_t rows = block.rows - first < kPhiloxRows ? block.rows - first : kPhiloxRows;
    for (std::size_t word = 0; word < block.count; word += 4) {
      philox_rows(static_cast<std::uint32_t>(word / 4), static_cast<std::uint32_t>(block.first_row + first), block,
                  words);
      const std::size_t count = block.count - word < 4 ? block.count - word : 4;
      for (std::size_t j = 0; j < count; ++j) {
        float* const to = out + first * block.count + word + j;
        for (std::size_t i = 0; i < rows; ++i) {
          to[i * block.count] = static_cast<float>(static_cast<std::int32_t>(words[j][i] >> 8)) * 0x1p-24f;
        }
      }
    }
  }
}

}  // namespace
}  // namespace surefoot
