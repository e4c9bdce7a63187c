#include "encoder.hpp"

#include <utility>

namespace surefoot {

LearningEncoder::LearningEncoder(const Kernels& kernels, Activation activation, const PartPlan& plan,
                                 const TensorReader& tensors, Wire& in, std::deque<Dense>& all)
    : encoder_(make_part<Encoder>(plan, kernels)), in_(&in), size_(encoder_->own_size(in.value->size)) {
  for (EncoderTensor& tensor : encoder_->tensors()) {
    std::size_t size = 1;
    for (const std::size_t length : tensor.shape) size *= length;
    tensor.places.empty() ? tensors_.emplace_back(std::move(tensor.name), size)
                          : tensors_.emplace_back(std::move(tensor.name), tensor.columns, std::move(tensor.places));
  }
  if (size_) {
    const std::size_t padded = rounded_up(*size_, kernels.panel), kept = encoder_->kept_size();
    own_ = Matrix(*size_, padded);
    grad_ = Matrix(*size_, padded);
    kept_ = Matrix(kept, kept);
    own_wire_ = {&own_, tensors_.empty() ? nullptr : &grad_};
  }
  layers_.emplace(kernels, activation, MlpPlan{encoder_->layers()}, tensors, size_ ? own_wire_ : in, all);
}

void LearningEncoder::bind(const TensorReader& tensors, const FlatMemory& memory) {
  values_.clear();
  for (FreeVector& tensor : tensors_) {
    tensor.parameter.bind(tensors, memory);
    values_.push_back(tensor.parameter.value);
  }
}

void LearningEncoder::reserve(std::size_t rows) {
  for (FreeVector& tensor : tensors_) tensor.grad.reserve(rows);
  for (Matrix* matrix : {&kept_, &own_, &grad_}) matrix->reserve(rows);
  layers_->reserve(rows);
}

EncoderRows LearningEncoder::rows(Block block, Scratch scratch) {
  return {block.count, in_->value->view(block.first), values_, kept_.row(block.first), kept_.stride, scratch};
}

void LearningEncoder::forward(Block block, Scratch scratch) {
  if (size_) encoder_->forward(rows(block, scratch), own_.row(block.first), own_.stride);
  layers_->forward(block);
}

void LearningEncoder::backward(Block block, Scratch scratch) {
  layers_->backward(block);
  if (tensors_.empty()) return;
  std::vector<float*> grads;
  for (FreeVector& tensor : tensors_) grads.push_back(tensor.parameter.learns ? tensor.grad.row(block.first) : nullptr);
  encoder_->backward(rows(block, scratch), grad_.view(block.first), grads);
}

}  // namespace surefoot
