// Loops of the learner: sums over samples, the surrogate, and the optimizer.
//
// Sums have the same order on every machine: column by column over the samples, or over a fixed number of lanes.
#pragma once

#include "lanes.hpp"
#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

/// Number of samples that are added in float32 before float64 takes over: with a million, half of the digits would be
/// lost.
constexpr std::size_t kFloatSamples = 64;
/// Number of vectors of columns that are summed together, so that no sum waits for the previous one.
constexpr std::size_t kColumnVectors = 4;

typedef double Doubles __attribute__((vector_size(64)));
typedef float Halves __attribute__((vector_size(32), aligned(4), may_alias));
constexpr std::size_t kDoubles = 8;

template <std::size_t Vectors>
SUREFOOT_INLINE void add_columns(std::size_t rows, const float* in, std::size_t stride, double* sums) {
  Vector sum[Vectors] = {};
  for (std::size_t row = 0; row < rows; ++row) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < Vectors; ++c) sum[c] += load(in + row * stride + c * kLanes);
  }
  alignas(Vector) float lanes[Vectors * kLanes];
  for (std::size_t c = 0; c < Vectors; ++c) store(lanes + c * kLanes, sum[c]);
  for (std::size_t i = 0; i < Vectors * kLanes; ++i) sums[i] += static_cast<double>(lanes[i]);
}

void column_sums(std::size_t rows, std::size_t columns, MatrixView in, double* sums) {
  for (std::size_t column = 0; column < columns; ++column) sums[column] = 0;
  for (std::size_t first = 0; first < rows; first += kFloatSamples) {
    const std::size_t count = rows - first < kFloatSamples ? rows - first : kFloatSamples;
    const float* const from = in.data + first * in.stride;
    std::size_t column = 0;
    for (; column + kColumnVectors * kLanes <= columns; column += kColumnVectors * kLanes) {
      add_columns<kColumnVectors>(count, from + column, in.stride, sums + column);
    }
    for (; column + kLanes <= columns; column += kLanes) {
      add_columns<1>(count, from + column, in.stride, sums + column);
    }
    for (; column < columns; ++column) {
      float sum = 0;
      for (std::size_t row = 0; row < count; ++row) sum += from[row * in.stride + column];
      sums[column] += static_cast<double>(sum);
    }
  }
}

/// Sums each row over eight lanes, then adds all lanes in order.
double sum_squares(std::size_t rows, std::size_t columns, MatrixView in) {
  Doubles sums{}, more{};
  double rest = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const from = in.data + row * in.stride;
    std::size_t i = 0;
    for (; i + 2 * kDoubles <= columns; i += 2 * kDoubles) {
      const Doubles a = __builtin_convertvector(*reinterpret_cast<const Halves*>(from + i), Doubles);
      const Doubles b = __builtin_convertvector(*reinterpret_cast<const Halves*>(from + i + kDoubles), Doubles);
      sums += a * a;
      more += b * b;
    }
    for (; i < columns; ++i) rest += static_cast<double>(from[i]) * static_cast<double>(from[i]);
  }
  sums += more;
  for (std::size_t lane = 0; lane < kDoubles; ++lane) rest += sums[lane];
  return rest;
}

void copy_panel(std::size_t rows, std::size_t columns, MatrixView in, float* out) {
  for (std::size_t row = 0; row < rows; ++row, out += kPanel) {
    const float* const from = in.data + row * in.stride;
    if (columns == kPanel) {
#pragma GCC unroll 4
      for (std::size_t c = 0; c < kPanelVectors; ++c) store(out + c * kLanes, load(from + c * kLanes));
    } else {
      for (std::size_t i = 0; i < kPanel; ++i) out[i] = i < columns ? from[i] : 0.0f;
    }
  }
}

/// Swaps the blocks of `kSize` lanes beside the diagonal of each larger block, then those of half the size.
template <std::size_t kSize>
SUREFOOT_INLINE void transpose(Vector (&rows)[kLanes]) {
  if constexpr (kSize > 0) {
    IntVector first, second;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::int32_t own = static_cast<std::int32_t>(lane);
      first[lane] = own & kSize ? own - static_cast<std::int32_t>(kSize) + static_cast<std::int32_t>(kLanes) : own;
      second[lane] = own & kSize ? own + static_cast<std::int32_t>(kLanes) : own + static_cast<std::int32_t>(kSize);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (i & kSize) continue;
      const Vector a = rows[i], b = rows[i + kSize];
      rows[i] = __builtin_shuffle(a, b, first);
      rows[i + kSize] = __builtin_shuffle(a, b, second);
    }
    transpose<kSize / 2>(rows);
  }
}

void transpose_panel(std::size_t rows, std::size_t columns, MatrixView in, float* out) {
  std::size_t row = 0;
  for (; row + kLanes <= rows; row += kLanes) {
    const float* const from = in.data + row * in.stride;
    std::size_t column = 0;
    for (; column + kLanes <= columns; column += kLanes) {
      Vector block[kLanes];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLanes; ++i) block[i] = load(from + i * in.stride + column);
      transpose<kLanes / 2>(block);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLanes; ++i) store(out + (column + i) * kPanel + row, block[i]);
    }
    for (; column < columns; ++column) {
      for (std::size_t i = 0; i < kLanes; ++i) out[column * kPanel + row + i] = from[i * in.stride + column];
    }
  }
  for (; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      out[column * kPanel + row] = in.data[row * in.stride + column];
    }
  }
}

/// Comparisons with NaN are false, so a NaN reaches loss and slope.
double quantile_huber(const QuantileRow& row) {
  const float near_scale = row.kappa > 0 ? 1.0f / row.kappa : 0.0f;
  over_elements(row.count, [&](std::size_t i, auto lanes) SUREFOOT_MEMBER {
    const Vector tau = lanes.read(row.tau + i), error = row.target - lanes.read(row.quantiles + i);
    const Vector one = error * 0.0f + 1.0f;
    const IntVector is_below = error < 0.0f;
    const Vector distance = select(is_below, -error, error), weight = select(is_below, 1.0f - tau, tau);
    const IntVector is_far = distance > row.kappa;
    const Vector loss = select(is_far, distance - 0.5f * row.kappa, error * error * (0.5f * near_scale));
    lanes.write(row.loss + i, weight * loss);
    const Vector slope = select(is_far, select(is_below, -one, one), error * near_scale);
    lanes.write(row.slope + i, -row.share * weight * slope);
  });
  Doubles sums{};  // always eight lanes, for any vector width
  double rest = 0;
  std::size_t i = 0;
  for (; i + kDoubles <= row.count; i += kDoubles) {
    sums += __builtin_convertvector(*reinterpret_cast<const Halves*>(row.loss + i), Doubles);
  }
  for (; i < row.count; ++i) rest += static_cast<double>(row.loss[i]);
  for (std::size_t lane = 0; lane < kDoubles; ++lane) rest += sums[lane];
  return rest;
}

SUREFOOT_INLINE Vector expm1(Vector x) {
  const Reduced reduced = reduce(at_most(at_least(x, all(-80.0f)), all(80.0f)));
  const Vector scale = power_of_two(reduced.power);
  return select(x > all(40.0f), exp(x), fma(small_expm1(reduced.rest), scale, scale - 1.0f));
}

void surrogate(const SurrogateBlock& block) {
  over_elements(block.rows, [&](std::size_t row, auto lanes) SUREFOOT_MEMBER {
    const Vector log_ratio = lanes.read(block.log_ratio + row), advantage = lanes.read(block.advantage + row);
    const Vector ratio = exp(log_ratio), excess = expm1(log_ratio);
    const Vector inside = at_most(at_least(ratio, all(block.low)), all(block.high));
    const Vector gain = ratio * advantage, clipped_gain = inside * advantage;
    // The gradient is 0 where the clip takes effect; a NaN passes through.
    const IntVector is_cut = clipped_gain < gain;
    const Vector gradient = select(is_cut, all(0.0f), -gain * block.weight);
    lanes.write(block.loss + row, -select(is_cut, clipped_gain, gain));
    lanes.write(block.kl + row, excess - log_ratio);
    lanes.write(block.is_outside + row, select(magnitude(excess) > all(block.clip), all(1.0f), all(0.0f)));
    lanes.write(block.gradient + row, lanes.read(block.gradient + row) + gradient);
  });
}

SUREFOOT_INLINE Vector root(Vector x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(0xFFFF, x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  for (std::size_t i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

void adam(const AdamStep& by, std::size_t count, const float* gradients, float* values, float* means, float* squares) {
  over_elements(count, [&](std::size_t i, auto lanes) SUREFOOT_MEMBER {
    Vector value = lanes.read(values + i), mean = lanes.read(means + i);
    Vector gradient = lanes.read(gradients + i) * by.scale;
    if (by.added_decay != 0) gradient = fma(all(by.added_decay), value, gradient);
    mean = fma(gradient - mean, all(by.new_mean), mean);
    const Vector square = fma(gradient * by.new_square, gradient, lanes.read(squares + i) * by.old_square);
    value = value * by.kept - by.rate * (mean / fma(root(square), all(by.root_scale), all(by.epsilon)));
    lanes.write(values + i, value);
    lanes.write(means + i, mean);
    lanes.write(squares + i, square);
  });
}

/// One step for some elements; returns their scales. Running moments after West (1979): for a constant gradient, the
/// mean is exactly the gradient, the variance exactly 0 and the scale exactly 1. Only one division: 1 / (1 + c v) with
/// v = variance / power.
template <class Lanes>
SUREFOOT_INLINE Vector variance_step(const VarianceStep& by, Lanes lanes, float* gradients, float* means,
                                     float* variances) {
  const Vector gradient = lanes.read(gradients), before = lanes.read(means);
  const Vector apart = gradient - before, moved = apart * by.share, mean = before + moved;
  const Vector variance = fma(moved, apart, lanes.read(variances)) * by.kept;
  const Vector power = fma(mean, mean, all(by.epsilon));
  const Vector scale = at_least(power / fma(all(by.strength), variance, power), all(by.floor));
  lanes.write(gradients, gradient * scale);
  lanes.write(means, mean);
  lanes.write(variances, variance);
  return scale;
}

/// Number of lanes of the sums, the same for every instruction set: element i is added in lane i % kScaleLanes.
constexpr std::size_t kScaleLanes = 16, kScaleVectors = kScaleLanes / kLanes;

ScaledSums scale_by_variance(const VarianceStep& by, std::size_t count, float* gradient, float* mean, float* variance) {
  Vector scales[kScaleVectors] = {}, floors[kScaleVectors] = {};
  const Vector floor = all(by.floor), one = all(1.0f), none = {};
  std::size_t i = 0;
  for (; i + kScaleLanes <= count; i += kScaleLanes) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kScaleVectors; ++c) {
      const std::size_t at = i + c * kLanes;
      const Vector scale = variance_step(by, AllLanes{}, gradient + at, mean + at, variance + at);
      scales[c] += scale;
      floors[c] += select(scale <= floor, one, none);
    }
  }
  ScaledSums sums{0, 0};
  for (std::size_t c = 0; c < kScaleVectors; ++c) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums.scale += static_cast<double>(scales[c][lane]);
      sums.at_floor += static_cast<double>(floors[c][lane]);
    }
  }
  for (; i < count; i += kLanes) {
    const std::size_t rest = count - i < kLanes ? count - i : kLanes;
    const Vector scale = variance_step(by, FirstLanes{rest}, gradient + i, mean + i, variance + i);
    for (std::size_t lane = 0; lane < rest; ++lane) {
      sums.scale += static_cast<double>(scale[lane]);
      sums.at_floor += scale[lane] <= by.floor ? 1.0 : 0.0;
    }
  }
  return sums;
}

}  // namespace
}  // namespace surefoot
