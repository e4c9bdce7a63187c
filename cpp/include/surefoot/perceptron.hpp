// Multilayer perceptrons, forward and backward, for the learner.
//
// What a sample gives depends on nothing but that sample, and sums over samples are always taken in the same order: so
// results are the same for any number of threads.
#pragma once

#include <cstddef>
#include <vector>

#include "surefoot/kernels.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {

/// One layer, followed by the nonlinearity: weight [out, in], bias [out].
struct PerceptronLayer {
  std::size_t in;
  std::size_t out;
  const float* weight;
  const float* bias;
};

struct Perceptron {
  std::vector<PerceptronLayer> layers;
  Activation activation;
  std::size_t samples;  // B
  ThreadPool& pool;     // little work takes few of its threads
  const Kernels& kernels = surefoot::kernels();
};

struct PerceptronForward {
  const float* inputs;          // [B, in]
  std::vector<float*> outputs;  // of every layer, after its nonlinearity: [B, out]
};

struct PerceptronBackward {
  const float* inputs;
  std::vector<const float*> outputs;
  const float* grad_output;          // of the last layer, [B, out]
  std::vector<float*> grad_weights;  // [out, in] each
  std::vector<float*> grad_biases;
  float* grad_inputs;  // [B, in], or null
};

void perceptron_forward(const Perceptron& perceptron, const PerceptronForward& pass);

/// The activation's slope has to show in what it gave.
void perceptron_backward(const Perceptron& perceptron, const PerceptronBackward& pass);

}  // namespace surefoot
