// The nonlinearities that networks know.
#pragma once

namespace surefoot {

enum class Activation { kTanh, kRelu, kElu, kSilu, kLeakyRelu, kGelu };

}  // namespace surefoot
