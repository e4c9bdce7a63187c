// The observation as it is.
#include "surefoot/parts/encoder.hpp"

namespace surefoot {
namespace {

class IdentityEncoder final : public Encoder {
 public:
  IdentityEncoder(const PartPlan&, const Kernels& kernels) : Encoder(kernels) {}
};

const RegisteredPart<Encoder, IdentityEncoder> kIdentity{"identity"};

}  // namespace
}  // namespace surefoot
