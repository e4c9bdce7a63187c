// Elementwise functions over arrays.
#pragma once

#include <algorithm>

#include "lanes.hpp"
#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

/// Applies a function to `count` floats; may be in place.
template <Vector (*Function)(Vector)>
void map(const float* in, float* out, std::size_t count) {
  over_elements(count,
                [&](std::size_t i, auto lanes) SUREFOOT_MEMBER { lanes.write(out + i, Function(lanes.read(in + i))); });
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
  over_elements(count, [&](std::size_t i, auto lanes)
                           SUREFOOT_MEMBER { lanes.write(out + i, Function(lanes.read(a + i), lanes.read(b + i))); });
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

void normalize(const Normalization& by, std::size_t rows, std::size_t size, const float* in, float* out) {
  const Vector clip = all(by.clip);
  over_elements(rows, size, [&](std::size_t row, std::size_t i, auto lanes) SUREFOOT_MEMBER {
    const std::size_t at = row * size + i;
    const Vector value = (lanes.read(in + at) - lanes.read(by.shift + i)) / lanes.read(by.scale + i);
    lanes.write(out + at, at_least(at_most(value, clip), -clip));
  });
}

}  // namespace
}  // namespace surefoot
