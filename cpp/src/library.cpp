#include "surefoot/library.hpp"

#include <dlfcn.h>
#include <mujoco/mujoco.h>

#include <stdexcept>

namespace surefoot {
namespace {

/// Libraries are never unloaded, because envs and the data that they share may outlive any caller.
const Library& opened(const std::string& path) {
  const std::string remedy = "; run 'surefoot native build' on its source again";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::invalid_argument(std::string(dlerror()) + remedy);
  using Entry = const Library* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, "surefoot_library"));
  if (entry == nullptr) throw std::invalid_argument(path + " is not a library of Surefoot environments" + remedy);
  const Library& library = *entry();
  const auto refuse = [&](const std::string& what, int built, int ours) {
    throw std::invalid_argument(path + " was built for " + what + " " + std::to_string(built) + ", not " +
                                std::to_string(ours) + remedy);
  };
  if (library.interface_version != kInterfaceVersion) {
    refuse("interface version", library.interface_version, kInterfaceVersion);
  }
  if (library.mujoco_version != mjVERSION_HEADER) refuse("MuJoCo", library.mujoco_version, mjVERSION_HEADER);
  return library;
}

}  // namespace

std::vector<std::pair<std::string, std::size_t>> library_envs(const std::string& library) {
  return (library.empty() ? *surefoot_library() : opened(library)).envs();
}

std::unique_ptr<Env> make_env_from(const std::string& library, const std::string& id, const Options& options) {
  return library.empty() ? make_env(id, options) : opened(library).make(id, options);
}

}  // namespace surefoot
