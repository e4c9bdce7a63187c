// The loss of the critic.
#include <limits>

#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

class ValueTerm final : public Term {
 public:
  ValueTerm(const PartPlan& plan, const Kernels& kernels)
      : Term(kernels), clip_(static_cast<float>(plan.number("clip"))) {}

  bool takes_old_predictions() const override { return clip_ < std::numeric_limits<float>::infinity(); }

  /// The mean of the critics' losses.
  void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
           const ObjectiveGradient&) const override {
    const float share = 1.0f / static_cast<float>(rows.critics.size());
    float* const loss = measures[0];
    for (std::size_t i = 0; i < rows.critics.size(); ++i) {
      const CriticRows& own = rows.critics[i];
      float* const of_critic = i == 0 ? loss : own.predicted.scratch.floats(kLossSlot, rows.count);
      own.critic.loss(own.predicted, {rows.returns, own.old_prediction, clip_}, of_critic, own.scratch);
      for (std::size_t row = 0; row < rows.count; ++row) {
        loss[row] = i == 0 ? loss[row] * share : loss[row] + of_critic[row] * share;
      }
      if (weight != 0) add_gradient(own.predicted, weight * share, own);
    }
  }

 private:
  static constexpr std::size_t kLossSlot = 6;  // critics use the slots before

  float clip_;
};

const RegisteredPart<Term, ValueTerm> kValue{"value"};

}  // namespace
}  // namespace surefoot
