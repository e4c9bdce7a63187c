#include "surefoot/tensor_reader.hpp"

#include <algorithm>
#include <stdexcept>

namespace surefoot {

namespace {

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i ? ", " : "") + (shape[i] == kUnknownSize ? std::string("any") : std::to_string(shape[i]));
  }
  return text + "]";
}

std::string misshapen(const NamedTensor& tensor, const std::vector<std::size_t>& expected) {
  return tensor.name + " has shape " + shape_text(tensor.shape) + ", not " + shape_text(expected);
}

bool matches(std::size_t size, std::size_t expected) { return expected == kUnknownSize || size == expected; }

}  // namespace

TensorReader::TensorReader(std::span<const NamedTensor> tensors) {
  for (const NamedTensor& tensor : tensors) tensors_[tensor.name] = &tensor;
}

std::size_t TensorReader::check_linear(const std::string& weight_name, const std::string& bias_name, std::size_t in,
                                       std::size_t out) {
  const NamedTensor* const weight = find(weight_name);
  const NamedTensor* const bias = find(bias_name);
  if (weight) {
    const std::vector<std::size_t>& shape = weight->shape;
    if (shape.size() != 2 || shape[0] == 0 || !matches(shape[0], out) || !matches(shape[1], in)) {
      problems_.push_back(misshapen(*weight, {out, in}));
    } else {
      out = shape[0];
    }
  }
  if (bias && (bias->shape.size() != 1 || !matches(bias->shape[0], out))) {
    problems_.push_back(misshapen(*bias, {out}));
  }
  return out;
}

void TensorReader::check_shape(const std::string& name, const std::vector<std::size_t>& shape) {
  const NamedTensor* const tensor = find(name);
  if (tensor && tensor->shape != shape) problems_.push_back(misshapen(*tensor, shape));
}

void TensorReader::check_size(const std::string& name, std::size_t size) {
  const NamedTensor* const tensor = find(name);
  if (!tensor) return;
  std::size_t found = 1;
  for (const std::size_t length : tensor->shape) found *= length;
  if (found != size) {
    problems_.push_back(name + " has " + std::to_string(found) + " elements, not " + std::to_string(size));
  }
}

void TensorReader::throw_problems() const {
  std::vector<std::string> problems = problems_;
  for (const auto& [name, tensor] : tensors_) {
    if (!asked_.contains(name)) problems.push_back("unknown " + tensor->name);
  }
  if (problems.empty()) return;
  std::sort(problems.begin() + static_cast<std::ptrdiff_t>(problems_.size()), problems.end());
  std::string message = "the tensors do not fit the policy: ";
  for (std::size_t i = 0; i < problems.size(); ++i) message += (i ? "; " : "") + problems[i];
  throw std::invalid_argument(message);
}

const NamedTensor* TensorReader::find(const std::string& name) {
  asked_.insert(name);
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  const std::string problem = "missing " + name;
  if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) problems_.push_back(problem);
  return nullptr;
}

}  // namespace surefoot
