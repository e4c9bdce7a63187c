// A term of the objective: the losses of samples, and their gradients with respect to the outputs of the policy.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/head.hpp"

namespace surefoot {

/// Scalars of an update that schedules may change, by name.
using Knobs = std::map<std::string, double>;

/// A critic with its predictions for some rows and their targets.
struct CriticRows {
  const Critic& critic;
  LearnedRows predicted;
  MatrixView old_prediction;
  std::span<const std::size_t> vector_sizes;
  GivenGradient scratch;   // as large as the gradient of the prediction
  GivenGradient gradient;  // with respect to the outputs of its layers; terms add to it
};

/// The head with the outputs of its layers for some rows, for terms that need the probabilities of other actions.
struct HeadRows {
  const Head& head;
  LearnedRows given;  // with its own scratch
  const bool* mask;
  std::span<const std::size_t> vector_sizes;
  GivenGradient scratch;   // as large as the gradient of the outputs of its layers
  GivenGradient gradient;  // terms add to it
};

/// Adds `weight` times the gradient in the scratch of some rows.
template <class Rows>
void add_gradient(const LearnedRows& given, float weight, const Rows& of) {
  const auto add = [&](const float* from, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i) to[i] += weight * from[i];
  };
  for (std::size_t i = 0; i < of.scratch.given.size(); ++i) {
    add(of.scratch.given[i], given.count * given.given[i].stride, of.gradient.given[i]);
  }
  for (std::size_t i = 0; i < of.scratch.vectors.size(); ++i) {
    if (of.scratch.vectors[i] == nullptr) continue;  // not learned
    add(of.scratch.vectors[i], given.count * of.vector_sizes[i], of.gradient.vectors[i]);
  }
}

/// The type of an extra field; for `kAction`, type and size are those of the head's actions.
enum class ExtraType { kFloat, kInteger, kFlag, kAction };

/// An extra field of the rollout that a term reads.
struct WantedExtra {
  std::string name;
  ExtraType type;
};

/// An extra field for some rows: [count, size] of its type.
struct ExtraRows {
  std::string_view name;
  std::size_t size;
  const void* data;

  template <class Number>
  const Number* as() const {
    return static_cast<const Number*>(data);
  }
};

/// Some rows of a minibatch: the outputs of the policy, and the targets.
struct ObjectiveRows {
  std::size_t count;
  const float* log_ratio;  // of new to old action probabilities
  const float* entropy;
  const float* advantage;
  const float* returns;
  std::span<const CriticRows> critics;
  std::span<const ExtraRows> extras{};  // extra fields that terms request
  const HeadRows* head = nullptr;       // set if a term takes the head

  /// An extra field that the term requested.
  const ExtraRows& extra(std::string_view name) const {
    return *std::find_if(extras.begin(), extras.end(), [&](const ExtraRows& one) { return one.name == name; });
  }
};

/// Gradients of the losses of rows; every term adds to them.
struct ObjectiveGradient {
  float* log_prob;  // [count]
  float* entropy;   // [count]
};

class Term : public KernelUser {
 public:
  using KernelUser::KernelUser;

  /// Names of its measures, one value per sample, the loss first.
  virtual std::vector<std::string> measures() const { return {"loss"}; }
  /// Whether it reads the predictions of the critics in the rollout; they are gathered only if a term does.
  virtual bool takes_old_predictions() const { return false; }
  /// Extra fields that it reads; the update is rejected if the rollout does not have them.
  virtual std::vector<WantedExtra> extras() const { return {}; }
  /// Whether it reads the head.
  virtual bool takes_head() const { return false; }
  /// Whether it also learns from rows in which other policies acted, which have weight 0 in other terms.
  virtual bool learns_from_all_rows() const { return false; }
  /// Called before an update.
  virtual void begin(const Knobs&) {}
  /// Writes the measures of the rows, one column each, and adds `weight` times the gradient of their losses, unless
  /// `weight` is 0.
  virtual void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
                   const ObjectiveGradient& out) const = 0;
};

}  // namespace surefoot
