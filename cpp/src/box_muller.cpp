#include "surefoot/box_muller.hpp"

#include <cmath>
#include <numbers>

namespace surefoot {

NormalPair box_muller(float radius_uniform, float angle_uniform) {
  const double radius = std::sqrt(-2 * std::log1p(-static_cast<double>(radius_uniform)));
  const double angle = 2 * std::numbers::pi * static_cast<double>(angle_uniform);
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

void box_muller(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 2) {
    const NormalPair pair = box_muller(values[i], values[i + 1]);
    values[i] = pair.first;
    values[i + 1] = pair.second;
  }
}

}  // namespace surefoot
