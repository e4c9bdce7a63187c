#include <cmath>
#include <stdexcept>

#include "surefoot/parts/plan.hpp"

namespace surefoot {

namespace {

constexpr double kMostWhole = 0x1p53;  // doubles cannot represent all larger whole numbers
constexpr double kMostCount = 0x1p20;  // wider layers would only exhaust the memory

bool is_whole(double value) { return value == std::floor(value) && std::abs(value) <= kMostWhole; }

}  // namespace

template <class Value>
const Value& PartPlan::read(const std::string& name, const char* wanted) const {
  read_.insert(name);
  const auto found = settings_.find(name);
  if (found == settings_.end()) refuse(name, "is missing");
  if (const Value* value = std::get_if<Value>(&found->second)) return *value;
  refuse(name, std::string("must be ") + wanted);
}

bool PartPlan::flag(const std::string& name) const { return read<bool>(name, "true or false"); }

double PartPlan::number(const std::string& name) const { return read<double>(name, "a number"); }

std::size_t PartPlan::count(const std::string& name) const {
  const double value = number(name);
  if (value < 1 || !is_whole(value)) refuse(name, "must be a whole number of at least 1");
  if (value > kMostCount) refuse(name, "must be at most 1048576");
  return static_cast<std::size_t>(value);
}

std::string PartPlan::text(const std::string& name) const { return read<std::string>(name, "a string"); }

std::vector<float> PartPlan::floats(const std::string& name) const {
  std::vector<float> floats;
  for (const double value : read<std::vector<double>>(name, "numbers")) floats.push_back(static_cast<float>(value));
  return floats;
}

std::vector<std::int64_t> PartPlan::integers(const std::string& name) const {
  std::vector<std::int64_t> integers;
  for (const double value : read<std::vector<double>>(name, "whole numbers")) {
    if (!is_whole(value)) refuse(name, "must be whole numbers");
    integers.push_back(static_cast<std::int64_t>(value));
  }
  return integers;
}

std::vector<std::string> PartPlan::texts(const std::string& name) const {
  const auto given = settings_.find(name);
  const auto* numbers = given == settings_.end() ? nullptr : std::get_if<std::vector<double>>(&given->second);
  if (numbers != nullptr && numbers->empty()) {  // an empty list may have come as either type
    read_.insert(name);
    return {};
  }
  return read<std::vector<std::string>>(name, "strings");
}

void PartPlan::refuse(const std::string& name, const std::string& problem) const {
  throw std::invalid_argument(path_ + "." + name + " " + problem);
}

void PartPlan::refuse_unread() const {
  for (const auto& [name, setting] : settings_) {
    if (!read_.contains(name)) refuse(name, "is unknown to the kind '" + kind_ + "'");
  }
}

}  // namespace surefoot
