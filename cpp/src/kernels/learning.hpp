// The learner's own loops: sums over samples, the surrogate, and the optimizer.
//
// Sums run in one order on every machine: column by column over the samples, or over a fixed number of lanes.
#pragma once

#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

/// Samples that are added in float32 before float64 takes over: a million would cost half of the digits.
constexpr std::size_t kFloatSamples = 64;
constexpr std::size_t kSumLanes = 16;

void column_sums(std::size_t rows, std::size_t columns, MatrixView in, double* sums) {
  for (std::size_t column = 0; column < columns; ++column) sums[column] = 0;
  for (std::size_t first = 0; first < rows; first += kFloatSamples) {
    const std::size_t end = first + kFloatSamples < rows ? first + kFloatSamples : rows;
    for (std::size_t column = 0; column < columns; column += kLanes) {
      const std::size_t count = columns - column < kLanes ? columns - column : kLanes;
      Vector sum = all(0.0f);
      for (std::size_t row = first; row < end; ++row) {
        const float* const from = in.data + row * in.stride + column;
        sum += count == kLanes ? load(from) : gather(from, 1, count, 0.0f);
      }
      for (std::size_t i = 0; i < count; ++i) sums[column + i] += static_cast<double>(sum[i]);
    }
  }
}

/// The sum of squares, each lane of sixteen by itself, then all lanes in order.
double sum_squares(const float* values, std::size_t count) {
  typedef double Doubles __attribute__((vector_size(8 * kSumLanes)));
  Doubles sums{};
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    Doubles wide;
#pragma GCC unroll 16
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) wide[lane] = static_cast<double>(values[i + lane]);
    sums += wide * wide;
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    sums[lane] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  double sum = 0;
  for (std::size_t lane = 0; lane < kSumLanes; ++lane) sum += sums[lane];
  return sum;
}

SUREFOOT_INLINE Vector expm1(Vector x) {
  const Reduced reduced = reduce(at_most(at_least(x, all(-80.0f)), all(80.0f)));
  const Vector scale = power_of_two(reduced.power);
  return select(x > all(40.0f), exp(x), fma(small_expm1(reduced.rest), scale, scale - 1.0f));
}

struct SurrogateRow {
  Vector loss, kl, is_outside, gradient;
};

SUREFOOT_INLINE SurrogateRow surrogate_row(Vector log_ratio, Vector advantage, const SurrogateBlock& block) {
  const Vector ratio = exp(log_ratio), excess = expm1(log_ratio);
  const Vector inside = at_most(at_least(ratio, all(block.low)), all(block.high));
  const Vector gain = ratio * advantage, clipped_gain = inside * advantage;
  // No gradient where the clip takes effect; a NaN passes.
  const IntVector is_cut = clipped_gain < gain;
  return {.loss = -select(is_cut, clipped_gain, gain),
          .kl = excess - log_ratio,
          .is_outside = select(magnitude(excess) > all(block.clip), all(1.0f), all(0.0f)),
          .gradient = select(is_cut, all(0.0f), -gain * block.weight)};
}

void surrogate(const SurrogateBlock& block) {
  std::size_t row = 0;
  for (; row + kLanes <= block.rows; row += kLanes) {
    const SurrogateRow done = surrogate_row(load(block.log_ratio + row), load(block.advantage + row), block);
    store(block.loss + row, done.loss);
    store(block.kl + row, done.kl);
    store(block.is_outside + row, done.is_outside);
    store(block.gradient + row, load(block.gradient + row) + done.gradient);
  }
  const std::size_t rest = block.rows - row;
  if (rest == 0) return;
  const auto part = [&](const float* from) { return gather(from + row, 1, rest, 0.0f); };
  const SurrogateRow done = surrogate_row(part(block.log_ratio), part(block.advantage), block);
  scatter(block.loss + row, 1, rest, done.loss);
  scatter(block.kl + row, 1, rest, done.kl);
  scatter(block.is_outside + row, 1, rest, done.is_outside);
  scatter(block.gradient + row, 1, rest, part(block.gradient) + done.gradient);
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

struct Weights {
  Vector value, mean, square;
};

SUREFOOT_INLINE Weights adam_step(const AdamStep& by, Vector gradient, Weights now) {
  gradient = gradient * by.scale;
  if (by.added_decay != 0) gradient = fma(all(by.added_decay), now.value, gradient);
  now.value = now.value * by.kept;
  now.mean = fma(gradient - now.mean, all(by.new_mean), now.mean);
  now.square = fma(gradient * by.new_square, gradient, now.square * by.old_square);
  now.value -= by.rate * (now.mean / fma(root(now.square), all(by.root_scale), all(by.epsilon)));
  return now;
}

void adam(const AdamStep& by, std::size_t count, const float* gradient, float* value, float* mean, float* square) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Weights now = adam_step(by, load(gradient + i), {load(value + i), load(mean + i), load(square + i)});
    store(value + i, now.value);
    store(mean + i, now.mean);
    store(square + i, now.square);
  }
  const std::size_t rest = count - i;
  if (rest == 0) return;
  const auto part = [&](const float* from) { return gather(from + i, 1, rest, 0.0f); };
  const Weights now = adam_step(by, part(gradient), {part(value), part(mean), part(square)});
  scatter(value + i, 1, rest, now.value);
  scatter(mean + i, 1, rest, now.mean);
  scatter(square + i, 1, rest, now.square);
}

}  // namespace
}  // namespace surefoot
