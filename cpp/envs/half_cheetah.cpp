// HalfCheetah-v5: run forward on two legs, in a plane.
#include "planar_runner.hpp"

namespace surefoot {
namespace {

class HalfCheetah final : public Cloned<HalfCheetah, PlanarRunner> {
 public:
  explicit HalfCheetah(const Options& options)
      : Cloned(options, Defaults{"half_cheetah.xml", 5, 0.1, 1, SpeedNoise::kNormal}, 0.1) {
    expect_at_least(model(), 1, 0);
  }
};

const Registered kHalfCheetah{"HalfCheetah-v5", make<HalfCheetah>};

}  // namespace
}  // namespace surefoot
