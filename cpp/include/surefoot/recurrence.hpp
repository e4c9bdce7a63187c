// GRU and LSTM layers over many sequences, forward and backward, for the learner.
//
// Results of a sequence depend on nothing but that sequence, so they are the same for any number of threads.
#pragma once

#include <cstddef>

#include "surefoot/kernels.hpp"
#include "surefoot/packed_steps.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {

/// A layer's recurrent part: weight [gates * hidden, hidden], bias [gates * hidden].
struct Recurrence {
  const PackedSteps& steps;
  std::size_t hidden;
  const float* weight;
  const float* bias;  // backward needs none
  ThreadPool& pool;   // little work takes few of its threads
  const Kernels& kernels = surefoot::kernels();
};

// B samples, S sequences, H hidden. `gates` is what backward needs: [B, 4 * H].

struct LstmForward {
  const float* gates_x;  // [B, 4 * H]
  const float* h0;       // [S, H]
  const float* c0;
  float* gates;
  float* h;  // [B, H]
  float* c;
  float* h_last;  // [S, H]
  float* c_last;
};

struct LstmBackward {
  const float* gates;
  const float* h0;
  const float* c0;
  const float* h;
  const float* c;
  const float* grad_h;  // [B, H]
  const float* grad_h_last;
  const float* grad_c_last;
  float* grad_gates;  // [B, 4 * H]: of gates_x, and of the same made of the weights here
  float* h_before;    // [B, H]: the states that the weights were multiplied with
  float* grad_h0;     // [S, H]
  float* grad_c0;
};

struct GruForward {
  const float* gates_x;  // [B, 3 * H]
  const float* h0;
  float* gates;
  float* h;
  float* h_last;
};

struct GruBackward {
  const float* gates;
  const float* h0;
  const float* h;
  const float* grad_h;
  const float* grad_h_last;
  float* grad_gates_x;  // [B, 3 * H]
  float* grad_gates_h;  // [B, 3 * H]: of weight * h_before + bias
  float* h_before;
  float* grad_h0;
};

void lstm_forward(const Recurrence& layer, const LstmForward& pass);
void lstm_backward(const Recurrence& layer, const LstmBackward& pass);
void gru_forward(const Recurrence& layer, const GruForward& pass);
void gru_backward(const Recurrence& layer, const GruBackward& pass);

}  // namespace surefoot
