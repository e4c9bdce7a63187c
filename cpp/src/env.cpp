#include "surefoot/env.hpp"

#include <map>
#include <stdexcept>

namespace surefoot {
namespace {

std::map<std::string, MakeEnv>& registry() {
  static std::map<std::string, MakeEnv> known;
  return known;
}

}  // namespace

Registered::Registered(const std::string& id, MakeEnv make) { registry()[id] = std::move(make); }

std::vector<std::string> env_ids() {
  std::vector<std::string> ids;
  for (const auto& [id, make] : registry()) ids.push_back(id);
  return ids;
}

std::unique_ptr<Env> make_env(const std::string& id, const Options& options) {
  const auto found = registry().find(id);
  if (found == registry().end()) throw std::invalid_argument("there is no native environment '" + id + "'");
  auto env = found->second(options);
  options.refuse_unknown(id);
  return env;
}

}  // namespace surefoot
