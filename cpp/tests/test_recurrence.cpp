#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "check.hpp"
#include "same_bits.hpp"
#include "surefoot/recurrence.hpp"

namespace surefoot {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Everything a pass reads, by name; made up, but the same every time.
struct Inputs {
  PackedSteps steps;
  std::size_t hidden;
  std::size_t gates;  // 4: LSTM, 3: GRU
  std::map<std::string, Floats> of{};

  Inputs(std::vector<std::int64_t> sizes, std::size_t hidden_size, std::size_t gate_count)
      : steps(std::move(sizes)), hidden(hidden_size), gates(gate_count) {
    const std::size_t states = steps.sequences() * hidden;
    fill("gates_x", steps.samples() * gates * hidden, 1.0);
    fill("weight", gates * hidden * hidden, 1.0 / std::sqrt(static_cast<double>(hidden)));
    fill("bias", gates * hidden, 0.5);
    for (const char* name : {"h0", "c0", "grad_h_last", "grad_c_last"}) fill(name, states, 0.7);
    fill("grad_h", steps.samples() * hidden, 1.0);
  }

  void fill(const std::string& name, std::size_t count, double scale) {
    for (std::size_t i = 0; i < count; ++i) {
      of[name].push_back(static_cast<float>(scale * std::sin(1.7 * static_cast<double>(i + 31 * of.size()))));
    }
  }

  CellKind kind(const Kernels& set) const { return gates == 4 ? lstm_cells(set) : gru_cells(set); }
  PooledRecurrence layer(const Kernels& set, ThreadPool& threads, const float* bias) const {
    return {kind(set), steps, hidden, of.at("weight").data(), bias, threads, set};
  }
  MatrixView rows(const char* name, std::size_t width) const { return {of.at(name).data(), width * hidden}; }
};

using Outputs = std::map<std::string, Floats>;

Outputs run(const Inputs& given, const Kernels& set = kernels(), std::size_t threads = 1) {
  ThreadPool pool(threads);
  const std::size_t samples = given.steps.samples() * given.hidden, states = given.steps.sequences() * given.hidden;
  const std::vector<std::string> parts =
      given.gates == 4 ? std::vector<std::string>{"h", "c"} : std::vector<std::string>{"h"};
  Outputs made;
  const auto in = [&](const std::string& name) { return given.of.at(name).data(); };
  const auto out = [&](const std::string& name, std::size_t count) {
    made[name].resize(count);
    return made[name].data();
  };
  CellPass pass{};
  pass.gates_x = given.rows("gates_x", given.gates);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    pass.before[part] = in(parts[part] + "0");
    pass.states[part] = out(parts[part], samples);
    pass.grad_last[part] = in("grad_" + parts[part] + "_last");
    pass.grad_before[part] = out("grad_" + parts[part] + "0", states);
  }
  pass.kept = out("gates", 4 * samples);
  pass.grad_output = given.rows("grad_h", 1);
  pass.grad_gates_x = out("grad_gates_x", given.gates * samples);
  pass.grad_gates_past = parts.size() == 2 ? pass.grad_gates_x : out("grad_gates_h", given.gates * samples);
  pass.grad_stride = given.gates * given.hidden;
  pass.past = out("h_before", samples);
  given.layer(set, pool, in("bias")).run(pass);
  for (const std::string& part : parts) {
    copy_last(given.steps, given.hidden, made.at(part).data(), out(part + "_last", states));
  }
  given.layer(set, pool, nullptr).run(pass);
  if (parts.size() == 2) made["grad_gates_h"] = made["grad_gates_x"];
  return made;
}

/// The formulas in double, one number after the other: h of every sample, and the loss that the gradients are of.
struct Plain {
  Doubles h{};
  double loss = 0.0;
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

Plain plain(const Inputs& given, const std::map<std::string, Doubles>& of) {
  const std::size_t hidden = given.hidden, gates = given.gates;
  Plain result;
  Doubles h = of.at("h0"), c = of.at("c0");
  for (std::size_t step = 0; step < given.steps.count(); ++step) {
    for (std::size_t row = 0; row < given.steps.size(step); ++row) {
      const std::size_t sample = given.steps.first(step) + row;
      const Doubles before(h.begin() + static_cast<std::ptrdiff_t>(row * hidden),
                           h.begin() + static_cast<std::ptrdiff_t>((row + 1) * hidden));
      for (std::size_t unit = 0; unit < hidden; ++unit) {
        Doubles x(gates), state(gates);
        for (std::size_t gate = 0; gate < gates; ++gate) {
          const std::size_t i = gate * hidden + unit;
          x[gate] = of.at("gates_x")[sample * gates * hidden + i];
          state[gate] = of.at("bias")[i];
          for (std::size_t k = 0; k < hidden; ++k) state[gate] += of.at("weight")[i * hidden + k] * before[k];
        }
        const std::size_t at = row * hidden + unit;
        if (gates == 4) {
          c[at] = sigmoid(x[1] + state[1]) * c[at] + sigmoid(x[0] + state[0]) * std::tanh(x[2] + state[2]);
          h[at] = sigmoid(x[3] + state[3]) * std::tanh(c[at]);
        } else {
          const double r = sigmoid(x[0] + state[0]), z = sigmoid(x[1] + state[1]);
          h[at] = (1 - z) * std::tanh(x[2] + r * state[2]) + z * before[unit];
        }
        result.h.push_back(h[at]);
        result.loss += of.at("grad_h")[sample * hidden + unit] * h[at];
      }
    }
  }
  for (std::size_t i = 0; i < h.size(); ++i) {
    result.loss += of.at("grad_h_last")[i] * h[i];
    if (gates == 4) result.loss += of.at("grad_c_last")[i] * c[i];
  }
  return result;
}

std::map<std::string, Doubles> in_double(const Inputs& given) {
  std::map<std::string, Doubles> of;
  for (const auto& [name, values] : given.of) of[name] = Doubles(values.begin(), values.end());
  return of;
}

/// By central differences of the plain formulas.
Doubles gradient(const Inputs& given, const std::string& name) {
  std::map<std::string, Doubles> of = in_double(given);
  Doubles result;
  for (double& value : of.at(name)) {
    const double kept = value, change = 1e-5;
    value = kept + change;
    const double more = plain(given, of).loss;
    value = kept - change;
    result.push_back((more - plain(given, of).loss) / (2 * change));
    value = kept;
  }
  return result;
}

/// What a learner makes of a pass: the gradient of the weights.
Doubles weight_gradient(const Inputs& given, const Outputs& made) {
  const std::size_t hidden = given.hidden, width = given.gates * hidden;
  Doubles result(width * hidden, 0.0);
  for (std::size_t sample = 0; sample < given.steps.samples(); ++sample) {
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t k = 0; k < hidden; ++k) {
        result[i * hidden + k] +=
            static_cast<double>(made.at("grad_gates_h")[sample * width + i]) * made.at("h_before")[sample * hidden + k];
      }
    }
  }
  return result;
}

void over_cases(const std::function<void(const Inputs&)>& check) {
  for (const std::size_t gates : {3, 4}) {
    for (const std::size_t hidden : {1, 3, 8, 17}) {
      for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{1}, {1, 1, 1}, {4}, {7, 7}, {5, 3, 3, 1}}) {
        check(Inputs(sizes, hidden, gates));
      }
    }
  }
}

TEST(recurrence_gives_what_the_formulas_say) {
  over_cases([](const Inputs& given) {
    const Doubles expected = plain(given, in_double(given)).h;
    for (const Kernels* set : available_kernels()) {
      const Outputs made = run(given, *set);
      CHECK_NEAR(made.at("h"), expected, 2e-6);
    }
  });
}

TEST(recurrence_gradients_are_those_of_the_formulas) {
  over_cases([](const Inputs& given) {
    if (given.hidden > 8) return;  // differences are slow
    const Doubles gates_x = gradient(given, "gates_x"), weight = gradient(given, "weight"), h0 = gradient(given, "h0");
    for (const Kernels* set : available_kernels()) {
      const Outputs made = run(given, *set);
      CHECK_NEAR(made.at("grad_gates_x"), gates_x, 1e-5);
      CHECK_NEAR(weight_gradient(given, made), weight, 2e-5);
      CHECK_NEAR(made.at("grad_h0"), h0, 1e-5);
      if (given.gates == 4) CHECK_NEAR(made.at("grad_c0"), gradient(given, "c0"), 1e-5);
    }
  });
}

TEST(recurrence_keeps_the_last_state_of_every_sequence) {
  const Inputs given({3, 2, 2}, 2, 3);
  const Outputs made = run(given);
  const Floats& h = made.at("h");
  const Floats expected{h[10], h[11], h[12], h[13], h[4], h[5]};  // samples 5 and 6, and 2
  CHECK_EQUAL(made.at("h_last"), expected);
}

TEST(recurrence_does_not_depend_on_threads) {
  std::vector<std::int64_t> sizes(40, 45);
  for (std::size_t step = 10; step < sizes.size(); ++step) sizes[step] = static_cast<std::int64_t>(50 - step);
  for (const std::size_t gates : {3, 4}) {
    const Inputs given(sizes, 96, gates);
    const Outputs alone = run(given);
    for (const std::size_t threads : {2, 3, 7}) CHECK(run(given, kernels(), threads) == alone);
  }
}

TEST(recurrence_of_a_sequence_does_not_depend_on_others) {
  for (const std::size_t gates : {3, 4}) {
    Inputs many({6, 6, 6}, 33, gates), one({1, 1, 1}, 33, gates);
    const std::size_t row = 4, states = 33;
    const auto take = [&](const char* name, std::size_t width, std::size_t step) {
      std::copy_n(many.of[name].data() + (step * 6 + row) * width, width, one.of[name].data() + step * width);
    };
    for (const char* name : {"h0", "c0", "grad_h_last", "grad_c_last"}) take(name, states, 0);
    for (std::size_t step = 0; step < 3; ++step) take("gates_x", gates * states, step);
    for (std::size_t step = 0; step < 3; ++step) take("grad_h", states, step);
    const Outputs whole = run(many), alone = run(one);
    for (std::size_t step = 0; step < 3; ++step) {
      const float* const found = whole.at("grad_gates_x").data() + (step * 6 + row) * gates * states;
      const float* const expected = alone.at("grad_gates_x").data() + step * gates * states;
      CHECK(std::equal(found, found + gates * states, expected));
    }
  }
}

TEST(packed_steps_are_shared_by_samples) {
  const PackedSteps steps({6, 2, 2, 1, 1, 1});  // lengths 6, 3, 1, 1, 1, 1
  CHECK_EQUAL(steps.samples(), 13);
  CHECK_EQUAL(steps.first(2), 8);
  CHECK_EQUAL(steps.shares(1), (std::vector<std::size_t>{0, 6}));
  CHECK_EQUAL(steps.shares(2), (std::vector<std::size_t>{0, 2, 6}));
  CHECK_EQUAL(PackedSteps({2}).shares(5), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(instructions_agree_on_recurrent_layers) {
  for (const std::size_t gates : {3, 4}) {
    for (const std::size_t hidden : {1, 9, 32, 65}) {
      const Inputs given({5, 5, 4, 2, 1}, hidden, gates);
      check_same_bits([&](const Kernels& set) {
        Floats all;
        for (const auto& [name, values] : run(given, set)) all.insert(all.end(), values.begin(), values.end());
        return all;
      });
    }
  }
}

}  // namespace
}  // namespace surefoot
