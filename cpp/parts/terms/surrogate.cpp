// The clipped surrogate of PPO (Schulman et al. 2017).
#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

class SurrogateTerm final : public Term {
 public:
  SurrogateTerm(const PartPlan&, const Kernels& kernels) : Term(kernels) {}

  std::vector<std::string> measures() const override { return {"loss", "approx_kl", "clip_fraction"}; }

  void begin(const Knobs& knobs) override { clip_ = knobs.at("clip"); }

  void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
           const ObjectiveGradient& out) const override {
    kernels_.surrogate({.rows = rows.count,
                        .log_ratio = rows.log_ratio,
                        .advantage = rows.advantage,
                        .clip = static_cast<float>(clip_),
                        .low = static_cast<float>(1 - clip_),
                        .high = static_cast<float>(1 + clip_),
                        .weight = weight,
                        .loss = measures[0],
                        .kl = measures[1],
                        .is_outside = measures[2],
                        .gradient = out.log_prob});
  }

 private:
  double clip_ = 0;
};

const RegisteredPart<Term, SurrogateTerm> kSurrogate{"surrogate"};

}  // namespace
}  // namespace surefoot
