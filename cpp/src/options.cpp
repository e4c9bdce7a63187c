#include "surefoot/options.hpp"

#include <cmath>
#include <stdexcept>

namespace surefoot {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& wanted) {
  throw std::invalid_argument("option '" + name + "' must be " + wanted);
}

}  // namespace

const Option* Options::find(const std::string& name) const {
  known_.insert(name);
  const auto found = given_.find(name);
  return found == given_.end() ? nullptr : &found->second;
}

bool Options::flag(const std::string& name, bool otherwise) const {
  const Option* option = find(name);
  if (option == nullptr) return otherwise;
  if (const bool* value = std::get_if<bool>(option)) return *value;
  refuse(name, "true or false");
}

double Options::number(const std::string& name, double otherwise) const {
  const Option* option = find(name);
  if (option == nullptr) return otherwise;
  if (const double* value = std::get_if<double>(option)) return *value;
  refuse(name, "a number");
}

int Options::count(const std::string& name, int otherwise) const {
  const double value = number(name, otherwise);
  if (value < 1 || value != std::floor(value) || value > 1e9) refuse(name, "a whole number of at least 1");
  return static_cast<int>(value);
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  const Option* option = find(name);
  if (option == nullptr) return otherwise;
  if (const std::string* value = std::get_if<std::string>(option)) return *value;
  refuse(name, "a string");
}

std::optional<std::vector<double>> Options::numbers(const std::string& name) const {
  const Option* option = find(name);
  if (option == nullptr) return std::nullopt;
  if (const auto* values = std::get_if<std::vector<double>>(option)) return *values;
  refuse(name, "a list of numbers");
}

std::pair<double, double> Options::range(const std::string& name, std::pair<double, double> otherwise) const {
  const Option* option = find(name);
  if (option == nullptr) return otherwise;
  const auto* values = std::get_if<std::vector<double>>(option);
  if (values == nullptr || values->size() != 2) refuse(name, "two numbers");
  return {(*values)[0], (*values)[1]};
}

void Options::refuse_unknown(const std::string& who) const {
  for (const auto& [name, value] : given_) {
    if (!known_.contains(name) && name != kAssets)
      throw std::invalid_argument(who + " has no native option '" + name + "'");
  }
}

}  // namespace surefoot
