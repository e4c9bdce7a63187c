// Policies with made-up weights, for any spaces.
#pragma once

#include <string>
#include <vector>

#include "chance.hpp"
#include "surefoot/policy.hpp"
#include "surefoot/spaces.hpp"

namespace surefoot::fuzz {

/// A tensor that owns its numbers.
struct Tensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> numbers;
};

struct RandomPolicy {
  RandomPolicy(const std::vector<std::size_t>& obs_sizes, const ActionSpace& space, Chance& chance);

  std::vector<NamedTensor> named() const;

  PolicyPlan plan;
  std::vector<Tensor> tensors;

 private:
  void add(const std::string& name, std::vector<std::size_t> shape);
  void add_linear(const std::string& name, std::size_t out, std::size_t in);
  /// Gives the size of what the layers give.
  std::size_t add_layers(const std::string& name, std::size_t in, std::vector<std::string>& layers);
  std::size_t add_encoder(const std::string& name, std::size_t obs, BodyPlan& body);
  std::size_t add_body(const std::string& name, BodyPlan& body);
  void add_critic(std::size_t latent);
  PartPlan head(const ActionSpace& space, std::size_t latent);

  Chance& chance_;
  double scale_;
};

}  // namespace surefoot::fuzz
