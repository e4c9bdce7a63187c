// Matrix products: rows of activations times packed weights.
//
// Every output is a chain of fused multiply-adds over the inputs in order (with many inputs, a few chains that are
// added in order), whatever the block of rows that it is computed in: the result of a row does not depend on its
// neighbors. Narrow layers have `kNarrowLanes` chains, added as a tree. None of this depends on the width of vectors.
#pragma once

#include "surefoot/kernels.hpp"
#include "vector.hpp"

namespace surefoot {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kBlockRows = 12;  // 24 of 32 registers accumulate
#else
constexpr std::size_t kBlockRows = 6;  // 12 of 16 registers accumulate
#endif

/// With few rows, several panels are computed together; otherwise too few sums would run in parallel to hide their
/// latency.
constexpr std::size_t kFewRows = 3;

/// Number of inputs per chain. A panel's share stays in the first-level cache for all rows, and short chains round
/// less.
constexpr std::size_t kBlockInputs = 256;

/// A range of inputs of one layer for neighboring panels.
struct Stretch {
  const float* weight;       // weights of the first panel, at the first input
  std::size_t panel_floats;  // floats per panel
  const float* bias;         // null: add to `out`
  std::size_t inputs;
};

/// Layout of the left factor of a product: by rows, or by columns for a transposed one.
enum class Order { kRows, kColumns };

template <Order InOrder>
SUREFOOT_INLINE float at(const float* in, std::size_t in_stride, std::size_t row, std::size_t column) {
  return InOrder == Order::kRows ? in[row * in_stride + column] : in[column * in_stride + row];
}

/// Computes `Vectors` vectors of columns: those of one or several panels, or the first of a panel that has no more
/// outputs.
template <std::size_t R, std::size_t Vectors, Order InOrder>
SUREFOOT_INLINE void tile(const Stretch& stretch, const float* in, std::size_t in_stride, float* out,
                          std::size_t out_stride) {
  constexpr std::size_t kColumns = Vectors;
  Vector sums[R][kColumns];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kColumns; ++c) {
      sums[r][c] = stretch.bias ? load(stretch.bias + c * kLanes) : Vector{};
    }
  }
  const float* weight = stretch.weight;
  for (std::size_t k = 0; k < stretch.inputs; ++k) {
    Vector columns[kColumns];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kColumns; ++c) {
      columns[c] = load(weight + c / kPanelVectors * stretch.panel_floats + c % kPanelVectors * kLanes);
    }
    weight += kPanel;
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      const Vector value = all(at<InOrder>(in, in_stride, r, k));
#pragma GCC unroll 16
      for (std::size_t c = 0; c < kColumns; ++c) sums[r][c] = fma(value, columns[c], sums[r][c]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kColumns; ++c) {
      float* const to = out + r * out_stride + c * kLanes;
      store(to, stretch.bias ? sums[r][c] : load(to) + sums[r][c]);
    }
  }
}

template <std::size_t Vectors, Order InOrder>
__attribute__((noinline)) void block(std::size_t rows, const Stretch& stretch, const float* in, std::size_t in_stride,
                                     float* out, std::size_t out_stride) {
  switch (rows) {
#define SUREFOOT_TILE(R)                                                \
  case R:                                                               \
    tile<R, Vectors, InOrder>(stretch, in, in_stride, out, out_stride); \
    return;
    SUREFOOT_TILE(1)
    SUREFOOT_TILE(2)
    SUREFOOT_TILE(3)
    default:
      break;
  }
  if constexpr (Vectors <= kPanelVectors) {
    switch (rows) {
      SUREFOOT_TILE(4)
      SUREFOOT_TILE(5)
      SUREFOOT_TILE(6)
#if defined(__AVX512F__)
      SUREFOOT_TILE(7)
      SUREFOOT_TILE(8)
      SUREFOOT_TILE(9)
      SUREFOOT_TILE(10)
      SUREFOOT_TILE(11)
      SUREFOOT_TILE(12)
#endif
      default:
        break;
    }
  }
#undef SUREFOOT_TILE
}

/// Splits rows into blocks of nearly equal size: 8 rows become 4 and 4, because 6 and 2 would waste most of the second
/// block.
template <std::size_t Vectors, Order InOrder>
SUREFOOT_INLINE void all_rows(std::size_t rows, const Stretch& stretch, MatrixView in, float* out,
                              std::size_t out_stride) {
  const std::size_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  const std::size_t smaller = rows / blocks;
  const std::size_t larger_blocks = rows % blocks;
  std::size_t row = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t size = smaller + (i < larger_blocks ? 1 : 0);
    const float* const from = in.data + (InOrder == Order::kRows ? row * in.stride : row);
    block<Vectors, InOrder>(size, stretch, from, in.stride, out + row * out_stride, out_stride);
    row += size;
  }
}

template <Order InOrder>
void product(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) {
  if (rows == 0) return;
  const std::size_t panels = (layer.out + kPanel - 1) / kPanel;
  const std::size_t panel_floats = layer.in * kPanel;
  for (std::size_t panel = 0; panel < panels;) {
    const bool two = rows <= kFewRows && panel + 2 <= panels;
    for (std::size_t k = 0; k < layer.in || k == 0; k += kBlockInputs) {
      const std::size_t left = layer.in - k;
      const float* const bias = k == 0 && layer.bias ? layer.bias + panel * kPanel : nullptr;
      const Stretch stretch{layer.weight + panel * panel_floats + k * kPanel, panel_floats, bias,
                            left < kBlockInputs ? left : kBlockInputs};
      const MatrixView piece{in.data + (InOrder == Order::kRows ? k : k * in.stride), in.stride};
      float* const to = out + panel * kPanel;
      if (two) {
        all_rows<2 * kPanelVectors, InOrder>(rows, stretch, piece, to, out_stride);
      } else if (layer.out - panel * kPanel <= kLanes) {
        all_rows<1, InOrder>(rows, stretch, piece, to, out_stride);
      } else {
        all_rows<kPanelVectors, InOrder>(rows, stretch, piece, to, out_stride);
      }
    }
    panel += two ? 2 : 1;
  }
}

void linear(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) {
  product<Order::kRows>(layer, rows, in, out, out_stride);
}

void linear_transposed(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) {
  product<Order::kColumns>(layer, rows, in, out, out_stride);
}

/// Loads the first `count` floats, then zeros; nothing beyond them is read.
SUREFOOT_INLINE Vector load_rest(const float* from, std::size_t count) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(count < kLanes ? (1u << count) - 1 : 0xFFFFu), from);
#elif defined(__AVX2__)
  const IntVector lane{0, 1, 2, 3, 4, 5, 6, 7};
  return _mm256_maskload_ps(from, (__m256i)(lane < all_int(static_cast<std::int32_t>(count))));
#else
  if (count >= kLanes) return load(from);
  Vector loaded{};
  for (std::size_t i = 0; i < count; ++i) loaded[i] = from[i];
  return loaded;
#endif
}

/// Number of vectors that hold the chains of one narrow output: the number of chains is the same for every instruction
/// set.
constexpr std::size_t kNarrowVectors = kNarrowLanes / kLanes;
static_assert(kNarrowVectors == 1 || kNarrowVectors == 2 || kNarrowVectors == 4);

typedef float Quad __attribute__((vector_size(16)));

/// Sums of lanes i, i + 4, ...: halves are added until four lanes are left.
SUREFOOT_INLINE Quad quad_sum(Vector vector) {
#if defined(__AVX512F__)
  // The masked form, with all lanes: GCC 12 warns about its own header for the plain forms.
  const __m256 half = _mm512_maskz_extractf32x8_ps(0xFF, vector, 0) + _mm512_maskz_extractf32x8_ps(0xFF, vector, 1);
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#elif defined(__AVX2__)
  return _mm256_castps256_ps128(vector) + _mm256_extractf128_ps(vector, 1);
#else
  return vector;
#endif
}

/// Sums the chains of an output, always in the same tree.
SUREFOOT_INLINE float chain_sum(Vector (&sums)[kNarrowVectors]) {
  if constexpr (kNarrowVectors == 4) {
    sums[0] += sums[2];
    sums[1] += sums[3];
  }
  if constexpr (kNarrowVectors > 1) sums[0] += sums[1];
  const Quad quad = quad_sum(sums[0]);
  return (quad[0] + quad[2]) + (quad[1] + quad[3]);
}

template <std::size_t R, std::size_t Outputs>
SUREFOOT_INLINE void narrow_tile(const PackedLayer& layer, const float* in, std::size_t in_stride, float* out,
                                 std::size_t out_stride) {
  const std::size_t weight_stride = (layer.in + kNarrowLanes - 1) / kNarrowLanes * kNarrowLanes;
  const std::size_t whole = layer.in / kNarrowLanes * kNarrowLanes;
  Vector sums[R][Outputs][kNarrowVectors] = {};
  for (std::size_t k = 0; k < whole; k += kNarrowLanes) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kNarrowVectors; ++v) {
#pragma GCC unroll 8
      for (std::size_t r = 0; r < R; ++r) {
        const Vector values = load(in + r * in_stride + k + v * kLanes);
#pragma GCC unroll 8
        for (std::size_t c = 0; c < Outputs; ++c) {
          sums[r][c][v] = fma(values, load(layer.weight + c * weight_stride + k + v * kLanes), sums[r][c][v]);
        }
      }
    }
  }
  if (whole < layer.in) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kNarrowVectors; ++v) {
      const std::size_t k = whole + v * kLanes;
      const std::size_t rest = k < layer.in ? layer.in - k : 0;
#pragma GCC unroll 8
      for (std::size_t r = 0; r < R; ++r) {
        const Vector values = load_rest(in + r * in_stride + k, rest);
#pragma GCC unroll 8
        for (std::size_t c = 0; c < Outputs; ++c) {
          sums[r][c][v] = fma(values, load(layer.weight + c * weight_stride + k), sums[r][c][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (std::size_t c = 0; c < Outputs; ++c) out[r * out_stride + c] = chain_sum(sums[r][c]) + layer.bias[c];
  }
}

template <std::size_t Outputs>
void narrow(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) {
  constexpr std::size_t kMost = (Outputs == 1 ? 8 : 4) / kNarrowVectors;  // as many as fit into the registers
  constexpr std::size_t kTile = kMost > 1 ? kMost : 1;
  std::size_t row = 0;
  for (; row + kTile <= rows; row += kTile) {
    narrow_tile<kTile, Outputs>(layer, in.data + row * in.stride, in.stride, out + row * out_stride, out_stride);
  }
  for (; row < rows; ++row) {
    narrow_tile<1, Outputs>(layer, in.data + row * in.stride, in.stride, out + row * out_stride, out_stride);
  }
}

void linear_narrow(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) {
  switch (layer.out) {
    case 1:
      return narrow<1>(layer, rows, in, out, out_stride);
    case 2:
      return narrow<2>(layer, rows, in, out, out_stride);
    case 3:
      return narrow<3>(layer, rows, in, out, out_stride);
    default:
      return narrow<4>(layer, rows, in, out, out_stride);
  }
}

static_assert(kNarrowOutputs == 4, "linear_narrow has a case for each number of outputs");

}  // namespace
}  // namespace surefoot
