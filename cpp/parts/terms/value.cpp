// The loss of the critic.
#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

class ValueTerm final : public Term {
 public:
  ValueTerm(const PartPlan& plan, const Kernels& kernels)
      : Term(kernels), clip_(static_cast<float>(plan.number("clip"))) {}

  void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
           const ObjectiveGradient& out) const override {
    const GivenGradient& own = rows.scratch;
    rows.critic.loss(rows.predicted, {rows.returns, rows.old_value, clip_}, measures[0], own);
    if (weight == 0) return;
    for (std::size_t i = 0; i < own.given.size(); ++i) {
      add(weight, own.given[i], rows.count * rows.predicted.given[i].stride, out.prediction.given[i]);
    }
    for (std::size_t i = 0; i < own.vectors.size(); ++i) {
      if (own.vectors[i] == nullptr) continue;  // it is not learned
      add(weight, own.vectors[i], rows.count * rows.vector_sizes[i], out.prediction.vectors[i]);
    }
  }

 private:
  static void add(float weight, const float* from, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i) to[i] += weight * from[i];
  }

  float clip_;
};

const RegisteredPart<Term, ValueTerm> kValue{"value"};

}  // namespace
}  // namespace surefoot
