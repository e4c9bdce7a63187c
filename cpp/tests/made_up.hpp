// The learner's tensors with numbers made up.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "surefoot/policy.hpp"

namespace surefoot {

/// A memory of GRU or LSTM cells, or none.
struct CellsPlan {
  std::string kind = "none";
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::string name;

  std::size_t num_tensors() const { return kind == "none" ? 0 : kind == "gru" ? 1 : 2; }

  PartPlan part() const {
    if (kind == "none") return {"none"};
    return {kind, {{"layers", static_cast<double>(layers)}, {"hidden", static_cast<double>(hidden)}, {"name", name}}};
  }
};

inline PartPlan categorical(const std::string& layer, double choices) {
  return {"categorical",
          {{"layer", layer}, {"sizes", std::vector<double>{choices}}, {"start", std::vector<double>{0.0}}}};
}

inline PartPlan scalar(const std::string& layer) { return {"scalar", {{"layer", layer}, {"returns", std::string()}}}; }

class MadeUp {
 public:
  void add(const std::string& name, std::vector<std::size_t> shape, double scale = 0.3) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    auto& numbers = kept_.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) {
      numbers[i] = static_cast<float>(scale * std::sin(static_cast<double>(i + 7 * kept_.size())));
    }
    tensors_.push_back({name, std::move(shape), numbers.data()});
  }

  void add_linear(const std::string& name, std::size_t out, std::size_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }

  /// The tensors of all layers, for an input of `in`.
  void add_memory(const CellsPlan& plan, std::size_t in) {
    const std::size_t gates = (plan.kind == "gru" ? 3 : 4) * plan.hidden;
    for (std::size_t layer = 0; layer < plan.layers; ++layer, in = plan.hidden) {
      const std::string index = std::to_string(layer);
      const double scale = 1.5 / std::sqrt(static_cast<double>(plan.hidden));
      add(plan.name + ".weight_ih_l" + index, {gates, in}, scale);
      add(plan.name + ".weight_hh_l" + index, {gates, plan.hidden}, scale);
      add(plan.name + ".bias_ih_l" + index, {gates});
      add(plan.name + ".bias_hh_l" + index, {gates});
    }
  }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  const NamedTensor& operator[](const std::string& name) const {
    for (const NamedTensor& tensor : tensors_) {
      if (tensor.name == name) return tensor;
    }
    throw std::out_of_range(name);
  }

 private:
  std::vector<std::vector<float>> kept_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace surefoot
