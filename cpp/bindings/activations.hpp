// Activation functions by their names in the config.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "surefoot/activation.hpp"

namespace surefoot {

inline Activation activation_of(const std::string& name, const std::string& where = "") {
  constexpr std::pair<const char*, Activation> kKnown[] = {{"tanh", Activation::kTanh},
                                                           {"relu", Activation::kRelu},
                                                           {"elu", Activation::kElu},
                                                           {"silu", Activation::kSilu},
                                                           {"leaky_relu", Activation::kLeakyRelu},
                                                           {"gelu", Activation::kGelu},
                                                           {"identity", Activation::kIdentity}};
  for (const auto& [known, activation] : kKnown) {
    if (name == known) return activation;
  }
  throw std::invalid_argument(where + "the core does not support '" + name + "'");
}

}  // namespace surefoot
