// The entropy bonus.
#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

class EntropyTerm final : public Term {
 public:
  EntropyTerm(const PartPlan&, const Kernels& kernels) : Term(kernels) {}

  void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
           const ObjectiveGradient& out) const override {
    for (std::size_t row = 0; row < rows.count; ++row) {
      measures[0][row] = -rows.entropy[row];
      out.entropy[row] -= weight;
    }
  }
};

const RegisteredPart<Term, EntropyTerm> kEntropy{"entropy"};

}  // namespace
}  // namespace surefoot
