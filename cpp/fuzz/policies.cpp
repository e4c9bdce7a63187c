#include "policies.hpp"

#include <limits>

namespace surefoot::fuzz {
namespace {

constexpr const char* kMemories[] = {"none", "none", "gru", "lstm"};
constexpr const char* kClips[] = {"quantiles", "mean", "mean_and_spread"};
constexpr const char* kBoxHeads[] = {"gaussian", "tanh_gaussian", "beta"};

std::vector<double> each(const std::vector<double>& bounds, std::size_t size) {
  return bounds.size() == size ? bounds : std::vector<double>(size, bounds.front());
}

std::vector<double> as_numbers(const std::vector<std::int64_t>& integers) { return {integers.begin(), integers.end()}; }

}  // namespace

RandomPolicy::RandomPolicy(const std::vector<std::size_t>& obs_sizes, const ActionSpace& space, Chance& chance)
    : chance_(chance), scale_(chance.once_in(4) ? 1e30 : 0.5) {
  for (std::size_t i = 0; i < obs_sizes.size(); ++i) {
    const std::string normalizer = chance.once_in(2) ? "" : "normalizer" + std::to_string(i);
    const float clip = chance.once_in(2) ? 10.0f : std::numeric_limits<float>::infinity();
    plan.obs.push_back({std::to_string(i), obs_sizes[i], normalizer, clip});
    if (normalizer.empty()) continue;
    add(normalizer + ".shift", {obs_sizes[i]});
    add(normalizer + ".scale", {obs_sizes[i]});
  }
  plan.activation = chance.one_of(kActivations);
  plan.shares_trunk = chance.once_in(2);
  const std::size_t latent = add_body("actor", plan.actor);
  const std::size_t valued = plan.shares_trunk ? latent : add_body("critic", plan.critic);
  plan.head = head(space, latent);
  for (std::size_t count = chance.between(1, 2); count > 0; --count) add_critic(valued);
}

void RandomPolicy::add_critic(std::size_t latent) {
  const std::string name = "value" + std::to_string(plan.values.size());
  MlpPlan trunk;
  const std::size_t in = add_layers(name + ".trunk.", latent, trunk.layers);
  PartSettings settings{{"layer", name}, {"returns", std::string()}};
  const bool has_quantiles = chance_.once_in(2);
  const std::size_t outputs = has_quantiles ? chance_.between(1, 40) : 1;
  if (has_quantiles) {
    settings["num_quantiles"] = static_cast<double>(outputs);
    settings["kappa"] = chance_.once_in(2) ? 1.0 : 0.0;
    settings["clip"] = std::string(chance_.one_of(kClips));
  }
  plan.values.push_back({{has_quantiles ? "quantile" : "scalar", settings}, trunk});
  add_linear(name, outputs, in);
}

void RandomPolicy::fill(std::vector<float>& numbers, double) {
  for (float& number : numbers) number = static_cast<float>(chance_.uniform(-scale_, scale_));
  if (!numbers.empty() && chance_.once_in(20)) {
    numbers[chance_.between(0, numbers.size() - 1)] = std::numeric_limits<float>::quiet_NaN();
  }
}

std::size_t RandomPolicy::add_layers(const std::string& name, std::size_t in, std::vector<std::string>& layers) {
  for (std::size_t count = chance_.between(0, 2); count > 0; --count) {
    layers.push_back(name + std::to_string(layers.size()));
    const std::size_t out = chance_.between(1, 40);
    add_linear(layers.back(), out, in);
    in = out;
  }
  return in;
}

std::size_t RandomPolicy::add_encoder(const std::string& name, std::size_t obs, BodyPlan& body) {
  std::size_t size = plan.obs[obs].size;
  const bool is_set = chance_.once_in(3);
  PartSettings settings;
  if (is_set) {
    std::size_t elements = chance_.between(1, size);
    while (size % elements != 0) --elements;
    const std::size_t numbers = size / elements, features = chance_.between(1, 20);
    add_linear(name + "element", features, numbers);
    settings = {{"element", name + "element"},
                {"elements", static_cast<double>(elements)},
                {"numbers", static_cast<double>(numbers)},
                {"features", static_cast<double>(features)}};
    size = features;
  }
  std::vector<std::string> layers;
  size = add_layers(name, size, layers);
  if (is_set || !layers.empty()) settings["layers"] = layers;
  body.encoders.push_back({obs, PartPlan(is_set ? "set" : layers.empty() ? "identity" : "mlp", settings)});
  return size;
}

std::size_t RandomPolicy::add_body(const std::string& name, BodyPlan& body) {
  std::size_t features = 0;
  for (std::size_t i = 0; i < plan.obs.size(); ++i) {
    if (i > 0 && plan.obs[i].normalizer.empty() && chance_.once_in(3)) continue;  // nothing reads it
    features += add_encoder(name + ".encoder" + std::to_string(i) + ".", i, body);
  }
  CellsPlan memory{chance_.one_of(kMemories), 0, 0, name + ".memory"};
  if (memory.kind != "none") {
    memory.layers = chance_.between(1, 2);
    memory.hidden = chance_.between(1, 20);
    add_memory(memory, features);
    features = memory.hidden;
  }
  body.memory = memory.part();
  return add_layers(name + ".trunk.", features, body.trunk.layers);
}

PartPlan RandomPolicy::head(const ActionSpace& space, std::size_t latent) {
  const std::string layer = "head";
  const std::size_t size = space.size();
  if (space.kind == ActionSpace::Kind::kMultiBinary) {
    add_linear(layer, size, latent);
    return {"bernoulli", {{"layer", layer}, {"size", static_cast<double>(size)}}};
  }
  if (space.has_choices()) {
    add_linear(layer, space.num_choices(), latent);
    return {size == 1 ? "categorical" : "multi_discrete",
            {{"layer", layer}, {"sizes", as_numbers(space.sizes)}, {"start", as_numbers(space.start)}}};
  }
  const std::string kind = chance_.one_of(kBoxHeads);
  const auto low = each(space.bounds.low, size), high = each(space.bounds.high, size);
  add_linear(layer, kind == "beta" ? 2 * size : size, latent);
  if (kind == "beta") return {kind, {{"layer", layer}, {"low", low}, {"high", high}}};
  const std::string std_layer = chance_.once_in(2) ? "" : "std";
  if (!std_layer.empty()) add_linear(std_layer, size, latent);
  add("log_std", {size});
  PartSettings settings{{"layer", layer},
                        {"std_layer", std_layer},
                        {"log_std", std::string("log_std")},
                        {"std_floor", 1e-3},
                        {"low", low},
                        {"high", high}};
  settings["rescale"] = chance_.once_in(2);
  return {kind, settings};
}

}  // namespace surefoot::fuzz
