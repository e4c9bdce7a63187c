// Swimmer-v5: swim forward by bending, in a plane.
#include "planar_runner.hpp"

namespace surefoot {
namespace {

class Swimmer final : public Cloned<Swimmer, PlanarRunner> {
 public:
  explicit Swimmer(const Options& options) : Cloned(options, Defaults{"swimmer.xml", 4, 0.1, 2}, 1e-4) {
    expect_at_least(model(), 2, 2);
  }
};

const Registered kSwimmer{"Swimmer-v5", make<Swimmer>};

}  // namespace
}  // namespace surefoot
