// Convolutions and their gradients, as sums over shifted ranges of one array.
//
// As with the products of linear.hpp, every output is a chain of fused multiply-adds over the terms in order (with many
// terms, a few chains that are added in order), whatever the block that it is computed in.
#pragma once

#include "linear.hpp"
#include "surefoot/kernels.hpp"
#include "vector.hpp"

namespace surefoot {
namespace {

/// Number of terms whose products are computed together: each needs its own address, and there are few registers.
constexpr std::size_t kBlockTerms = kBlockRows < 8 ? kBlockRows : 8;

template <std::size_t R, std::size_t Vectors>
SUREFOOT_INLINE void sums_tile(const ShiftedSums& sums, std::size_t row, std::size_t first_term, std::size_t terms,
                               std::size_t i, float* out, std::size_t out_stride) {
  Vector chains[R][Vectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < Vectors; ++c) chains[r][c] = first_term == 0 ? all(sums.start[row + r]) : Vector{};
  }
  const float* const weight = sums.weight + row * sums.weight_stride;
  for (std::size_t j = first_term; j < first_term + terms; ++j) {
    const float* const from = sums.in + sums.at[j] + i;
    const float* const by = weight + sums.weight_at[j];
    Vector values[Vectors];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < Vectors; ++c) values[c] = load(from + c * kLanes);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      const Vector factor = all(by[r * sums.weight_stride]);
#pragma GCC unroll 16
      for (std::size_t c = 0; c < Vectors; ++c) chains[r][c] = fma(factor, values[c], chains[r][c]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < Vectors; ++c) {
      float* const to = out + (row + r) * out_stride + i + c * kLanes;
      store(to, first_term == 0 ? chains[r][c] : load(to) + chains[r][c]);
    }
  }
}

/// Computes the whole range of `count` for some rows and terms.
template <std::size_t R>
__attribute__((noinline)) void sums_rows(const ShiftedSums& sums, std::size_t row, std::size_t first_term,
                                         std::size_t terms, float* out, std::size_t out_stride) {
  for (std::size_t i = 0; i < sums.count; i += kPanel) {
    if (sums.count - i <= kLanes) {
      sums_tile<R, 1>(sums, row, first_term, terms, i, out, out_stride);
    } else {
      sums_tile<R, kPanelVectors>(sums, row, first_term, terms, i, out, out_stride);
    }
  }
}

void shifted_sums(const ShiftedSums& sums, float* out, std::size_t out_stride) {
  for (std::size_t first = 0; first < sums.terms; first += kBlockInputs) {
    const std::size_t terms = sums.terms - first < kBlockInputs ? sums.terms - first : kBlockInputs;
    const std::size_t blocks = (sums.rows + kBlockRows - 1) / kBlockRows;
    for (std::size_t block = 0, row = 0; block < blocks; ++block) {
      const std::size_t size = sums.rows / blocks + (block < sums.rows % blocks ? 1 : 0);
      switch (size) {
#define SUREFOOT_ROWS(R)                                    \
  case R:                                                   \
    sums_rows<R>(sums, row, first, terms, out, out_stride); \
    break;
        SUREFOOT_ROWS(1)
        SUREFOOT_ROWS(2)
        SUREFOOT_ROWS(3)
        SUREFOOT_ROWS(4)
        SUREFOOT_ROWS(5)
        SUREFOOT_ROWS(6)
#if defined(__AVX512F__)
        SUREFOOT_ROWS(7)
        SUREFOOT_ROWS(8)
        SUREFOOT_ROWS(9)
        SUREFOOT_ROWS(10)
        SUREFOOT_ROWS(11)
        SUREFOOT_ROWS(12)
#endif
#undef SUREFOOT_ROWS
        default:
          break;
      }
      row += size;
    }
  }
}

template <std::size_t R, std::size_t Vectors>
SUREFOOT_INLINE void products_tile(const ShiftedProducts& products, std::size_t term, std::size_t column,
                                   std::size_t first, std::size_t count, float* out, std::size_t out_stride) {
  const float* from[R];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) from[r] = products.in + products.at[term + r] + first;
  const float* by = products.by.data + first * products.by.stride + column;
  Vector chains[R][Vectors] = {};
  for (std::size_t i = 0; i < count; ++i, by += products.by.stride) {
    Vector values[Vectors];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < Vectors; ++c) values[c] = load(by + c * kLanes);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      const Vector factor = all(from[r][i]);
#pragma GCC unroll 16
      for (std::size_t c = 0; c < Vectors; ++c) chains[r][c] = fma(factor, values[c], chains[r][c]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < Vectors; ++c) {
      float* const to = out + (term + r) * out_stride + column + c * kLanes;
      store(to, first == 0 ? chains[r][c] : load(to) + chains[r][c]);
    }
  }
}

template <std::size_t Vectors>
__attribute__((noinline)) void products_columns(const ShiftedProducts& products, std::size_t column, std::size_t first,
                                                std::size_t count, float* out, std::size_t out_stride) {
  std::size_t term = 0;
  for (; term + kBlockTerms <= products.terms; term += kBlockTerms) {
    products_tile<kBlockTerms, Vectors>(products, term, column, first, count, out, out_stride);
  }
  for (; term + 3 <= products.terms; term += 3) {
    products_tile<3, Vectors>(products, term, column, first, count, out, out_stride);
  }
  for (; term < products.terms; ++term) {
    products_tile<1, Vectors>(products, term, column, first, count, out, out_stride);
  }
}

void shifted_products(const ShiftedProducts& products, float* out, std::size_t out_stride) {
  for (std::size_t first = 0; first < products.count; first += kBlockInputs) {
    const std::size_t count = products.count - first < kBlockInputs ? products.count - first : kBlockInputs;
    for (std::size_t column = 0; column < products.columns; column += kPanel) {
      if (products.columns - column <= kLanes) {
        products_columns<1>(products, column, first, count, out, out_stride);
      } else {
        products_columns<kPanelVectors>(products, column, first, count, out, out_stride);
      }
    }
  }
}

}  // namespace
}  // namespace surefoot
