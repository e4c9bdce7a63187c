#include "surefoot/env.hpp"

#include <mujoco/mujoco.h>

#include <map>
#include <stdexcept>

namespace surefoot {
namespace {

struct Known {
  MakeEnv make;
  std::size_t max_episode_steps;
};

std::map<std::string, Known>& registry() {
  static std::map<std::string, Known> known;
  return known;
}

std::vector<std::pair<std::string, std::size_t>> envs_with_limits() {
  std::vector<std::pair<std::string, std::size_t>> envs;
  for (const auto& [id, known] : registry()) envs.emplace_back(id, known.max_episode_steps);
  return envs;
}

}  // namespace

Registered::Registered(const std::string& id, MakeEnv make, std::size_t max_episode_steps) {
  registry()[id] = {std::move(make), max_episode_steps};
}

std::vector<std::string> env_ids() {
  std::vector<std::string> ids;
  for (const auto& [id, known] : registry()) ids.push_back(id);
  return ids;
}

std::unique_ptr<Env> make_env(const std::string& id, const Options& options) {
  const auto found = registry().find(id);
  if (found == registry().end()) throw std::invalid_argument("'" + id + "' has no native implementation");
  auto env = found->second.make(options);
  options.refuse_unknown(id);
  return env;
}

}  // namespace surefoot

extern "C" __attribute__((visibility("default"))) const surefoot::Library* surefoot::surefoot_library() {
  static const surefoot::Library library{surefoot::kInterfaceVersion, mjVERSION_HEADER, &surefoot::envs_with_limits,
                                         &surefoot::make_env};
  return &library;
}
