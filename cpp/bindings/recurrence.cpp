// The GRU and LSTM layers of the learner from Python: named arrays; results are written to arrays that are passed in.
#include "surefoot/recurrence.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "entries.hpp"
#include "threads.hpp"

namespace surefoot {
namespace {

/// The named arrays of a pass, checked against its sizes: B samples, S sequences, H hidden.
class Arrays {
 public:
  Arrays(const nb::dict& arrays, const CellKind& kind)
      : arrays_(arrays), kind_(kind), steps_(step_sizes()), hidden_(hidden_size()), gates_(kind.num_gates * hidden_) {}

  /// The layer: with its bias for a forward pass, without for a backward pass.
  PooledRecurrence layer(Threads& threads, bool has_bias) const {
    const float* const weight = in("weight", {gates_, hidden_});
    return {kind_, steps_, hidden_, weight, has_bias ? in("bias", {gates_}) : nullptr, threads.pool()};
  }

  void forward(Threads& threads) const {
    const PooledRecurrence layer = this->layer(threads, true);
    CellPass pass{};
    pass.gates_x = {in("gates_x", samples(gates_)), gates_};
    StateTensors<float> last{};
    each_tensor([&](std::size_t tensor, const std::string& name) {
      pass.before[tensor] = in(name + "0", states());
      pass.states[tensor] = out(name, samples(hidden_));
      last[tensor] = out(name + "_last", states());
    });
    pass.kept = out("gates", samples(4 * hidden_));
    const nb::gil_scoped_release released;
    layer.run(pass);
    for (std::size_t tensor = 0; tensor < kind_.num_tensors; ++tensor) {
      copy_last(steps_, hidden_, pass.states[tensor], last[tensor]);
    }
  }

  void backward(Threads& threads) const {
    const PooledRecurrence layer = this->layer(threads, false);
    CellPass pass{};
    pass.kept = out("gates", samples(4 * hidden_));
    each_tensor([&](std::size_t tensor, const std::string& name) {
      pass.before[tensor] = in(name + "0", states());
      pass.states[tensor] = out(name, samples(hidden_));
      pass.grad_last[tensor] = in("grad_" + name + "_last", states());
      pass.grad_before[tensor] = out("grad_" + name + "0", states());
    });
    pass.grad_output = {in("grad_h", samples(hidden_)), hidden_};
    pass.grad_gates_x = out("grad_gates_x", samples(gates_));
    pass.grad_gates_past = kind_.has_one_gradient ? pass.grad_gates_x : out("grad_gates_h", samples(gates_));
    pass.grad_stride = gates_;
    pass.past = out("h_before", samples(hidden_));
    const nb::gil_scoped_release released;
    layer.run(pass);
  }

 private:
  const float* in(const std::string& name, const Shape& shape) const {
    return arrays_.array<const float>(name.c_str(), shape);
  }
  float* out(const std::string& name, const Shape& shape) const { return arrays_.array<float>(name.c_str(), shape); }
  Shape samples(std::size_t size) const { return {steps_.samples(), size}; }
  Shape states() const { return {steps_.sequences(), hidden_}; }

  template <class Visit>
  void each_tensor(const Visit& visit) const {
    constexpr const char* kNames[] = {"h", "c"};
    for (std::size_t tensor = 0; tensor < kind_.num_tensors; ++tensor) visit(tensor, kNames[tensor]);
  }

  std::vector<std::int64_t> step_sizes() const {
    const auto sizes = arrays_.numbers<const std::int64_t>("batch_sizes");
    if (sizes.empty()) throw nb::value_error("batch_sizes must have at least one step");
    if (sizes.back() < 1 || !std::is_sorted(sizes.rbegin(), sizes.rend())) {
      throw nb::value_error("batch_sizes must be positive and not increase");
    }
    return {sizes.begin(), sizes.end()};
  }

  std::size_t hidden_size() const {
    nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> state;
    if (!arrays_.has("h0") || !nb::try_cast(arrays_.alone("h0"), state, false) || state.shape(1) == 0) {
      throw nb::type_error("h0 must be a C-contiguous float32 array of shape [sequences, hidden]");
    }
    return state.shape(1);
  }

  Entries arrays_;
  CellKind kind_;
  PackedSteps steps_;
  std::size_t hidden_, gates_;
};

}  // namespace
}  // namespace surefoot

void bind_recurrence(nanobind::module_& module) {
  using namespace nanobind::literals;
  using namespace surefoot;
  const auto bind = [&](const std::string& name, const std::string& layer, CellKind (*kind)(const Kernels&)) {
    module.def((name + "_forward").c_str(),
               [kind](const nb::dict& arrays, Threads& threads) { Arrays(arrays, kind(kernels())).forward(threads); },
               "arrays"_a, "threads"_a,
               ("States of " + layer + " over packed sequences, and the intermediate results for backward.").c_str());
    module.def(
        (name + "_backward").c_str(),
        [kind](const nb::dict& arrays, Threads& threads) { Arrays(arrays, kind(kernels())).backward(threads); },
        "arrays"_a, "threads"_a,
        ("Gradients of `" + name + "_forward`'s gates and initial states, from which the weights' gradients follow.")
            .c_str());
  };
  bind("lstm", "an LSTM layer", &lstm_cells);
  bind("gru", "a GRU layer", &gru_cells);
}
