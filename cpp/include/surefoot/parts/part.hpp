// What all parts of a policy have in common, and how a part makes itself known. One file a kind, in cpp/parts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "surefoot/kernels.hpp"
#include "surefoot/layer.hpp"
#include "surefoot/parts/plan.hpp"
#include "surefoot/tensor_reader.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

/// Rows of features on their way through a part; what it keeps in `scratch` stands until another part runs.
struct PartRows {
  std::size_t count;
  MatrixView in;
  Scratch scratch;
};

/// A part is made from its plan, then given weights as often as they change. Const functions may run side by side.
class Part {
 public:
  explicit Part(const Kernels& kernels) : kernels_(kernels) {}
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  /// Ask for every tensor that `pack` reads, with its size; `in` is the size of the features, perhaps kUnknownSize.
  virtual void check(TensorReader& tensors, std::size_t in) const = 0;
  /// Take weights that were checked.
  virtual void pack(const TensorReader& tensors) = 0;

 protected:
  /// The result stands in `slot` of the scratch.
  MatrixView linear(const Layer& layer, const PartRows& rows, std::size_t slot) const {
    return layer.run(kernels_, rows.count, rows.in, rows.scratch, slot);
  }

  const Kernels& kernels_;
};

template <class Role>
using MakePart = std::function<std::unique_ptr<Role>(const PartPlan& plan, const Kernels& kernels)>;

/// All kinds of Head, Memory or Critic by name.
template <class Role>
std::map<std::string, MakePart<Role>>& known_parts();

/// Makes a kind known: `const RegisteredPart<Head, BetaHead> kBeta{"beta"};` in the kind's own file.
template <class Role, class Kind>
struct RegisteredPart {
  explicit RegisteredPart(const std::string& kind) {
    known_parts<Role>()[kind] = [](const PartPlan& plan, const Kernels& kernels) {
      return std::make_unique<Kind>(plan, kernels);
    };
  }
};

/// Throws std::invalid_argument for a kind that nobody registered, or settings that it does not know.
template <class Role>
std::unique_ptr<Role> make_part(const PartPlan& plan, const Kernels& kernels);

}  // namespace surefoot
