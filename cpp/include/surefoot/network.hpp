// A network inside an environment: a learned model of muscles, a low-level controller, a reward. It runs on the kernels
// that policies run on; `surefoot.envs.network` gives the same bits in Python.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "surefoot/activation.hpp"

namespace surefoot {

/// Linear layers with an activation between them. Envs share one through a std::shared_ptr: their copies do too.
class Network {
 public:
  /// `sizes`: inputs, hidden layers and outputs. All weights are 0 until they are set.
  explicit Network(std::vector<std::size_t> sizes, Activation hidden = Activation::kTanh,
                   Activation output = Activation::kIdentity);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  std::size_t num_inputs() const { return sizes_.front(); }
  std::size_t num_outputs() const { return sizes_.back(); }
  /// Of all weights [out, in] and biases [out], layer by layer, as torch's `parameters_to_vector` puts them in a row.
  std::size_t num_values() const;

  /// Numbers are rounded to float32. Throws std::invalid_argument of another count and of numbers that are not finite;
  /// then nothing is set. Not while another thread runs the network.
  void set(std::span<const double> values);

  /// From `in` [rows, num_inputs] to `out` [rows, num_outputs]; a row of the result depends only on its row of `in`.
  void run(std::size_t rows, const float* in, float* out) const;

 private:
  struct Layers;
  std::vector<std::size_t> sizes_;
  Activation hidden_, output_;
  std::unique_ptr<Layers> layers_;
};

}  // namespace surefoot
