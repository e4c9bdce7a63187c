// Environments in a library that was compiled outside of this package.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "surefoot/env.hpp"

namespace surefoot {

/// Ids and time limits of a library's envs; those of the core if the path is empty. Throws std::invalid_argument, with
/// the remedy, if the file is not a library of environments or was compiled for another version of the interface or of
/// MuJoCo.
std::vector<std::pair<std::string, std::size_t>> library_envs(const std::string& library);

/// Creates an env of a library, or of the core if the path is empty.
std::unique_ptr<Env> make_env_from(const std::string& library, const std::string& id, const Options& options);

}  // namespace surefoot
