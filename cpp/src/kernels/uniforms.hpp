// Philox4x32-10 over many rows at once.
#pragma once

#include "surefoot/kernels.hpp"
#include "vector.hpp"

namespace surefoot {
namespace {

typedef std::uint64_t WideVector __attribute__((vector_size(4 * SUREFOOT_LANES)));

/// One row per lane of 64 bits, with its word in the low half; the high half is ignored.
constexpr std::size_t kPhiloxRows = kLanes / 2;

/// Products of the low halves.
SUREFOOT_INLINE WideVector wide_product(WideVector a, std::uint32_t b) {
  const WideVector factor = b - WideVector{};
#if defined(__AVX512F__)
  // The masked form, with all lanes: GCC 12 warns about its own header for the plain form.
  return (WideVector)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)factor);
#elif defined(__AVX2__)
  return (WideVector)_mm256_mul_epu32((__m256i)a, (__m256i)factor);
#elif defined(__SSE2__)
  return (WideVector)_mm_mul_epu32((__m128i)a, (__m128i)factor);
#else
  return (a & 0xFFFFFFFFu) * factor;
#endif
}

struct PhiloxWords {
  WideVector word[4];
};

/// Numbers of the rows from `first` on.
SUREFOOT_INLINE WideVector row_numbers(const UniformBlock& block, std::size_t first, std::size_t rows) {
  WideVector numbers = block.first_row + first - WideVector{};
  for (std::size_t i = 0; i < kPhiloxRows; ++i) numbers[i] += i;
  for (std::size_t i = 0; block.numbers != nullptr && i < rows; ++i) numbers[i] = block.numbers[first + i];
  return numbers;
}

/// The four words of a draw for some rows.
SUREFOOT_INLINE PhiloxWords philox_rows(std::size_t draw, WideVector rows, const UniformBlock& block) {
  WideVector c0 = draw - WideVector{};
  WideVector c1 = block.step - WideVector{};
  WideVector c2 = rows;
  WideVector c3 = block.stream - WideVector{};
  std::uint32_t key0 = static_cast<std::uint32_t>(block.seed);
  std::uint32_t key1 = static_cast<std::uint32_t>(block.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const WideVector product0 = wide_product(c0, 0xD2511F53u);
    const WideVector product1 = wide_product(c2, 0xCD9E8D57u);
    c0 = (product1 >> 32) ^ c1 ^ std::uint64_t{key0};
    c1 = product1;
    c2 = (product0 >> 32) ^ c3 ^ std::uint64_t{key1};
    c3 = product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// The top 24 bits of the words as fractions, in the even lanes.
SUREFOOT_INLINE Vector fractions(WideVector words) {
  return to_floats((IntVector)((words & 0xFFFFFFFFu) >> 8)) * 0x1p-24f;
}

void uniforms(const UniformBlock& block, float* out) {
  for (std::size_t first = 0; first < block.rows; first += kPhiloxRows) {
    const std::size_t rows = block.rows - first < kPhiloxRows ? block.rows - first : kPhiloxRows;
    const WideVector numbers = row_numbers(block, first, rows);
    for (std::size_t word = 0; word < block.count; word += 4) {
      const PhiloxWords drawn = philox_rows(word / 4, numbers, block);
      const std::size_t count = block.count - word < 4 ? block.count - word : 4;
      for (std::size_t j = 0; j < count; ++j) {
        const Vector values = fractions(drawn.word[j]);
        float* const to = out + first * block.count + word + j;
        for (std::size_t i = 0; i < rows; ++i) to[i * block.count] = values[2 * i];
      }
    }
  }
}

}  // namespace
}  // namespace surefoot
