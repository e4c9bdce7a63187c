// Hopper-v5: hop forward on one leg, in a plane.
#include <algorithm>
#include <limits>

#include "planar_walker.hpp"

namespace surefoot {
namespace {

class Hopper final : public Cloned<Hopper, PlanarWalker> {
 public:
  explicit Hopper(const Options& options)
      : Cloned(options, "hopper.xml", Range{0.7, std::numeric_limits<double>::infinity()}, Range{-0.2, 0.2}),
        healthy_state_(options.range("healthy_state_range", {-100.0, 100.0})) {}

 protected:
  bool has_healthy_state() const override {
    const auto healthy = [this](double value) { return within(value, healthy_state_); };
    return std::all_of(qpos().begin() + 2, qpos().end(), healthy) && std::all_of(qvel().begin(), qvel().end(), healthy);
  }

 private:
  Range healthy_state_;
};

const Registered kHopper{"Hopper-v5", make<Hopper>};

}  // namespace
}  // namespace surefoot
