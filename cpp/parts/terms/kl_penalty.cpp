// A penalty on the KL divergence KL(old policy, new policy), estimated as r - 1 - log r from samples of the old policy.
#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

class KlPenaltyTerm final : public Term {
 public:
  KlPenaltyTerm(const PartPlan&, const Kernels& kernels) : Term(kernels) {}

  void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
           const ObjectiveGradient& out) const override {
    float* const loss = measures[0];
    kernels_.expm1(rows.log_ratio, loss, rows.count);  // r - 1, which is also the derivative of the loss
    for (std::size_t row = 0; row < rows.count; ++row) {
      if (weight != 0) out.log_prob[row] += weight * loss[row];
      loss[row] -= rows.log_ratio[row];
    }
  }
};

const RegisteredPart<Term, KlPenaltyTerm> kKlPenalty{"kl_penalty"};

}  // namespace
}  // namespace surefoot
