#include "transforms.hpp"

#include <algorithm>
#include <array>

namespace surefoot {

namespace {

/// Floats of the gradient that one task changes: fewer take less time than it takes to hand them to another thread.
constexpr std::size_t kTask = 16384;
/// Those that go through all transforms while they are in the nearest cache.
constexpr std::size_t kStretch = 1024;
/// The sum of squares below which squared distances from past gradients are finite floats; a NaN is not below.
constexpr double kSound = 1e36;

struct Stretch {
  std::size_t first, count;
};

void run(const ActiveTransform& active, Stretch stretch, float* gradient, double* sums) {
  std::array<float*, Transform::kMostTensors> tensors;
  for (std::size_t i = 0; i < active.tensors.size(); ++i) tensors[i] = active.tensors[i] + stretch.first;
  active.transform->run(stretch.count, gradient + stretch.first, {tensors.data(), active.tensors.size()}, sums);
}

}  // namespace

double sum_of(const std::vector<double>& squares) {
  double sum = 0;
  for (const double part : squares) sum += part;
  return sum;
}

std::vector<double> transformed(const Kernels& kernels, Crew& crew, const std::vector<ActiveTransform>& transforms,
                                const FlatMemory& memory, const std::vector<double>& before, UpdateRecord& record) {
  std::vector<double> resting;  // what is measured of a gradient that is left alone
  std::vector<std::size_t> first_measure;
  for (const ActiveTransform& active : transforms) {
    first_measure.push_back(resting.size());
    for (const auto& measure : active.transform->measures()) resting.push_back(measure.second);
  }
  if (!(sum_of(before) < kSound)) {
    record.transformed.insert(record.transformed.end(), resting.begin(), resting.end());
    return before;
  }
  for (const ActiveTransform& active : transforms) active.transform->step(++*active.steps);
  const std::size_t tasks = (memory.size + kTask - 1) / kTask, width = resting.size();
  std::vector<double> squares(tasks), sums(tasks * width);
  crew.each(tasks, [&](std::size_t task, std::size_t) {
    const std::size_t end = std::min((task + 1) * kTask, memory.size);
    for (std::size_t first = task * kTask; first < end; first += kStretch) {
      const Stretch stretch{first, std::min(kStretch, end - first)};
      for (std::size_t i = 0; i < transforms.size(); ++i) {
        run(transforms[i], stretch, memory.gradient, sums.data() + task * width + first_measure[i]);
      }
      squares[task] += kernels.sum_squares(1, stretch.count, {memory.gradient + stretch.first, stretch.count});
    }
  });
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0;
    for (std::size_t task = 0; task < tasks; ++task) sum += sums[task * width + i];
    record.transformed.push_back(sum / static_cast<double>(memory.size));
  }
  return squares;
}

}  // namespace surefoot
