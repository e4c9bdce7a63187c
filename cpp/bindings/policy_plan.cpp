#include "policy_plan.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "activations.hpp"

namespace surefoot {
namespace {

namespace nb = nanobind;

/// Entries of a dict, with their path for error messages.
class Entries {
 public:
  Entries(nb::dict plain, std::string path) : plain_(std::move(plain)), path_(std::move(path)) {}

  template <class Value>
  Value read(const char* name) const {
    Value value{};
    if (!nb::try_cast(at(name), value)) throw nb::type_error((path_ + name + " has the wrong type").c_str());
    return value;
  }

  bool has(const char* name) const { return plain_.contains(name); }

  Entries inner(const char* name) const { return {read<nb::dict>(name), path_ + name + "."}; }

  /// The plan of a part: its kind and settings.
  PartPlan part(const char* name) const { return part_plan(read<nb::dict>(name), path_ + name); }

  std::vector<Entries> list(const char* name) const {
    std::vector<Entries> entries;
    const auto dicts = read<std::vector<nb::dict>>(name);
    for (std::size_t i = 0; i < dicts.size(); ++i) {
      entries.emplace_back(dicts[i], path_ + name + "[" + std::to_string(i) + "].");
    }
    return entries;
  }

  /// The value for the word under `name`.
  template <class Value, std::size_t Count>
  Value choice(const char* name, const std::pair<const char*, Value> (&known)[Count]) const {
    const auto word = read<std::string>(name);
    for (const auto& [candidate, value] : known) {
      if (word == candidate) return value;
    }
    throw nb::value_error((path_ + name + ": the core does not support '" + word + "'").c_str());
  }

 private:
  nb::object at(const char* name) const {
    if (!plain_.contains(name)) throw nb::value_error((path_ + name + " is missing").c_str());
    return plain_[name];
  }

  nb::dict plain_;
  std::string path_;
};

MlpPlan mlp_plan(const Entries& entries, const char* name) { return {entries.read<std::vector<std::string>>(name)}; }

BodyPlan body_plan(const Entries& entries) {
  BodyPlan plan;
  for (const Entries& encoder : entries.list("encoders")) {
    plan.encoders.push_back({encoder.read<std::size_t>("obs"), encoder.part("encoder")});
  }
  plan.trunk = mlp_plan(entries, "trunk");
  if (entries.has("memory")) plan.memory = entries.part("memory");
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
  plan.activation = entries.choice("activation", kActivations);
  plan.shares_trunk = entries.read<bool>("shares_trunk");
  plan.actor = body_plan(entries.inner("actor"));
  if (!plan.shares_trunk) plan.critic = body_plan(entries.inner("critic"));
  plan.head = entries.part("head");
  for (const Entries& value : entries.list("values")) {
    plan.values.push_back({value.part("critic"), mlp_plan(value, "trunk")});
  }
  return plan;
}

}  // namespace surefoot
