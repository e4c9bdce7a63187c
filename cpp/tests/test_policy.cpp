// Policies against numbers worked out by hand; how they compare with torch's is tested from Python.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "made_up.hpp"
#include "surefoot/kernels.hpp"
#include "surefoot/philox.hpp"
#include "surefoot/policy.hpp"

using namespace surefoot;

namespace {

/// 2 inputs -> 1 hidden (relu) -> 2 choices, and 2 inputs -> V.
struct Tiny {
  PolicyPlan plan;
  std::vector<float> hidden{2.0f, -1.0f}, hidden_bias{0.5f}, logits{1.0f, -1.0f}, logits_bias{0.0f, 0.0f};
  std::vector<float> value{3.0f, 4.0f}, value_bias{-1.0f};

  Tiny() {
    plan.obs = {{"", 2, "", std::numeric_limits<float>::infinity()}};
    plan.activation = Activation::kRelu;
    plan.actor = {{{0}}, {{"hidden"}}};
    plan.critic = {{{0}}, {}};
    plan.head = categorical("logits", 2);
    plan.values = {{scalar("value")}};
  }

  std::vector<NamedTensor> tensors() const {
    return {{"hidden.weight", {1, 2}, hidden.data()}, {"hidden.bias", {1}, hidden_bias.data()},
            {"logits.weight", {2, 1}, logits.data()}, {"logits.bias", {2}, logits_bias.data()},
            {"value.weight", {1, 2}, value.data()},   {"value.bias", {1}, value_bias.data()}};
  }
};

}  // namespace

TEST(a_tiny_policy_by_hand) {
  for (const Kernels* kernels : available_kernels()) {
    const Tiny tiny;
    Policy policy(tiny.plan, *kernels);
    policy.sync(tiny.tensors());
    const float obs[] = {1.0f, 1.0f};
    const float* const leaves[] = {obs};
    std::int64_t choice = -1;
    float log_prob = 0;
    float value = 0;
    Workspace workspace;
    policy.act(1, leaves, {}, nullptr, {7, 3, 0, 0}, workspace, {nullptr, &choice, &log_prob, &value});
    // Hidden relu(2 - 1 + 0.5) = 1.5, logits (1.5, -1.5): the first choice has probability 1 / (1 + exp(-3)).
    const double first = 1 / (1 + std::exp(-3.0));
    float drawn;
    uniforms(7, 3, 0, 1, 1, 0, &drawn);
    CHECK_EQUAL(choice, drawn < first ? 0 : 1);
    CHECK_NEAR(log_prob, std::log(choice == 0 ? first : 1 - first), 1e-6);
    CHECK_NEAR(value, 6.0f, 1e-6);
    const bool only_second[] = {false, true};
    policy.act(1, leaves, {}, only_second, {7, 3, 0, 0}, workspace, {nullptr, &choice, &log_prob, &value});
    CHECK_EQUAL(choice, 1);
    CHECK_EQUAL(log_prob, 0.0f);
  }
}

TEST(philox_of_the_published_test_vectors) {
  const auto zeros = philox({0, 0, 0, 0}, {0, 0});
  CHECK_EQUAL(zeros[0], 0x6627e8d5u);
  CHECK_EQUAL(zeros[1], 0xe169c58du);
  CHECK_EQUAL(zeros[2], 0xbc57ac4cu);
  CHECK_EQUAL(zeros[3], 0x9b00dbd8u);
}

TEST(uniforms_are_the_words_of_philox_on_every_instruction_set) {
  for (const Kernels* kernels : available_kernels()) {
    std::vector<float> drawn(37 * 6);
    kernels->uniforms({0x123456789abcdefull, 9, 4000000000ull, 2, 37, 6}, drawn.data());
    for (std::uint32_t row = 0; row < 37; ++row) {
      for (std::uint32_t j = 0; j < 6; ++j) {
        const auto words = philox({j / 4, 9, 4000000000u + row, 2}, {0x89abcdefu, 0x01234567u});
        CHECK_EQUAL(drawn[row * 6 + j], static_cast<float>(words[j % 4] >> 8) * 0x1p-24f);
      }
    }
  }
}

TEST(tanh_keeps_signs_and_saturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Kernels* kernels : available_kernels()) {
    const std::vector<float> in{0.0f, -0.0f, 1e-40f, -1e-20f, 0.5f, -0.5f, 9.1f, -30.0f, infinity, -infinity};
    std::vector<float> out(in.size());
    kernels->tanh(in.data(), out.data(), in.size());
    CHECK(!std::signbit(out[0]) && std::signbit(out[1]));
    CHECK_EQUAL(out[2], in[2]);
    CHECK_EQUAL(out[3], in[3]);
    CHECK_NEAR(out[4], std::tanh(0.5), 1.5e-7);
    CHECK_EQUAL(out[5], -out[4]);
    CHECK((std::vector<float>(out.begin() + 6, out.end()) == std::vector<float>{1, -1, 1, -1}));
    float nan = std::nanf("");
    kernels->tanh(&nan, &nan, 1);
    CHECK(std::isnan(nan));
  }
}

TEST(exp_and_log_over_their_range) {
  for (const Kernels* kernels : available_kernels()) {
    for (float x = -100; x < 88; x += 0.37f) {
      float grown;
      float back;
      kernels->exp(&x, &grown, 1);
      // Subnormal results have fewer digits.
      CHECK_NEAR(grown / std::exp(static_cast<double>(x)), 1.0, x < -87 ? 0.1 : 1.5e-7);
      kernels->log(&grown, &back, 1);
      CHECK_NEAR(back, std::log(static_cast<double>(grown)), 1e-5);
    }
  }
}

TEST(sync_names_everything_that_does_not_fit_and_changes_nothing) {
  const Tiny tiny;
  Policy policy(tiny.plan);
  auto wrong = tiny.tensors();
  wrong[0].shape = {1, 3};
  wrong[5].name = "valeu.bias";
  const std::string message = testing::refusal_of([&] { policy.sync(wrong); });
  CHECK(message.find("hidden.weight has shape [1, 3], not [any, 2]") != std::string::npos);
  CHECK(message.find("missing value.bias") != std::string::npos);
  CHECK(message.find("unknown valeu.bias") != std::string::npos);
  CHECK(!policy.is_synced());
}

TEST(a_policy_without_weights_does_not_act) {
  const Policy policy(Tiny().plan);
  Workspace workspace;
  float value;
  CHECK_THROWS(policy.value(1, {}, {}, workspace, &value), std::logic_error);
}

TEST(plans_that_contradict_themselves) {
  Tiny tiny;
  tiny.plan.actor.encoders[0].obs = 1;
  CHECK_THROWS(Policy(tiny.plan), std::invalid_argument);
}

TEST(workspaces_grow_and_keep_their_buffers) {
  Workspace workspace;
  float* const first = workspace.floats(2, 100);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  CHECK(workspace.floats(2, 50) == first);
  workspace.floats(2, 1000)[999] = 1;
}
