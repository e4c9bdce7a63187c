// The learner's tensors with numbers made up.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
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

/// One observation of `size` numbers, which an encoder takes to a head and a critic.
inline PolicyPlan plain_plan(std::size_t size, const PartPlan& head, const PartPlan& encoder = {"identity"}) {
  PolicyPlan plan;
  plan.obs = {{"", size, "", std::numeric_limits<float>::infinity()}};
  plan.actor = {{{0, encoder}}, {}};
  plan.shares_trunk = true;
  plan.head = head;
  plan.values = {{scalar("value")}};
  return plan;
}

inline constexpr Activation kActivations[] = {Activation::kTanh,    Activation::kRelu,      Activation::kElu,
                                              Activation::kSilu,    Activation::kLeakyRelu, Activation::kGelu,
                                              Activation::kIdentity};

/// A tensor that owns its numbers.
struct Tensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> numbers;

  NamedTensor named() const { return {name, shape, numbers.data()}; }
};

class MadeUp {
 public:
  virtual ~MadeUp() = default;

  void add(const std::string& name, const std::vector<std::size_t>& shape, double scale = 0.3) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    tensors.push_back({name, shape, std::vector<float>(size)});
    fill(tensors.back().numbers, scale);
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

  std::vector<NamedTensor> named() const {
    std::vector<NamedTensor> all;
    for (const Tensor& tensor : tensors) all.push_back(tensor.named());
    return all;
  }

  NamedTensor operator[](const std::string& name) const {
    for (const Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor.named();
    }
    throw std::out_of_range(name);
  }

  std::vector<Tensor> tensors;

 protected:
  /// Makes up the numbers of the last tensor.
  virtual void fill(std::vector<float>& numbers, double scale) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(scale * std::sin(static_cast<double>(i + 7 * tensors.size())));
    }
  }
};

}  // namespace surefoot
