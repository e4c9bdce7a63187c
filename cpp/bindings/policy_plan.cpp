#include "policy_plan.hpp"

#include <nanobind/stl/variant.h>

#include <string>
#include <utility>

#include "activations.hpp"
#include "entries.hpp"

namespace surefoot {
namespace {

/// The plan of a part: its kind and settings.
PartPlan part(const Entries& entries, const char* name) {
  return part_plan(entries.read<nb::dict>(name), entries.path() + name);
}

MlpPlan mlp_plan(const Entries& entries, const char* name) { return {entries.read<std::vector<std::string>>(name)}; }

BodyPlan body_plan(const Entries& entries) {
  BodyPlan plan;
  for (const Entries& encoder : entries.list("encoders")) {
    plan.encoders.push_back({encoder.read<std::size_t>("obs"), part(encoder, "encoder")});
  }
  plan.trunk = mlp_plan(entries, "trunk");
  if (entries.has("memory")) plan.memory = part(entries, "memory");
  plan.takes_actor_memory = entries.has("takes_actor_memory") && entries.read<bool>("takes_actor_memory");
  return plan;
}

}  // namespace

PartPlan part_plan(const nb::dict& plain, const std::string& path) {
  const Entries entries(plain, path + ".");
  PartSettings settings;
  for (const auto& [key, value] : plain) {
    const auto word = nb::cast<std::string>(key);
    if (word != "kind") settings[word] = entries.read<PartSetting>(word.c_str());
  }
  return {entries.read<std::string>("kind"), std::move(settings), path};
}

PolicyPlan policy_plan(const nb::dict& plain) {
  const Entries entries(plain, "plan.");
  PolicyPlan plan;
  for (const Entries& obs : entries.list("obs")) {
    plan.obs.push_back({obs.read<std::string>("key"), obs.read<std::size_t>("size"),
                        obs.read<std::string>("normalizer"), obs.read<float>("clip")});
  }
  plan.activation = activation_of(entries.read<std::string>("activation"), entries.path() + "activation: ");
  plan.shares_trunk = entries.read<bool>("shares_trunk");
  plan.actor = body_plan(entries.inner("actor"));
  if (!plan.shares_trunk) plan.critic = body_plan(entries.inner("critic"));
  plan.head = part(entries, "head");
  for (const Entries& value : entries.list("values")) {
    plan.values.push_back({part(value, "critic"), mlp_plan(value, "trunk")});
  }
  return plan;
}

}  // namespace surefoot
