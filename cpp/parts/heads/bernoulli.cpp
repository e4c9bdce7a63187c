// Independent binary choices, with the logits of yes; masks may forbid every yes.
#include "choices.hpp"

namespace surefoot {
namespace {

struct BernoulliHead final : ChoiceHead {
  BernoulliHead(const PartPlan& plan, const Kernels& kernels)
      : ChoiceHead(plan, kernels, std::vector<std::int64_t>(plan.count("size"), 2), plan.count("size"),
                   {kernels.bernoulli, kernels.evaluate_bernoulli, kernels.bernoulli_gradient}) {}
};

const RegisteredPart<Head, BernoulliHead> kBernoulli{"bernoulli"};

}  // namespace
}  // namespace surefoot
