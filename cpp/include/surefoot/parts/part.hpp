// The base class of all parts of a policy, and their registration. One file per kind, in cpp/parts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/kernels.hpp"
#include "surefoot/layer.hpp"
#include "surefoot/parts/plan.hpp"
#include "surefoot/tensor_reader.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

/// Rows of features as input of a part; the contents of `scratch` are valid until another part runs.
struct PartRows {
  std::size_t count;
  MatrixView in;
  Scratch scratch;
};

/// A linear layer by the names of its tensors.
struct LayerNames {
  std::string weight, bias;
};

/// A tensor of a part, by name: a linear layer by the prefix of `.weight` and `.bias`, or a vector, which may also be
/// one that is not learned.
struct Learned {
  std::string name;
  std::size_t size;  // outputs of the layer, or elements of the vector
};

/// Rows of a minibatch as input of a part during learning. The learner runs the layers of the part: the part computes
/// its results from their outputs, and the gradient with respect to those.
struct LearnedRows {
  std::size_t count;
  std::span<const MatrixView> given;      // outputs of the part's layers: [count, size] each
  std::span<const float* const> vectors;  // current values of the part's vectors
  Scratch scratch;                        // its contents are valid until the gradient of the same rows is computed
};

/// Destination of the gradient with respect to the outputs of a part's layers, row by row. Every element is written,
/// but columns between the size of a layer and its stride are unchanged.
struct GivenGradient {
  std::span<float* const> given;    // [count, stride of the layer's rows]
  std::span<float* const> vectors;  // [count, size]: contribution of each row; null for a vector that is not learned
};

/// What is created from a plan and uses the kernels.
class KernelUser {
 public:
  explicit KernelUser(const Kernels& kernels) : kernels_(kernels) {}
  virtual ~KernelUser() = default;
  KernelUser(const KernelUser&) = delete;
  KernelUser& operator=(const KernelUser&) = delete;

 protected:
  const Kernels& kernels_;
};

/// A part of a policy, created from a plan; `pack` is called whenever its weights change. Const functions may run
/// concurrently.
class Part : public KernelUser {
 public:
  using KernelUser::KernelUser;

  /// Checks every tensor that `pack` reads, with its size; `in` is the size of the features, possibly kUnknownSize.
  virtual void check(TensorReader& tensors, std::size_t in) const = 0;
  /// Copies weights that were checked.
  virtual void pack(const TensorReader& tensors) = 0;

 protected:
  /// Runs a layer; the result is in `slot` of the scratch.
  MatrixView linear(const Layer& layer, const PartRows& rows, std::size_t slot) const {
    return layer.run(kernels_, rows.count, rows.in, rows.scratch, slot);
  }
};

template <class Role>
using MakePart = std::function<std::unique_ptr<Role>(const PartPlan& plan, const Kernels& kernels)>;

/// The registered kinds of a role (Head, Memory, Critic, ...), by name.
template <class Role>
std::map<std::string, MakePart<Role>>& known_parts();

/// Registers a kind: `const RegisteredPart<Head, BetaHead> kBeta{"beta"};` in the kind's own file.
template <class Role, class Kind>
struct RegisteredPart {
  explicit RegisteredPart(const std::string& kind) {
    known_parts<Role>()[kind] = [](const PartPlan& plan, const Kernels& kernels) {
      return std::make_unique<Kind>(plan, kernels);
    };
  }
};

/// Throws std::invalid_argument for a kind that is not registered, or for settings that it does not know.
template <class Role>
std::unique_ptr<Role> make_part(const PartPlan& plan, const Kernels& kernels);

}  // namespace surefoot
