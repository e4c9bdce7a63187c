// Access to the tensors of the learner by name, with a list of all problems.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace surefoot {

/// A tensor of the learner, float32 and C-contiguous, under its name in the learner.
struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  const float* data;
};

/// An unknown size, because the tensor that determines it is missing.
inline constexpr std::size_t kUnknownSize = static_cast<std::size_t>(-1);

class TensorReader {
 public:
  explicit TensorReader(std::span<const NamedTensor> tensors);

  /// Checks a linear layer by prefix and returns its output size. `in` and `out` may be unknown.
  std::size_t check_linear(const std::string& prefix, std::size_t in, std::size_t out = kUnknownSize) {
    return check_linear(prefix + ".weight", prefix + ".bias", in, out);
  }
  /// Checks a linear layer by the names of its tensors.
  std::size_t check_linear(const std::string& weight_name, const std::string& bias_name, std::size_t in,
                           std::size_t out);
  /// Checks that `name` has that shape.
  void check_shape(const std::string& name, const std::vector<std::size_t>& shape);
  /// Checks that `name` has `size` elements, in any shape.
  void check_size(const std::string& name, std::size_t size);
  /// Throws an error that lists all problems, including tensors that were never read.
  void throw_problems() const;

  /// Returns a tensor that was checked.
  const NamedTensor& operator[](const std::string& name) const { return *tensors_.at(name); }

 private:
  const NamedTensor* find(const std::string& name);

  std::unordered_map<std::string_view, const NamedTensor*> tensors_;
  std::set<std::string, std::less<>> asked_;
  std::vector<std::string> problems_;
};

}  // namespace surefoot
