// InvertedDoublePendulum-v5: a cart keeps two poles, one on the other, upright.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "noisy_task.hpp"
#include "surefoot/numpy_math.hpp"

namespace surefoot {
namespace {

constexpr double kLowestTip = 1, kBestTip = 2, kBound = 10;

double clipped(double value) { return std::clamp(value, -kBound, kBound); }

class InvertedDoublePendulum final : public Cloned<InvertedDoublePendulum, NoisyTask> {
 public:
  explicit InvertedDoublePendulum(const Options& options)
      : Cloned(options, Defaults{"inverted_double_pendulum.xml", 5, 0.1, 0, SpeedNoise::kNormal}),
        healthy_reward_(options.number("healthy_reward", 10.0)) {
    expect_coordinates(model(), 3, 3);
    if (model().nsite < 1) throw std::invalid_argument("the model has no site at the tip of its poles");
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {2 * qpos().size() + qvel().size()}}}; }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const double x = data().site_xpos[0], height = data().site_xpos[2];
    const bool fallen = height <= kLowestTip;
    const double distance_penalty = 0.01 * numpy_square(x) + numpy_square(height - kBestTip);
    const double velocity_penalty = 1e-3 * numpy_square(qvel()[1]) + 5e-3 * numpy_square(qvel()[2]);
    const double bonus = healthy_reward_ * (fallen ? 0.0 : 1.0);
    return {bonus - distance_penalty - velocity_penalty, fallen};
  }

  void observe(double* obs) const override {
    const auto angles = qpos().subspan(1);
    *obs++ = qpos()[0];
    obs = std::transform(angles.begin(), angles.end(), obs, [](double angle) { return std::sin(angle); });
    obs = std::transform(angles.begin(), angles.end(), obs, [](double angle) { return std::cos(angle); });
    obs = std::transform(qvel().begin(), qvel().end(), obs, clipped);
    *obs = clipped(data().qfrc_constraint[0]);
  }

 private:
  double healthy_reward_;
};

const Registered kInvertedDoublePendulum{"InvertedDoublePendulum-v5", make<InvertedDoublePendulum>};

}  // namespace
}  // namespace surefoot
