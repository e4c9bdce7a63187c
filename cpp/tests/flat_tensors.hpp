// Tensors that learn, side by side as the learner wants them.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "surefoot/learner.hpp"

namespace surefoot {

struct FlatTensors {
  std::vector<float> values, gradient, mean, square;
  std::vector<NamedTensor> tensors;
  FlatMemory memory{};

  explicit FlatTensors(const std::vector<NamedTensor>& given) : tensors(given) {
    for (const NamedTensor& tensor : tensors) {
      memory.offsets[tensor.name] = values.size();
      std::size_t size = 1;
      for (const std::size_t length : tensor.shape) size *= length;
      values.insert(values.end(), tensor.data, tensor.data + size);
    }
    for (NamedTensor& tensor : tensors) tensor.data = values.data() + memory.offsets[tensor.name];
    for (auto* each : {&gradient, &mean, &square}) each->resize(values.size());
    memory.value = values.data();
    memory.gradient = gradient.data();
    memory.mean = mean.data();
    memory.square = square.data();
    memory.size = values.size();
    memory.parts = {{0, memory.size, 0}};
    memory.clips = {0};
  }
};

/// One optimizer step with all samples.
inline Update one_step(const LearnerSamples& samples, std::vector<double> weights) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Update update{};
  update.samples = samples;
  update.epochs = 1;
  update.units = update.num_valid = update.batch_size = samples.count;
  update.target_kl = kNone;
  update.optimizer = {0.1, 0.9, 0.999, 1e-8, 0, false, kNone};
  update.weights = std::move(weights);
  update.knobs = {{"clip", 0.2}};
  return update;
}

}  // namespace surefoot
