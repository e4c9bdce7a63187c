// InvertedPendulum-v5: a cart keeps its pole upright.
#include <cmath>

#include "noisy_task.hpp"

namespace surefoot {
namespace {

constexpr double kWidestAngle = 0.2;

class InvertedPendulum final : public Cloned<InvertedPendulum, NoisyTask> {
 public:
  explicit InvertedPendulum(const Options& options) : Cloned(options, Defaults{"inverted_pendulum.xml", 2, 0.01}) {
    expect_coordinates(model(), 2, 2);
  }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const bool upright = is_finite() && std::abs(qpos()[1]) <= kWidestAngle;
    return {upright ? 1.0 : 0.0, !upright};
  }
};

const Registered kInvertedPendulum{"InvertedPendulum-v5", make<InvertedPendulum>};

}  // namespace
}  // namespace surefoot
