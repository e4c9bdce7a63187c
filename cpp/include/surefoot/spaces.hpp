// Descriptions of an environment's observations, actions, metrics and parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace surefoot {

using Shape = std::vector<std::size_t>;

/// Number of elements.
inline std::size_t size_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

/// Bounds of a space: one number for all elements, or one per element (flattened); rounded to float32, like the bounds
/// of Gymnasium.
struct Bounds {
  std::vector<double> low{-std::numeric_limits<double>::infinity()}, high{std::numeric_limits<double>::infinity()};

  /// From `-limits` to `limits`.
  static Bounds within(const std::vector<double>& limits) {
    Bounds bounds{{}, limits};
    for (const double limit : limits) bounds.low.push_back(-limit);
    return bounds;
  }
};

/// One leaf of the observation: a key of a Dict observation, or the only leaf, whose key is empty.
struct ObsPart {
  std::string key;
  Shape shape;
  Bounds bounds{};

  std::size_t size() const { return size_of(shape); }
};

/// The action space. Box actions are numbers, all other kinds are choices.
struct ActionSpace {
  enum class Kind { kBox, kDiscrete, kMultiDiscrete, kMultiBinary };

  Kind kind;
  Shape shape;
  Bounds bounds{};
  std::vector<std::int64_t> sizes{}, start{};  // per element: number of choices, and the first choice

  static ActionSpace box(Shape shape, Bounds bounds = {}) { return {Kind::kBox, std::move(shape), std::move(bounds)}; }
  static ActionSpace discrete(std::int64_t size, std::int64_t start = 0) {
    return {Kind::kDiscrete, {}, {}, {size}, {start}};
  }
  static ActionSpace multi_discrete(std::vector<std::int64_t> sizes, std::vector<std::int64_t> start = {}) {
    start.resize(sizes.size());
    return {Kind::kMultiDiscrete, {sizes.size()}, {}, std::move(sizes), std::move(start)};
  }
  static ActionSpace multi_binary(std::size_t size) { return {Kind::kMultiBinary, {size}, {{0.0}, {1.0}}}; }

  std::size_t size() const { return size_of(shape); }
  bool has_choices() const { return kind != Kind::kBox; }
  /// The first and the last choice of an element.
  std::pair<std::int64_t, std::int64_t> choices(std::size_t element) const {
    if (kind == Kind::kMultiBinary) return {0, 1};
    return {start[element], start[element] + sizes[element] - 1};
  }
  /// Number of entries of an action mask.
  std::size_t num_choices() const {
    if (kind == Kind::kMultiBinary) return size();
    return static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  }
};

/// How a metric is summarized over an episode: last value, mean or sum.
enum class Summary { kLast, kMean, kSum };

/// A number that an environment reports at every step, besides the reward.
struct MetricSpec {
  std::string name;
  Summary summary;
};

/// A parameter of an environment that can be set between rollouts. A single number has the shape {}.
struct ParameterSpec {
  std::string name;
  Shape shape;
  std::vector<double> values;  // defaults
  /// Whether it belongs to the agent, as the weights of a network do. Such parameters are float32, saved with the
  /// policy and set wherever envs are created for it. An engine sets them once, in the env of which the others are
  /// copies, so copies must share what depends on them (std::shared_ptr).
  bool is_of_agent = false;

  static ParameterSpec of_agent(std::string name, Shape shape, std::vector<double> values) {
    return {std::move(name), std::move(shape), std::move(values), true};
  }
  static ParameterSpec number(std::string name, double value) { return {std::move(name), {}, {value}}; }
};

}  // namespace surefoot
