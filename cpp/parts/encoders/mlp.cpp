// Linear layers.
#include "surefoot/parts/encoder.hpp"

namespace surefoot {
namespace {

class MlpEncoder final : public Encoder {
 public:
  MlpEncoder(const PartPlan& plan, const Kernels& kernels) : Encoder(kernels), layers_(plan.texts("layers")) {}

  std::vector<std::string> layers() const override { return layers_; }

 private:
  std::vector<std::string> layers_;
};

const RegisteredPart<Encoder, MlpEncoder> kMlp{"mlp"};

}  // namespace
}  // namespace surefoot
