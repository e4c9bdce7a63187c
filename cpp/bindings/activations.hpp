// Activation functions by their names in the config.
#pragma once

#include <utility>

#include "surefoot/activation.hpp"

namespace surefoot {

inline constexpr std::pair<const char*, Activation> kActivations[] = {{"tanh", Activation::kTanh},
                                                                      {"relu", Activation::kRelu},
                                                                      {"elu", Activation::kElu},
                                                                      {"silu", Activation::kSilu},
                                                                      {"leaky_relu", Activation::kLeakyRelu},
                                                                      {"gelu", Activation::kGelu},
                                                                      {"identity", Activation::kIdentity}};

}  // namespace surefoot
