// Random numbers inside a step, equal to those of surefoot.envs.step_random (S13).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "surefoot/philox.hpp"
#include "surefoot/random.hpp"
#include "surefoot/state_reader.hpp"

namespace surefoot {

/// Counter-based: each number is a function of a key drawn by `reset`, the step, and its index within the step. The
/// state is therefore only key and step, and a step that draws more numbers does not change later steps.
class StepRandom {
 public:
  static constexpr std::size_t kStateSize = 3;

  StepRandom() = default;
  /// Draws the key of an episode; call it in `reset`.
  explicit StepRandom(Generator& random) {
    const std::uint64_t key = random.next();
    key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  }

  /// Call this once per step, before the first number.
  void next_step() {
    ++step_;
    drawn_ = 0;
  }

  double uniform() {  // [0, 1), 53 bits
    const std::uint64_t high = word() >> 5, low = word() >> 6;
    return static_cast<double>(high << 26 | low) * 0x1p-53;
  }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() {  // standard normal (Box and Muller 1958)
    const double length = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return length * std::cos(2.0 * std::numbers::pi * uniform());
  }

  double* save(double* state) const {
    *state++ = key_[0];
    *state++ = key_[1];
    *state++ = step_;
    return state;
  }
  void load(StateReader& state) {
    for (std::uint32_t& word : key_) word = static_cast<std::uint32_t>(state.count("key", UINT32_MAX));
    step_ = static_cast<std::uint32_t>(state.count("step", UINT32_MAX));
    drawn_ = 0;
  }

 private:
  std::uint32_t word() {
    if (drawn_ % 4 == 0) block_ = philox({drawn_ / 4, step_, 0, 0}, key_);
    return block_[drawn_++ % 4];
  }

  std::array<std::uint32_t, 2> key_{};
  std::uint32_t step_ = 0, drawn_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

}  // namespace surefoot
