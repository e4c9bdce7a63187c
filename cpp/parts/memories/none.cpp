// No memory: features pass through.
#include "surefoot/parts/memory.hpp"

namespace surefoot {
namespace {

class NoMemory final : public Memory {
 public:
  NoMemory(const PartPlan&, const Kernels& kernels) : Memory(kernels) {}

  std::vector<std::size_t> state_sizes() const override { return {}; }
  std::size_t output_size(std::size_t in) const override { return in; }
  void check(TensorReader&, std::size_t) const override {}
  void pack(const TensorReader&) override {}
  MatrixView step(const PartRows& rows, const StateRows&) const override { return rows.in; }
};

const RegisteredPart<Memory, NoMemory> kNone{"none"};

}  // namespace
}  // namespace surefoot
