// HumanoidStandup-v5: get up from lying on the back.
#include "humanoid_task.hpp"

namespace surefoot {
namespace {

class HumanoidStandup final : public Cloned<HumanoidStandup, HumanoidTask> {
 public:
  explicit HumanoidStandup(const Options& options) : Cloned(options, "humanoidstandup.xml", "impact_cost", 0.5e-6) {
    options.number("uph_cost_weight", 1.0);  // Gymnasium also accepts it without using it
  }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const double upward = qpos()[2] / model().opt.timestep;
    return {upward - control_cost() - force_cost() + 1, false};
  }
};

const Registered kHumanoidStandup{"HumanoidStandup-v5", make<HumanoidStandup>};

}  // namespace
}  // namespace surefoot
