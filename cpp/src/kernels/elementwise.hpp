// Elementwise functions over arrays.
#pragma once

#include <algorithm>

#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

/// Applies a function to `count` floats; may be in place. The remainder goes through a padded vector, so that all
/// elements take the same path.
template <Vector (*Function)(Vector)>
void map(const float* in, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, Function(load(in + i)));
  if (i == count) return;
  scatter(out + i, 1, count - i, Function(gather(in + i, 1, count - i, 0.0f)));
}

void activate(Activation activation, float* values, std::size_t count) {
  switch (activation) {
    case Activation::kTanh:
      return map<tanh>(values, values, count);
    case Activation::kRelu:
      return map<relu>(values, values, count);
    case Activation::kElu:
      return map<elu>(values, values, count);
    case Activation::kSilu:
      return map<silu>(values, values, count);
    case Activation::kLeakyRelu:
      return map<leaky_relu>(values, values, count);
    case Activation::kGelu:
      return map<gelu>(values, values, count);
    case Activation::kIdentity:
      return;
  }
}

template <Vector (*Function)(Vector, Vector)>
void map_pairs(const float* a, const float* b, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, Function(load(a + i), load(b + i)));
  const std::size_t rest = count - i;
  if (rest > 0) scatter(out + i, 1, rest, Function(gather(a + i, 1, rest, 0.0f), gather(b + i, 1, rest, 0.0f)));
}

/// `shown` is y or x; see Kernels::differentiate.
void differentiate(Activation activation, const float* shown, const float* gradient, float* out, std::size_t count) {
  switch (activation) {
    case Activation::kTanh:
      return map_pairs<through_tanh>(gradient, shown, out, count);
    case Activation::kRelu:
      return map_pairs<through_relu>(gradient, shown, out, count);
    case Activation::kElu:
      return map_pairs<through_elu>(gradient, shown, out, count);
    case Activation::kLeakyRelu:
      return map_pairs<through_leaky_relu>(gradient, shown, out, count);
    case Activation::kSilu:
      return map_pairs<through_silu>(gradient, shown, out, count);
    case Activation::kGelu:
      return map_pairs<through_gelu>(gradient, shown, out, count);
    case Activation::kIdentity:
      std::copy_n(gradient, count, out);
      return;
  }
}

SUREFOOT_INLINE Vector normalized(Vector value, Vector shift, Vector scale, Vector clip) {
  return at_least(at_most((value - shift) / scale, clip), -clip);
}

void normalize(const Normalization& by, std::size_t rows, std::size_t size, const float* in, float* out) {
  const Vector clip = all(by.clip);
  const std::size_t whole = size / kLanes * kLanes;
  const std::size_t rest = size - whole;
  for (std::size_t row = 0; row < rows; ++row, in += size, out += size) {
    for (std::size_t i = 0; i < whole; i += kLanes) {
      store(out + i, normalized(load(in + i), load(by.shift + i), load(by.scale + i), clip));
    }
    if (rest == 0) continue;
    const Vector values = gather(in + whole, 1, rest, 0.0f);
    const Vector shift = gather(by.shift + whole, 1, rest, 0.0f);
    scatter(out + whole, 1, rest, normalized(values, shift, gather(by.scale + whole, 1, rest, 1.0f), clip));
  }
}

}  // namespace
}  // namespace surefoot
