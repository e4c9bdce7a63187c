#include "transforms.hpp"

#include <algorithm>
#include <array>

namespace surefoot {

namespace {

/// Size of a whole gradient below which handing out tasks takes longer than the work.
constexpr std::size_t kAlone = 16384;
/// Floats that go through all transforms together, while they are in the nearest cache.
constexpr std::size_t kTogether = 1024;
/// The sum of squares below which squared distances from past gradients are finite floats; false for NaN.
constexpr double kSound = 1e36;

void run(const ActiveTransform& active, std::size_t first, std::size_t count, float* gradient, double* sums) {
  std::array<float*, Transform::kMostTensors> tensors;
  for (std::size_t i = 0; i < active.tensors.size(); ++i) tensors[i] = active.tensors[i] + first;
  active.transform->run(count, gradient + first, {tensors.data(), active.tensors.size()}, sums);
}

}  // namespace

std::vector<double> transformed(const Kernels& kernels, Crew& crew, const std::vector<ActiveTransform>& transforms,
                                const FlatMemory& memory, const std::vector<Stretch>& stretches, double before,
                                UpdateRecord& record) {
  std::vector<double> resting;  // measures of an unchanged gradient
  std::vector<std::size_t> first_measure;
  for (const ActiveTransform& active : transforms) {
    first_measure.push_back(resting.size());
    for (const auto& measure : active.transform->measures()) resting.push_back(measure.second);
  }
  if (!(before < kSound)) {
    record.transformed.insert(record.transformed.end(), resting.begin(), resting.end());
    return {};
  }
  for (const ActiveTransform& active : transforms) active.transform->step(++*active.steps);
  const std::size_t width = resting.size();
  std::vector<double> squares(stretches.size()), sums(stretches.size() * width);
  const auto change = [&](std::size_t task, std::size_t) {
    const std::size_t end = stretches[task].first + stretches[task].count;
    for (std::size_t first = stretches[task].first; first < end; first += kTogether) {
      const std::size_t count = std::min(kTogether, end - first);
      for (std::size_t i = 0; i < transforms.size(); ++i) {
        run(transforms[i], first, count, memory.gradient, sums.data() + task * width + first_measure[i]);
      }
      squares[task] += kernels.sum_squares(1, count, {memory.gradient + first, count});
    }
  };
  if (memory.size <= kAlone) {
    for (std::size_t task = 0; task < stretches.size(); ++task) change(task, 0);
  } else {
    crew.each(stretches.size(), change);
  }
  std::size_t learning = 0;
  for (const Stretch& stretch : stretches) learning += stretch.count;
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0;
    for (std::size_t task = 0; task < stretches.size(); ++task) sum += sums[task * width + i];
    record.transformed.push_back(sum / static_cast<double>(learning));
  }
  return squares;
}

}  // namespace surefoot
