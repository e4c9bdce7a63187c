// The GRU and LSTM layers of the learner from Python: named arrays; results are written to arrays that are passed in.
#include "surefoot/recurrence.hpp"

#include <vector>

#include "arrays.hpp"
#include "threads.hpp"

namespace surefoot {
namespace {

/// The named arrays of a pass, checked against its sizes: B samples, S sequences, H hidden.
class Arrays {
 public:
  Arrays(const nb::dict& arrays, std::size_t gates)
      : arrays_(arrays), steps_(step_sizes()), gates_(gates), hidden_(hidden_size()) {}

  /// The layer: with its bias for a forward pass, without for a backward pass.
  PooledRecurrence layer(Threads& threads, bool has_bias) const {
    const float* const weight = in("weight", {gates_ * hidden_, hidden_});
    const float* const bias = has_bias ? in("bias", {gates_ * hidden_}) : nullptr;
    return {steps_, gates_, hidden_, weight, bias, threads.pool()};
  }

  /// Copies the state after the last step of each sequence from the output of a pass.
  void copy_last(const float* states, float* last) const { surefoot::copy_last(steps_, hidden_, states, last); }

  std::size_t hidden() const { return hidden_; }
  const float* state(const char* name) const { return in(name, {steps_.sequences(), hidden_}); }
  MatrixView rows(const char* name, std::size_t gates = 1) const { return {samples(name, gates), gates * hidden_}; }
  const float* samples(const char* name, std::size_t gates = 1) const {
    return in(name, {steps_.samples(), gates * hidden_});
  }
  float* new_state(const char* name) const { return out(name, {steps_.sequences(), hidden_}); }
  float* new_samples(const char* name, std::size_t gates = 1) const {
    return out(name, {steps_.samples(), gates * hidden_});
  }

 private:
  const float* in(const char* name, const Shape& shape) const { return entry<const float>(arrays_, name, shape); }
  float* out(const char* name, const Shape& shape) const { return entry<float>(arrays_, name, shape); }

  std::vector<std::int64_t> step_sizes() const {
    nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> sizes;
    if (!arrays_.contains("batch_sizes") || !nb::try_cast(arrays_["batch_sizes"], sizes, false)) {
      throw nb::type_error("batch_sizes must be a C-contiguous int64 array of one dimension");
    }
    if (sizes.size() == 0) throw nb::value_error("batch_sizes must have at least one step");
    for (std::size_t step = 0; step < sizes.size(); ++step) {
      if (sizes.data()[step] < 1 || (step > 0 && sizes.data()[step] > sizes.data()[step - 1])) {
        throw nb::value_error("batch_sizes must be positive and not increase");
      }
    }
    return {sizes.data(), sizes.data() + sizes.size()};
  }

  std::size_t hidden_size() const {
    nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> state;
    if (!arrays_.contains("h0") || !nb::try_cast(arrays_["h0"], state, false) || state.shape(1) == 0) {
      throw nb::type_error("h0 must be a C-contiguous float32 array of shape [sequences, hidden]");
    }
    return state.shape(1);
  }

  const nb::dict& arrays_;
  PackedSteps steps_;
  std::size_t gates_;
  std::size_t hidden_;
};

void lstm_forward_of(const nb::dict& dict, Threads& threads) {
  const Arrays arrays(dict, 4);
  PooledRecurrence layer = arrays.layer(threads, true);
  const LstmForward pass{.gates_x = arrays.rows("gates_x", 4),
                         .h0 = arrays.state("h0"),
                         .c0 = arrays.state("c0"),
                         .gates = arrays.new_samples("gates", 4),
                         .h = arrays.new_samples("h"),
                         .c = arrays.new_samples("c")};
  float* const h_last = arrays.new_state("h_last");
  float* const c_last = arrays.new_state("c_last");
  const nb::gil_scoped_release released;
  layer.run(lstm_forward, pass);
  arrays.copy_last(pass.h, h_last);
  arrays.copy_last(pass.c, c_last);
}

void lstm_backward_of(const nb::dict& dict, Threads& threads) {
  const Arrays arrays(dict, 4);
  PooledRecurrence layer = arrays.layer(threads, false);
  const LstmBackward pass{.gates = arrays.samples("gates", 4),
                          .h0 = arrays.state("h0"),
                          .c0 = arrays.state("c0"),
                          .h = arrays.samples("h"),
                          .c = arrays.samples("c"),
                          .grad_h = arrays.rows("grad_h"),
                          .grad_h_last = arrays.state("grad_h_last"),
                          .grad_c_last = arrays.state("grad_c_last"),
                          .grad_gates = arrays.new_samples("grad_gates", 4),
                          .grad_stride = 4 * arrays.hidden(),
                          .h_before = arrays.new_samples("h_before"),
                          .grad_h0 = arrays.new_state("grad_h0"),
                          .grad_c0 = arrays.new_state("grad_c0")};
  const nb::gil_scoped_release released;
  layer.run(lstm_backward, pass);
}

void gru_forward_of(const nb::dict& dict, Threads& threads) {
  const Arrays arrays(dict, 3);
  PooledRecurrence layer = arrays.layer(threads, true);
  const GruForward pass{.gates_x = arrays.rows("gates_x", 3),
                        .h0 = arrays.state("h0"),
                        .gates = arrays.new_samples("gates", 4),
                        .h = arrays.new_samples("h")};
  float* const h_last = arrays.new_state("h_last");
  const nb::gil_scoped_release released;
  layer.run(gru_forward, pass);
  arrays.copy_last(pass.h, h_last);
}

void gru_backward_of(const nb::dict& dict, Threads& threads) {
  const Arrays arrays(dict, 3);
  PooledRecurrence layer = arrays.layer(threads, false);
  const GruBackward pass{.gates = arrays.samples("gates", 4),
                         .h0 = arrays.state("h0"),
                         .h = arrays.samples("h"),
                         .grad_h = arrays.rows("grad_h"),
                         .grad_h_last = arrays.state("grad_h_last"),
                         .grad_gates_x = arrays.new_samples("grad_gates_x", 3),
                         .grad_gates_h = arrays.new_samples("grad_gates_h", 3),
                         .grad_stride = 3 * arrays.hidden(),
                         .h_before = arrays.new_samples("h_before"),
                         .grad_h0 = arrays.new_state("grad_h0")};
  const nb::gil_scoped_release released;
  layer.run(gru_backward, pass);
}

}  // namespace
}  // namespace surefoot

void bind_recurrence(nanobind::module_& module) {
  using namespace nanobind::literals;
  using namespace surefoot;
  module.def("lstm_forward", &lstm_forward_of, "arrays"_a, "threads"_a,
             "States of an LSTM layer over packed sequences, and the intermediate results for backward.");
  module.def("lstm_backward", &lstm_backward_of, "arrays"_a, "threads"_a,
             "Gradients of `lstm_forward`'s gates and initial states, from which the weights' gradients follow.");
  module.def("gru_forward", &gru_forward_of, "arrays"_a, "threads"_a,
             "States of a GRU layer over packed sequences, and the intermediate results for backward.");
  module.def("gru_backward", &gru_backward_of, "arrays"_a, "threads"_a,
             "Gradients of `gru_forward`'s gates and initial states, from which the weights' gradients follow.");
}
