// The nonlinearities that networks know.
#pragma once

namespace surefoot {

enum class Activation { kTanh, kRelu, kElu, kSilu, kLeakyRelu, kGelu, kIdentity };

/// Whether an activation's slope can be told from what it gave, so that learning need not keep what it was given.
constexpr bool slope_shows(Activation activation) {
  return activation != Activation::kSilu && activation != Activation::kGelu;
}

}  // namespace surefoot
