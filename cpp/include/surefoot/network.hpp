// A network inside an environment: a learned model of muscles, a low-level controller, a reward model. It runs on the
// same kernels as policies; `surefoot.envs.network` gives the same bits in Python.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "surefoot/activation.hpp"

namespace surefoot {

/// Linear layers with activations between them. Envs and their copies share a network through a std::shared_ptr.
class Network {
 public:
  /// `sizes`: inputs, hidden layers and outputs. All weights are 0 before the first `set`.
  explicit Network(std::vector<std::size_t> sizes, Activation hidden = Activation::kTanh,
                   Activation output = Activation::kIdentity);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  std::size_t num_inputs() const { return sizes_.front(); }
  std::size_t num_outputs() const { return sizes_.back(); }
  /// Number of all weights [out, in] and biases [out], layer by layer, in the order of torch's `parameters_to_vector`.
  std::size_t num_values() const;

  /// Sets all weights and biases, rounded to float32. Throws std::invalid_argument and changes nothing if the count is
  /// wrong or a number is not finite. Do not call it while another thread runs the network.
  void set(std::span<const double> values);

  /// Computes `out` [rows, num_outputs] from `in` [rows, num_inputs]; each output row depends only on its input row.
  void run(std::size_t rows, const float* in, float* out) const;

 private:
  struct Layers;
  std::vector<std::size_t> sizes_;
  Activation hidden_, output_;
  std::unique_ptr<Layers> layers_;
};

}  // namespace surefoot
