// An encoder that the core does not have, added by this one file; tests/policies/radial_encoder.py is its Python side.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "flat_tensors.hpp"
#include "made_up.hpp"
#include "surefoot/learner.hpp"
#include "surefoot/parts/encoder.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {
namespace {

/// Radial basis functions: how near the observation is to centers, which are learned.
class RadialEncoder final : public Encoder {
 public:
  RadialEncoder(const PartPlan& plan, const Kernels& kernels)
      : Encoder(kernels), name_(plan.text("name")), centers_(plan.count("centers")), size_(plan.count("size")) {}

  std::optional<std::size_t> own_size(std::size_t in) const override {
    if (in != size_) throw std::invalid_argument("the centers have another size than the observation");
    return centers_;
  }
  std::vector<EncoderTensor> tensors() const override { return {{name_ + ".centers", {centers_, size_}}}; }
  std::size_t kept_size() const override { return centers_; }  // what it gave

  void forward(const EncoderRows& rows, float* out, std::size_t stride) const override {
    for (std::size_t row = 0; row < rows.count; ++row) {
      for (std::size_t center = 0; center < centers_; ++center) {
        float square = 0;
        for (std::size_t i = 0; i < size_; ++i) square += offset(rows, row, center, i) * offset(rows, row, center, i);
        rows.kept[row * rows.kept_stride + center] = out[row * stride + center] = std::exp(-square);
      }
    }
  }

  void backward(const EncoderRows& rows, MatrixView grad, std::span<float* const> grad_tensors) const override {
    if (grad_tensors[0] == nullptr) return;
    for (std::size_t row = 0; row < rows.count; ++row) {
      for (std::size_t center = 0; center < centers_; ++center) {
        const float slope = 2 * grad.data[row * grad.stride + center] * rows.kept[row * rows.kept_stride + center];
        for (std::size_t i = 0; i < size_; ++i) {
          grad_tensors[0][(row * centers_ + center) * size_ + i] = slope * offset(rows, row, center, i);
        }
      }
    }
  }

 private:
  float offset(const EncoderRows& rows, std::size_t row, std::size_t center, std::size_t i) const {
    return rows.obs.data[row * rows.obs.stride + i] - rows.tensors[0][center * size_ + i];
  }

  std::string name_;
  std::size_t centers_, size_;  // how many, and the numbers of each
};

const RegisteredPart<Encoder, RadialEncoder> kRadial{"radial"};

/// One observation of two numbers, three centers, two choices.
PolicyPlan radial_plan() {
  const PartPlan radial{"radial", {{"name", "radial"}, {"centers", 3.0}, {"size", 2.0}}};
  return plain_plan(2, categorical("logits", 2), radial);
}

std::vector<NamedTensor> radial_tensors() {
  static const float centers[] = {0.5f, 1, -0.5f, 0, 1, 2.5f}, weight[] = {0.5f, -1, 0.25f, 1, 0.5f, -0.75f};
  static const float bias[] = {0.1f, -0.2f}, value[] = {1, 1, 1}, none[] = {0};
  return {{"radial.centers", {3, 2}, centers},
          {"logits.weight", {2, 3}, weight},
          {"logits.bias", {2}, bias},
          {"value.weight", {1, 3}, value},
          {"value.bias", {1}, none}};
}

// tests/policies/test_native_parts.py asserts the same numbers of the Python side.
const std::vector<float> kObs{1, 2, -1, 0.5f};

TEST(an_encoder_from_one_file_acts_as_its_python_side_does) {
  for (const Kernels* kernels : available_kernels()) {
    Policy policy(radial_plan(), *kernels);
    policy.sync(radial_tensors());
    const float* const leaf = kObs.data();
    std::vector<float> value(2);
    Workspace workspace;
    policy.value(2, {&leaf, 1}, {}, workspace, value.data());
    CHECK_NEAR(value, (std::vector<double>{1.067236, 0.688951}), 2e-6);  // the sums of the features
  }
}

TEST(an_encoder_from_one_file_learns) {
  for (const Kernels* kernels : available_kernels()) {
    FlatTensors flat(radial_tensors());
    Learner learner(radial_plan(), {{"surrogate"}}, flat.tensors, *kernels);
    const std::vector<std::int64_t> choice{1, 0};
    const std::vector<float> log_prob{-1.2644774f, -1.0703859f}, advantage{2, -1}, nothing(2);
    const Update update = one_step({2,
                                    {kObs.data()},
                                    nullptr,
                                    choice.data(),
                                    nullptr,
                                    log_prob.data(),
                                    nothing.data(),
                                    1,
                                    advantage.data(),
                                    nothing.data()},
                                   {1});
    ThreadPool pool(1);
    CHECK_EQUAL(learner.learn(update, flat.tensors, flat.memory, pool).steps, 1);
    CHECK_NEAR(std::vector<float>(flat.gradient.begin(), flat.gradient.begin() + 6),
               (std::vector<double>{-0.0623448, -0.1921146, 0.2926904, -0.3072362, -0.0004409, -0.5593186}), 2e-6);
  }
}

}  // namespace
}  // namespace surefoot
