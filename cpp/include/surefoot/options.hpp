// Constructor arguments of an environment, under the names that Gymnasium uses.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace surefoot {

/// Name of the option with the folder of model files. The engine passes it to every env; an env may ignore it.
constexpr const char* kAssets = "assets";

using Option = std::variant<bool, double, std::string, std::vector<double>>;

/// The options of an environment, which reads each by name with its default. Options that are never read are unknown.
class Options {
 public:
  Options() = default;
  explicit Options(std::map<std::string, Option> given) : given_(std::move(given)) {}

  bool flag(const std::string& name, bool otherwise) const;
  double number(const std::string& name, double otherwise) const;
  int count(const std::string& name, int otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::optional<std::vector<double>> numbers(const std::string& name) const;
  std::pair<double, double> range(const std::string& name, std::pair<double, double> otherwise) const;

  /// Throws std::invalid_argument that names an option that was never read.
  void refuse_unknown(const std::string& who) const;

 private:
  const Option* find(const std::string& name) const;

  std::map<std::string, Option> given_;
  mutable std::set<std::string> known_;
};

}  // namespace surefoot
