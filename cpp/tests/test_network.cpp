// Networks inside envs, and parameters that belong to the agent.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "check.hpp"
#include "surefoot/network.hpp"
#include "surefoot/rows.hpp"

namespace surefoot {
namespace {

std::vector<double> numbers(std::size_t count) {
  std::vector<double> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = std::sin(static_cast<double>(i + 1));
  return made;
}

TEST(a_row_of_a_network_depends_on_nothing_but_itself) {
  for (const auto& sizes : {std::vector<std::size_t>{3, 1}, {5, 33, 17}, {2, 64, 64, 4}}) {
    Network network(sizes, Activation::kElu, Activation::kTanh);
    network.set(numbers(network.num_values()));
    constexpr std::size_t kRows = 7;
    const std::vector<double> drawn = numbers(kRows * network.num_inputs());
    const std::vector<float> in(drawn.begin(), drawn.end());
    std::vector<float> all(kRows * network.num_outputs()), one(network.num_outputs());
    network.run(kRows, in.data(), all.data());
    for (std::size_t row = 0; row < kRows; ++row) {
      network.run(1, in.data() + row * network.num_inputs(), one.data());
      for (std::size_t i = 0; i < one.size(); ++i) CHECK_EQUAL(one[i], all[row * one.size() + i]);
    }
  }
}

TEST(a_network_refuses_what_makes_no_sense_and_keeps_what_it_had) {
  CHECK_THROWS(Network({3}), std::invalid_argument);
  CHECK_THROWS(Network({3, 0}), std::invalid_argument);
  Network network({1, 1});
  network.set(std::vector<double>{2.0, 1.0});
  CHECK_THROWS(network.set(std::vector<double>{1.0}), std::invalid_argument);
  CHECK_THROWS(network.set(std::vector<double>{1.0, 1e300}), std::invalid_argument);
  const float in = 3.0f;
  float out = 0.0f;
  network.run(1, &in, &out);
  CHECK_EQUAL(out, 7.0f);
}

/// Pays what its network gives.
class Paying final : public Cloned<Paying> {
 public:
  std::vector<ObsPart> obs_parts() const override { return {{"", {1}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(2); }
  std::vector<ParameterSpec> parameters() const override {
    return {ParameterSpec::number("wind", 0.0), ParameterSpec::of_agent("weights", {2}, {0.0, 0.0})};
  }
  void set_parameter(std::size_t index, std::span<const double> value) override {
    if (index == 1) network_->set(value);
  }
  void reset(Generator&) override {}
  Outcome step(const Action&) override {
    const float in = 1.0f;
    float out = 0.0f;
    network_->run(1, &in, &out);
    return {static_cast<double>(out), false};
  }
  void observe(double* obs) const override { *obs = 0.0; }
  std::size_t state_size() const override { return 0; }
  void save(double*) const override {}
  void load(StateReader&) override {}

 private:
  std::shared_ptr<Network> network_ = std::make_shared<Network>(std::vector<std::size_t>{1, 1});
};

TEST(a_parameter_of_the_agent_is_one_for_all_envs_and_not_in_their_states) {
  Rows rows(std::make_unique<Paying>(), 3, {});
  const std::vector<double> weights{2.0, 0.5};
  rows.set_parameter(0, 1, weights);
  const std::int64_t choice = 0;
  for (std::size_t env = 0; env < 3; ++env) {
    RowStep step{};
    rows.step(env, {{}, {&choice, 1}}, &step);
    CHECK_EQUAL(step.reward, 2.5);
    CHECK_EQUAL(rows.parameter(env, 1)[0], 2.0);
  }
  std::vector<double> state(rows.state_size());
  rows.save(0, state.data());
  const std::vector<double> others{1.0, 0.0};
  rows.set_parameter(0, 1, others);
  rows.load(0, state.data());
  CHECK_EQUAL(rows.parameter(0, 1)[0], 1.0);
  CHECK_EQUAL(rows.state_size(), Rows(std::make_unique<Paying>(), 1, {}).state_size());
  const std::vector<double> wrong{1.0, std::numeric_limits<double>::infinity()};
  CHECK_THROWS(rows.set_parameter(0, 1, wrong), std::invalid_argument);
  CHECK_EQUAL(rows.parameter(2, 1)[0], 1.0);
}

}  // namespace
}  // namespace surefoot
