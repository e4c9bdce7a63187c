// What an environment's observations, actions, metrics and parameters look like.
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

/// One number for all elements or one number each (flattened); rounded to float32, as the bounds of Gymnasium are.
struct Bounds {
  std::vector<double> low{-std::numeric_limits<double>::infinity()}, high{std::numeric_limits<double>::infinity()};

  /// From `-limits` to `limits`.
  static Bounds within(const std::vector<double>& limits) {
    Bounds bounds{{}, limits};
    for (const double limit : limits) bounds.low.push_back(-limit);
    return bounds;
  }
};

/// One part of the observation: a key of a Dict observation, or the only part, whose key is empty.
struct ObsPart {
  std::string key;
  Shape shape;
  Bounds bounds{};

  std::size_t size() const { return size_of(shape); }
};

/// The space of actions. Box actions are numbers, all other kinds are choices.
struct ActionSpace {
  enum class Kind { kBox, kDiscrete, kMultiDiscrete, kMultiBinary };

  Kind kind;
  Shape shape;
  Bounds bounds{};
  std::vector<std::int64_t> sizes{},
      start{};  // of each element that is chosen: how many choices, and the first of them

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
  /// Entries of an action mask.
  std::size_t num_choices() const {
    if (kind == Kind::kMultiBinary) return size();
    return static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  }
};

/// How the values of a metric in an episode's steps become one number: the last one, their mean or their sum.
enum class Summary { kLast, kMean, kSum };

/// A number that an environment reports at every step, besides the reward.
struct MetricSpec {
  std::string name;
  Summary summary;
};

/// Something about an environment that can be set between rollouts. A single number has the shape {}.
struct ParameterSpec {
  std::string name;
  Shape shape;
  std::vector<double> values;  // by default
  /// Belongs to the agent, as the weights of a network do: float32 numbers that are saved with its policy, set wherever
  /// envs are made for it, and set once for all envs of an engine, in the one that the others are copies of. What
  /// becomes of them must be shared by copies (std::shared_ptr).
  bool is_of_agent = false;

  static ParameterSpec of_agent(std::string name, Shape shape, std::vector<double> values) {
    return {std::move(name), std::move(shape), std::move(values), true};
  }
  static ParameterSpec number(std::string name, double value) { return {std::move(name), {}, {value}}; }
};

}  // namespace surefoot
