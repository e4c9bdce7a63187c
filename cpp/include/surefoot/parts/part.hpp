// The base of all parts of a policy, and how a part registers itself. One file per kind, in cpp/parts.
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

/// Rows of features on their way through a part; what it keeps in `scratch` stands until another part runs.
struct PartRows {
  std::size_t count;
  MatrixView in;
  Scratch scratch;
};

/// A linear layer by the names of its tensors.
struct LayerNames {
  std::string weight, bias;
};

/// A tensor that a part computes from, by name: a linear layer by the prefix of `.weight` and `.bias`, or a vector,
/// which may also be one that is not learned.
struct Learned {
  std::string name;
  std::size_t size;  // outputs of the layer, or elements of the vector
};

/// Some rows of a minibatch, as a part that learns is given them. The learner runs the part's layers before and after:
/// the part computes from what they gave, and says how its losses change with it.
struct LearnedRows {
  std::size_t count;
  std::span<const MatrixView> given;      // what each of the part's layers gave: [count, size]
  std::span<const float* const> vectors;  // the part's vectors as they are now
  Scratch scratch;  // what is kept there stands until the gradients of the same rows are asked for
};

/// Where a part writes how a number changes with what its layers gave, row by row. Every element is written, but
/// columns between the size of a layer and its stride are left as they are.
struct GivenGradient {
  std::span<float* const> given;    // [count, stride of the layer's rows]
  std::span<float* const> vectors;  // [count, size]: the part of each row; null for a vector that is not learned
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

/// Throws std::invalid_argument for a kind that is not registered, or settings that it does not know.
template <class Role>
std::unique_ptr<Role> make_part(const PartPlan& plan, const Kernels& kernels);

}  // namespace surefoot
