#include "surefoot/perceptron.hpp"

#include <algorithm>
#include <atomic>

#include "learning_threads.hpp"
#include "surefoot/layer.hpp"

namespace surefoot {

namespace {

/// Samples that go through all layers together: what they leave behind stays in the second-level cache.
constexpr std::size_t kBlock = 64;

std::size_t multiply_adds(const Perceptron& perceptron) {
  std::size_t weights = 0;
  for (const PerceptronLayer& layer : perceptron.layers) weights += layer.in * layer.out;
  return perceptron.samples * weights;
}

/// Call `work(begin, end)` for blocks of neighboring samples, on all threads.
template <class MakeWork>
void over_blocks(const Perceptron& perceptron, const MakeWork& make_work) {
  const std::size_t samples = perceptron.samples;
  std::atomic<std::size_t> next = 0;
  perceptron.pool.run(threads_worth(multiply_adds(perceptron)), [&](std::size_t) {
    auto work = make_work();
    for (std::size_t begin; (begin = next.fetch_add(kBlock)) < samples;) work(begin, std::min(begin + kBlock, samples));
  });
}

/// A block's rows through one layer and its nonlinearity.
void run_layer(const Perceptron& perceptron, const Layer& layer, std::size_t rows, MatrixView in, float* scratch,
               float* out) {
  const bool fits = layer.stride() == layer.out();
  float* const to = fits ? out : scratch;
  layer.run(perceptron.kernels, rows, in, to);
  perceptron.kernels.activate(perceptron.activation, to, rows * layer.stride());
  if (fits) return;
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(scratch + row * layer.stride(), layer.out(), out + row * layer.out());
  }
}

/// Gradients of what the layers give before their nonlinearities; as panels, [B, panel] each: so the products with what
/// the layers were given read them.
class Gradients {
 public:
  Gradients(const Perceptron& perceptron) : panel_(perceptron.kernels.panel), samples_(perceptron.samples) {
    for (const PerceptronLayer& layer : perceptron.layers) {
      panels_.emplace_back().resize(rounded_up(layer.out, panel_) * samples_);
    }
  }

  const float* panel(std::size_t layer, std::size_t index) const {
    return panels_[layer].data() + index * panel_ * samples_;
  }

  /// Take a row [stride], padded with zeros to whole panels.
  void put(std::size_t layer, std::size_t sample, const float* row, std::size_t stride) {
    for (std::size_t first = 0; first < stride; first += panel_) {
      std::copy_n(row + first, panel_, panels_[layer].data() + first * samples_ + sample * panel_);
    }
  }

 private:
  std::size_t panel_, samples_;
  std::vector<AlignedFloats> panels_;
};

/// From dL/d(output) of all samples to the gradients of every layer, layer by layer, for blocks of samples.
void propagate(const Perceptron& perceptron, const PerceptronBackward& pass, Gradients& gradients) {
  const Kernels& kernels = perceptron.kernels;
  std::vector<TransposedLayer> weights;
  for (const PerceptronLayer& layer : perceptron.layers) {
    weights.emplace_back(kernels, layer.in, layer.out, layer.weight);
  }
  over_blocks(perceptron, [&] {
    std::vector<AlignedFloats> before(perceptron.layers.size()), after(perceptron.layers.size());
    for (std::size_t i = 0; i < perceptron.layers.size(); ++i) {
      before[i].resize(kBlock * rounded_up(perceptron.layers[i].out, kernels.panel));
      after[i].resize(kBlock * weights[i].stride());
    }
    return [&, before = std::move(before), after = std::move(after)](std::size_t begin, std::size_t end) mutable {
      const std::size_t rows = end - begin;
      MatrixView gradient{pass.grad_output + begin * perceptron.layers.back().out, perceptron.layers.back().out};
      for (std::size_t i = perceptron.layers.size(); i-- > 0;) {
        const std::size_t out = perceptron.layers[i].out, stride = rounded_up(out, kernels.panel);
        for (std::size_t row = 0; row < rows; ++row) {
          float* const to = before[i].data() + row * stride;
          kernels.differentiate(perceptron.activation, pass.outputs[i] + (begin + row) * out,
                                gradient.data + row * gradient.stride, to, out);
          gradients.put(i, begin + row, to, stride);
        }
        if (i == 0 && pass.grad_inputs == nullptr) continue;
        weights[i].run(kernels, rows, {before[i].data(), stride}, after[i].data());
        gradient = {after[i].data(), weights[i].stride()};
      }
      if (pass.grad_inputs == nullptr) return;
      const std::size_t in = perceptron.layers.front().in;
      for (std::size_t row = 0; row < rows; ++row) {
        std::copy_n(gradient.data + row * gradient.stride, in, pass.grad_inputs + (begin + row) * in);
      }
    };
  });
}

/// Some neighboring outputs of a layer: what one thread sums up at a time.
struct Columns {
  std::size_t layer;
  std::size_t panel;
};

void sum_up(const Perceptron& perceptron, const PerceptronBackward& pass, const Gradients& gradients, Columns part) {
  const Kernels& kernels = perceptron.kernels;
  const PerceptronLayer& layer = perceptron.layers[part.layer];
  const float* const given = part.layer == 0 ? pass.inputs : pass.outputs[part.layer - 1];
  const float* const panel = gradients.panel(part.layer, part.panel);
  const std::size_t first = part.panel * kernels.panel, columns = std::min(kernels.panel, layer.out - first);
  AlignedFloats transposed, zeros;
  transposed.resize(layer.in * kernels.panel);
  zeros.resize(kernels.panel);
  kernels.linear_transposed({perceptron.samples, columns, panel, zeros.data()}, layer.in, {given, layer.in},
                            transposed.data(), kernels.panel);
  for (std::size_t column = 0; column < columns; ++column) {
    float* const to = pass.grad_weights[part.layer] + (first + column) * layer.in;
    for (std::size_t k = 0; k < layer.in; ++k) to[k] = transposed.data()[k * kernels.panel + column];
  }
  std::vector<double> sums(columns);  // in float, a million samples would cost half of the digits
  for (std::size_t sample = 0; sample < perceptron.samples; ++sample) {
    for (std::size_t column = 0; column < columns; ++column) sums[column] += panel[sample * kernels.panel + column];
  }
  float* const grad_bias = pass.grad_biases[part.layer] + first;
  for (std::size_t column = 0; column < columns; ++column) grad_bias[column] = static_cast<float>(sums[column]);
}

}  // namespace

void perceptron_forward(const Perceptron& perceptron, const PerceptronForward& pass) {
  std::vector<Layer> layers(perceptron.layers.size());
  std::size_t widest = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PerceptronLayer& given = perceptron.layers[i];
    layers[i].pack(perceptron.kernels, given.in, given.out, given.weight, given.bias);
    widest = std::max(widest, layers[i].stride());
  }
  over_blocks(perceptron, [&] {
    AlignedFloats scratch;
    scratch.resize(kBlock * widest);
    return [&, scratch = std::move(scratch)](std::size_t begin, std::size_t end) mutable {
      MatrixView in{pass.inputs + begin * perceptron.layers.front().in, perceptron.layers.front().in};
      for (std::size_t i = 0; i < layers.size(); ++i) {
        float* const out = pass.outputs[i] + begin * layers[i].out();
        run_layer(perceptron, layers[i], end - begin, in, scratch.data(), out);
        in = {out, layers[i].out()};
      }
    };
  });
}

void perceptron_backward(const Perceptron& perceptron, const PerceptronBackward& pass) {
  Gradients gradients(perceptron);
  propagate(perceptron, pass, gradients);
  std::vector<Columns> parts;
  for (std::size_t i = 0; i < perceptron.layers.size(); ++i) {
    const std::size_t panels = (perceptron.layers[i].out + perceptron.kernels.panel - 1) / perceptron.kernels.panel;
    for (std::size_t panel = 0; panel < panels; ++panel) parts.push_back({i, panel});
  }
  // The largest first, so that no thread is left with one when the others are done.
  std::stable_sort(parts.begin(), parts.end(), [&](const Columns& a, const Columns& b) {
    return perceptron.layers[a.layer].in > perceptron.layers[b.layer].in;
  });
  std::atomic<std::size_t> next = 0;
  perceptron.pool.run(threads_worth(multiply_adds(perceptron)), [&](std::size_t) {
    for (std::size_t i; (i = next.fetch_add(1)) < parts.size();) sum_up(perceptron, pass, gradients, parts[i]);
  });
}

}  // namespace surefoot
