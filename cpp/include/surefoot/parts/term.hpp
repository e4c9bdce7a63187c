// A term of the objective: losses of samples, and how they change with what the policy gave.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/head.hpp"

namespace surefoot {

/// The scalars of an update that schedules may move, by name.
using Knobs = std::map<std::string, double>;

/// A critic with what it predicted for some rows, and what there is to learn from.
struct CriticRows {
  const Critic& critic;
  LearnedRows predicted;
  MatrixView old_prediction;
  std::span<const std::size_t> vector_sizes;
  GivenGradient scratch;   // as large as the gradient of the prediction
  GivenGradient gradient;  // of what its layers gave; terms add their parts
};

/// The head with what its layers gave for some rows, for terms that ask for probabilities of other actions.
struct HeadRows {
  const Head& head;
  LearnedRows given;  // with a scratch of its own
  const bool* mask;
  std::span<const std::size_t> vector_sizes;
  GivenGradient scratch;   // as large as the gradient of what its layers gave
  GivenGradient gradient;  // terms add their parts
};

/// Add `weight` times the gradient that stands in the scratch of some rows.
template <class Rows>
void add_gradient(const LearnedRows& given, float weight, const Rows& of) {
  const auto add = [&](const float* from, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i) to[i] += weight * from[i];
  };
  for (std::size_t i = 0; i < of.scratch.given.size(); ++i) {
    add(of.scratch.given[i], given.count * given.given[i].stride, of.gradient.given[i]);
  }
  for (std::size_t i = 0; i < of.scratch.vectors.size(); ++i) {
    if (of.scratch.vectors[i] == nullptr) continue;  // it is not learned
    add(of.scratch.vectors[i], given.count * of.vector_sizes[i], of.gradient.vectors[i]);
  }
}

/// The type of an extra; that of an action is the head's own, and so is its size.
enum class ExtraType { kFloat, kInteger, kFlag, kAction };

/// A field of the rollout that a term reads beside those that all terms are given.
struct WantedExtra {
  std::string name;
  ExtraType type;
};

/// An extra of some rows: [count, size] of its type.
struct ExtraRows {
  std::string_view name;
  std::size_t size;
  const void* data;

  template <class Number>
  const Number* as() const {
    return static_cast<const Number*>(data);
  }
};

/// Some rows of a minibatch: what the policy gave, and what there is to learn from.
struct ObjectiveRows {
  std::size_t count;
  const float* log_ratio;  // of new to old action probabilities
  const float* entropy;
  const float* advantage;
  const float* returns;
  std::span<const CriticRows> critics;
  std::span<const ExtraRows> extras{};  // that terms want
  const HeadRows* head = nullptr;       // if a term takes it

  /// An extra that the term wants.
  const ExtraRows& extra(std::string_view name) const {
    return *std::find_if(extras.begin(), extras.end(), [&](const ExtraRows& one) { return one.name == name; });
  }
};

/// Gradients of a row's loss; every term adds its own.
struct ObjectiveGradient {
  float* log_prob;  // [count]
  float* entropy;   // [count]
};

class Term {
 public:
  explicit Term(const Kernels& kernels) : kernels_(kernels) {}
  virtual ~Term() = default;
  Term(const Term&) = delete;
  Term& operator=(const Term&) = delete;

  /// Names of the numbers that it measures for each sample, the loss first.
  virtual std::vector<std::string> measures() const { return {"loss"}; }
  /// Whether it reads the predictions that critics made in the rollout; they are gathered only if a term does.
  virtual bool takes_old_predictions() const { return false; }
  /// Extras that it reads, by name; the update is refused if the rollout does not have them.
  virtual std::vector<WantedExtra> extras() const { return {}; }
  /// Whether it reads the head.
  virtual bool takes_head() const { return false; }
  /// Whether it also learns from rows in which other policies acted, which have no weight elsewhere.
  virtual bool learns_from_all_rows() const { return false; }
  /// Before an update.
  virtual void begin(const Knobs&) {}
  /// Measure rows, one column each; add `weight` times their losses to the gradient, unless it is 0.
  virtual void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
                   const ObjectiveGradient& out) const = 0;

 protected:
  const Kernels& kernels_;
};

}  // namespace surefoot
