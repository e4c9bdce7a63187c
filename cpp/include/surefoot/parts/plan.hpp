// The description of a part of a policy, written by Python: its kind, its settings and the names of its tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace surefoot {

using PartSetting = std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;
using PartSettings = std::map<std::string, PartSetting>;

/// A part reads each of its settings by name. Settings that are missing, of the wrong type or never read are rejected
/// with a std::invalid_argument that begins with `path` and the name.
class PartPlan {
 public:
  PartPlan(std::string kind, PartSettings settings = {}, std::string path = "plan")
      : kind_(std::move(kind)), path_(std::move(path)), settings_(std::move(settings)) {}

  const std::string& kind() const { return kind_; }

  bool flag(const std::string& name) const;
  double number(const std::string& name) const;
  std::size_t count(const std::string& name) const;  // at least 1
  std::string text(const std::string& name) const;
  std::vector<float> floats(const std::string& name) const;
  std::vector<std::int64_t> integers(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;

  /// Throws std::invalid_argument with the message `<path>.<name> <problem>`.
  [[noreturn]] void refuse(const std::string& name, const std::string& problem) const;
  void refuse_unread() const;

 private:
  template <class Value>
  const Value& read(const std::string& name, const char* wanted) const;

  std::string kind_, path_;
  PartSettings settings_;
  mutable std::set<std::string> read_;
};

}  // namespace surefoot
