// Policies with made-up weights, for any spaces.
#pragma once

#include <string>
#include <vector>

#include "../tests/made_up.hpp"
#include "chance.hpp"
#include "surefoot/spaces.hpp"

namespace surefoot::fuzz {

class RandomPolicy : public MadeUp {
 public:
  RandomPolicy(const std::vector<std::size_t>& obs_sizes, const ActionSpace& space, Chance& chance);

  PolicyPlan plan;

 private:
  void fill(std::vector<float>& numbers, double scale) override;
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
