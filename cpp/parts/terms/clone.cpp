// Behavioral cloning: the negative log-probability of a label, an action that another policy would have taken.
#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

class CloneTerm final : public Term {
 public:
  CloneTerm(const PartPlan& plan, const Kernels& kernels) : Term(kernels), label_(plan.text("label")) {}

  std::vector<WantedExtra> extras() const override { return {{label_, ExtraType::kAction}}; }
  bool takes_head() const override { return true; }
  bool learns_from_all_rows() const override { return true; }

  void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
           const ObjectiveGradient&) const override {
    const HeadRows& of = *rows.head;
    const ExtraRows& label = rows.extra(label_);
    const bool is_discrete = of.head.is_discrete();
    const Done labeled{is_discrete ? nullptr : label.as<float>(), is_discrete ? label.as<std::int64_t>() : nullptr,
                       of.mask};
    float* const entropy = of.given.scratch.floats(kEntropy, rows.count);
    of.head.evaluate(of.given, labeled, measures[0], entropy);
    for (std::size_t row = 0; row < rows.count; ++row) measures[0][row] = -measures[0][row];
    if (weight == 0) return;
    float* const by_log_prob = of.given.scratch.floats(kSlope, rows.count);
    std::fill_n(by_log_prob, rows.count, -weight);
    std::fill_n(entropy, rows.count, 0.0f);
    of.head.gradient(of.given, labeled, by_log_prob, entropy, of.scratch);
    add_gradient(of.given, 1, of);
  }

 private:
  enum Slot : std::size_t { kEntropy = 14, kSlope = 15 };  // heads use the slots before

  std::string label_;
};

const RegisteredPart<Term, CloneTerm> kClone{"clone"};

}  // namespace
}  // namespace surefoot
