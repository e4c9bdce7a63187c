// Activation functions of networks.
#pragma once

namespace surefoot {

enum class Activation { kTanh, kRelu, kElu, kSilu, kLeakyRelu, kGelu, kIdentity };

/// Whether the derivative of an activation can be computed from its output, so that its input need not be stored.
constexpr bool slope_shows(Activation activation) {
  return activation != Activation::kSilu && activation != Activation::kGelu;
}

}  // namespace surefoot
