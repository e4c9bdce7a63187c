// InvertedPendulum-v5: a cart keeps its pole upright.
#include <algorithm>
#include <cmath>

#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"

namespace surefoot {
namespace {

constexpr double kWidestAngle = 0.2;

class InvertedPendulum final : public Cloned<InvertedPendulum, MujocoEnv> {
 public:
  explicit InvertedPendulum(const Options& options)
      : Cloned(options, "inverted_pendulum.xml", 2), noise_(reset_noise_scale(options, 0.01)) {
    expect_coordinates(model(), 2, 2);
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {qpos().size() + qvel().size()}}}; }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const auto finite = [](double value) { return std::isfinite(value); };
    const bool upright = std::all_of(qpos().begin(), qpos().end(), finite) &&
                         std::all_of(qvel().begin(), qvel().end(), finite) && std::abs(qpos()[1]) <= kWidestAngle;
    return {upright ? 1.0 : 0.0, !upright};
  }

  void observe(double* obs) const override {
    std::copy(qvel().begin(), qvel().end(), std::copy(qpos().begin(), qpos().end(), obs));
  }

 protected:
  void reset_model(Generator& random) override {
    std::vector<double> start(init_qpos().begin(), init_qpos().end()), speed(init_qvel().begin(), init_qvel().end());
    for (double& value : start) value += random.uniform(-noise_, noise_);
    for (double& value : speed) value += random.uniform(-noise_, noise_);
    set_state(start, speed);
  }

 private:
  double noise_;
};

const Registered kInvertedPendulum{"InvertedPendulum-v5", make<InvertedPendulum>};

}  // namespace
}  // namespace surefoot
