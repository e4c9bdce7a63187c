// Walker2d-v5: walk forward on two legs, in a plane.
#include "planar_walker.hpp"

namespace surefoot {
namespace {

class Walker2d final : public Cloned<Walker2d, PlanarWalker> {
 public:
  explicit Walker2d(const Options& options) : Cloned(options, "walker2d_v5.xml", Range{0.8, 2.0}, Range{-1.0, 1.0}) {}
};

const Registered kWalker2d{"Walker2d-v5", make<Walker2d>};

}  // namespace
}  // namespace surefoot
