// One choice among n.
#include "choices.hpp"

namespace surefoot {
namespace {

struct OneChoice final : CategoricalHead {
  OneChoice(const PartPlan& plan, const Kernels& kernels) : CategoricalHead(plan, kernels) {
    if (sizes_.size() != 1) plan.refuse("sizes", "must have one number");
  }
};

const RegisteredPart<Head, OneChoice> kCategorical{"categorical"};

}  // namespace
}  // namespace surefoot
