#include "surefoot/network.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "surefoot/layer.hpp"

namespace surefoot {

struct Network::Layers {
  std::vector<Layer> all;
};

Network::Network(std::vector<std::size_t> sizes, Activation hidden, Activation output)
    : sizes_(std::move(sizes)), hidden_(hidden), output_(output), layers_(std::make_unique<Layers>()) {
  const bool is_empty = std::any_of(sizes_.begin(), sizes_.end(), [](std::size_t size) { return size == 0; });
  if (sizes_.size() < 2 || is_empty) throw std::invalid_argument("a network needs at least inputs and outputs");
  layers_->all.resize(sizes_.size() - 1);
  set(std::vector<double>(num_values()));
}

Network::~Network() = default;

std::size_t Network::num_values() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < sizes_.size(); ++i) count += (sizes_[i] + 1) * sizes_[i + 1];
  return count;
}

void Network::set(std::span<const double> values) {
  if (values.size() != num_values()) {
    throw std::invalid_argument("the network has " + std::to_string(num_values()) + " weights and biases, not " +
                                std::to_string(values.size()));
  }
  std::vector<float> rounded(values.begin(), values.end());
  if (!std::all_of(rounded.begin(), rounded.end(), [](float value) { return std::isfinite(value); })) {
    throw std::invalid_argument("weights and biases must be finite");
  }
  const float* weight = rounded.data();
  for (std::size_t i = 0; i + 1 < sizes_.size(); ++i) {
    const float* const bias = weight + sizes_[i] * sizes_[i + 1];
    layers_->all[i].pack(kernels(), sizes_[i], sizes_[i + 1], weight, bias);
    weight = bias + sizes_[i + 1];
  }
}

void Network::run(std::size_t rows, const float* in, float* out) const {
  static thread_local Workspace workspace;
  const Kernels& chosen = kernels();
  MatrixView from{in, num_inputs()};
  for (std::size_t i = 0; i < layers_->all.size(); ++i) {
    const Layer& layer = layers_->all[i];
    from = layer.run(chosen, rows, from, {workspace, 0}, i % 2);
    const bool is_last = i + 1 == layers_->all.size();
    chosen.activate(is_last ? output_ : hidden_, workspace.floats(i % 2, rows * layer.stride()), rows * layer.stride());
  }
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(from.data + row * from.stride, num_outputs(), out + row * num_outputs());
  }
}

}  // namespace surefoot
