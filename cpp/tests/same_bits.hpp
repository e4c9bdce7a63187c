// AVX2 and AVX-512 must give the same bits, so that runs are the same on any machine that has one of them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "check.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {

/// Not floats, which are equal for 0 and -0. One NaN is as good as another.
inline std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> found;
  for (const float value : values) {
    found.push_back(std::bit_cast<std::uint32_t>(value == value ? value : std::numeric_limits<float>::quiet_NaN()));
  }
  return found;
}

/// `run(kernels)` gives the same floats with both; skipped where the machine lacks one.
template <class Run>
void check_same_bits(const Run& run) {
  const Kernels* const avx2 = find_kernels("avx2");
  const Kernels* const avx512 = find_kernels("avx512");
  if (avx2 == nullptr || avx512 == nullptr) {
    std::printf("skipped: this machine does not have both AVX2 and AVX-512\n");
    return;
  }
  const auto one = bits(run(*avx2)), other = bits(run(*avx512));
  CHECK(one.size() > 0);
  CHECK_EQUAL(one.size(), other.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < one.size(); ++i) different += one[i] != other[i];
  CHECK_EQUAL(different, 0);
}

}  // namespace surefoot
