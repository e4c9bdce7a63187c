// A critic that predicts one number per state, raw or in units of the return's standard deviation.
#include <algorithm>
#include <limits>

#include "linear_critic.hpp"

namespace surefoot {
namespace {

class ScalarCritic final : public LinearCritic {
 public:
  ScalarCritic(const PartPlan& plan, const Kernels& kernels) : LinearCritic(plan, 1, kernels) {}

  void value(std::size_t rows, MatrixView prediction, float* value) const override {
    decode(rows, prediction, value, 1);
  }

  void loss(const LearnedRows& rows, const ValueTargets& targets, float* loss,
            const GivenGradient& out) const override {
    const Units units = units_of(rows);
    const std::size_t stride = rows.given[0].stride;
    for (std::size_t row = 0; row < rows.count; ++row) {
      const float old = units.encoded(targets.old_prediction.data[row * targets.old_prediction.stride]);
      const Loss found =
          clipped_loss(rows.given[0].data[row * stride], old, units.encoded(targets.returns[row]), targets.clip);
      loss[row] = found.value;
      out.given[0][row * stride] = found.slope;
    }
    leave_statistics(rows.count, out);
  }

 private:
  struct Loss {
    float value, slope;
  };

  /// max((v - R)^2, (v_clipped - R)^2), with v_clipped within `clip` of the old value; at kinks, the gradient is that
  /// of torch. Comparisons with NaN are false, so a NaN reaches both results.
  static Loss clipped_loss(float prediction, float old, float target, float clip) {
    const float error = prediction - target, square = error * error;
    if (clip == std::numeric_limits<float>::infinity()) return {square, 2 * error};
    const float change = prediction - old;
    const float clipped_error = old + std::clamp(change, -clip, clip) - target;
    const float clipped_square = clipped_error * clipped_error;
    const float clipped_slope = 2 * clipped_error * (change >= -clip && change <= clip ? 1.0f : 0.0f);
    if (square > clipped_square) return {square, 2 * error};
    if (square < clipped_square) return {clipped_square, clipped_slope};
    return {clipped_square, 0.5f * (2 * error) + 0.5f * clipped_slope};
  }
};

const RegisteredPart<Critic, ScalarCritic> kScalar{"scalar"};

}  // namespace
}  // namespace surefoot
