// A head that the core does not have, added by this one file; tests/policies/laplace_head.py is its Python side.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "flat_tensors.hpp"
#include "made_up.hpp"
#include "surefoot/learner.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {
namespace {

/// Independent Laplace distributions of one scale: location from features, sampled by the inverse of their CDF.
class LaplaceHead final : public Head {
 public:
  LaplaceHead(const PartPlan& plan, const Kernels& kernels)
      : Head(kernels),
        layer_(plan.text("layer")),
        size_(plan.count("size")),
        scale_(static_cast<float>(plan.number("scale"))) {}

  std::size_t action_size() const override { return size_; }
  std::size_t noise_size() const override { return size_; }
  void check(TensorReader& tensors, std::size_t in) const override { tensors.check_linear(layer_, in, size_); }
  void pack(const TensorReader& tensors) override { location_.pack(kernels_, tensors, layer_); }

  void sample(const PartRows& rows, const bool*, const NoiseKey& key, const Sampled& out) const override {
    const MatrixView location = linear(location_, rows, 0), noise = drawn(rows, key, 1);
    for (std::size_t row = 0; row < rows.count; ++row) {
      float distance = 0;
      for (std::size_t j = 0; j < size_; ++j) {
        const float unit = noise.data[row * noise.stride + j];
        out.action[row * size_ + j] = location.data[row * location.stride + j] + scale_ * unit;
        distance += std::abs(unit);
      }
      out.log_prob[row] = -distance - static_cast<float>(size_) * std::log(2 * scale_);
    }
  }

  std::vector<Learned> layers() const override { return {{layer_, size_}}; }

  void evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const override {
    const float log_width = std::log(2 * scale_);
    for (std::size_t row = 0; row < rows.count; ++row) {
      float distance = 0;
      for (std::size_t j = 0; j < size_; ++j) distance += std::abs(from_location(rows, done, row, j)) / scale_;
      log_prob[row] = -distance - static_cast<float>(size_) * log_width;
      entropy[row] = static_cast<float>(size_) * (1 + log_width);
    }
  }

  void gradient(const LearnedRows& rows, const Done& done, const float* by_log_prob, const float*,
                const GivenGradient& out) const override {
    for (std::size_t row = 0; row < rows.count; ++row) {
      for (std::size_t j = 0; j < size_; ++j) {
        const float distance = from_location(rows, done, row, j);
        const float sign = distance > 0 ? 1.0f : distance < 0 ? -1.0f : distance;  // a NaN stays one
        out.given[0][row * rows.given[0].stride + j] = by_log_prob[row] * sign / scale_;
      }
    }
  }

 private:
  float from_location(const LearnedRows& rows, const Done& done, std::size_t row, std::size_t j) const {
    return done.action[row * size_ + j] - rows.given[0].data[row * rows.given[0].stride + j];
  }

  void shape_noise(std::size_t rows, float* uniforms) const override {
    for (std::size_t i = 0; i < rows * size_; ++i) {
      const double centered = static_cast<double>(uniforms[i]) - 0.5;
      const double magnitude = -std::log(std::max(1 - 2 * std::abs(centered), 1e-12));
      uniforms[i] = static_cast<float>(std::copysign(magnitude, centered));
    }
  }

  std::string layer_;
  std::size_t size_;
  float scale_;
  Layer location_;
};

const RegisteredPart<Head, LaplaceHead> kLaplace{"laplace"};

/// One observation of two numbers, straight into a Laplace head of two actions and a critic.
PolicyPlan laplace_plan() { return plain_plan(2, {"laplace", {{"layer", "location"}, {"size", 2.0}, {"scale", 0.5}}}); }

struct Acting {
  std::vector<float> action, log_prob, value;

  Acting(const Policy& policy, std::size_t rows, std::size_t first_row)
      : action(2 * rows), log_prob(rows), value(rows) {
    std::vector<float> obs(2 * rows);
    for (std::size_t i = 0; i < obs.size(); ++i) obs[i] = 0.25f * static_cast<float>(2 * first_row + i);
    const float* const leaf = obs.data();
    Workspace workspace;
    policy.act(rows, {&leaf, 1}, {}, nullptr, {7, 3, first_row, 0}, workspace,
               {action.data(), nullptr, log_prob.data(), value.data()});
  }
};

std::vector<NamedTensor> laplace_tensors() {
  static const float weight[] = {1, 2, -1, 0.5f}, bias[] = {0.25f, -0.5f}, value[] = {1, 1}, none[] = {0};
  return {{"location.weight", {2, 2}, weight},
          {"location.bias", {2}, bias},
          {"value.weight", {1, 2}, value},
          {"value.bias", {1}, none}};
}

TEST(a_head_from_one_file_acts_as_its_python_side_does) {
  for (const Kernels* kernels : available_kernels()) {
    Policy policy(laplace_plan(), *kernels);
    policy.sync(laplace_tensors());
    CHECK(!policy.is_discrete());
    CHECK_EQUAL(policy.mask_size(), 0);
    const Acting acted(policy, 3, 0);
    // tests/policies/test_native_parts.py asserts the same numbers of the Python side.
    CHECK_NEAR(acted.action, (std::vector<double>{0.794380, -2.934487, 2.608327, -1.014507, 2.210478, -2.001414}),
               2e-6);
    CHECK_NEAR(acted.log_prob, (std::vector<double>{-5.207733, -1.495667, -5.331872}), 2e-6);
    std::vector<float> env_action(6);
    policy.head().to_env(3, acted.action.data(), env_action.data());
    CHECK(env_action == acted.action);
  }
}

TEST(rows_of_a_head_from_one_file_do_not_depend_on_their_neighbors) {
  Policy policy(laplace_plan());
  policy.sync(laplace_tensors());
  const Acting all(policy, 70, 0), some(policy, 11, 30);
  CHECK(std::memcmp(some.action.data(), all.action.data() + 60, 22 * sizeof(float)) == 0);
  CHECK(std::memcmp(some.log_prob.data(), all.log_prob.data() + 30, 11 * sizeof(float)) == 0);
}

TEST(a_head_from_one_file_learns) {
  // Two samples with ratio 1: the gradient is -mean(advantage * d log-prob), by hand.
  for (const Kernels* kernels : available_kernels()) {
    FlatTensors flat(laplace_tensors());
    Learner learner(laplace_plan(), {{"surrogate"}}, flat.tensors, *kernels);
    const std::vector<float> obs{1, 2, -1, 0.5f}, nothing(2);
    // Locations are obs * weight + bias: (5.25, -0.5) and (0.25, 0.75); actions beside them, scale 0.5.
    const std::vector<float> action{6.25f, -1.0f, 0.0f, 1.0f}, advantage{2, -1};
    const std::vector<float> log_prob{-3.0f, -1.0f};  // -|distance| / 0.5 summed, and log(2 * 0.5) is 0
    const Update update = one_step({2,
                                    {obs.data()},
                                    action.data(),
                                    nullptr,
                                    nullptr,
                                    log_prob.data(),
                                    nothing.data(),
                                    1,
                                    advantage.data(),
                                    nothing.data()},
                                   {1});
    ThreadPool pool(1);
    const UpdateRecord record = learner.learn(update, flat.tensors, flat.memory, pool);
    CHECK_EQUAL(record.steps, 1);
    // d log-prob / d location is sign(distance) / 0.5: (2, -2) and (-2, 2). Times -advantage / 2: (-2, 2), (-1, 1).
    const std::vector<double> weight{-2 * 1 + -1 * -1, -2 * 2 + -1 * 0.5, 2 * 1 + 1 * -1, 2 * 2 + 1 * 0.5};
    CHECK_NEAR(std::vector<float>(flat.gradient.begin(), flat.gradient.begin() + 4), weight, 1e-6);
    CHECK_NEAR(std::vector<float>(flat.gradient.begin() + 4, flat.gradient.begin() + 6), (std::vector<double>{-3, 3}),
               1e-6);
    CHECK_NEAR(std::vector<float>(flat.values.begin() + 4, flat.values.begin() + 6), (std::vector<double>{0.35, -0.6}),
               1e-6);
  }
}

}  // namespace
}  // namespace surefoot
