// The learner's tensors by name, and everything that is wrong with them.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace surefoot {

/// A tensor of the learner, float32 and C-contiguous, under the name it has there.
struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  const float* data;
};

/// Size of something that is not known, because the tensor that says it is missing.
inline constexpr std::size_t kUnknownSize = static_cast<std::size_t>(-1);

class TensorReader {
 public:
  explicit TensorReader(std::span<const NamedTensor> tensors);

  /// Check a linear layer by prefix; gives the size of its output. `in` and `out` may be unknown.
  std::size_t check_linear(const std::string& prefix, std::size_t in, std::size_t out = kUnknownSize) {
    return check_linear(prefix + ".weight", prefix + ".bias", in, out);
  }
  /// The same by the names of both tensors.
  std::size_t check_linear(const std::string& weight_name, const std::string& bias_name, std::size_t in,
                           std::size_t out);
  /// Check that `name` has that shape.
  void check_shape(const std::string& name, const std::vector<std::size_t>& shape);
  /// Check that `name` has `size` elements, in whatever shape.
  void check_size(const std::string& name, std::size_t size);
  /// Throw all problems, including names that were never read.
  void throw_problems() const;

  /// A tensor that was checked.
  const NamedTensor& operator[](const std::string& name) const { return *tensors_.at(name); }

 private:
  const NamedTensor* find(const std::string& name);

  std::unordered_map<std::string_view, const NamedTensor*> tensors_;
  std::set<std::string, std::less<>> asked_;
  std::vector<std::string> problems_;
};

}  // namespace surefoot
