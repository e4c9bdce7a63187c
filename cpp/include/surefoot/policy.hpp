// A policy in the core: networks and parts (parts/head.hpp and its neighbors), with weights synced by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/activation.hpp"
#include "surefoot/kernels.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/parts/plan.hpp"
#include "surefoot/tensor_reader.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

/// One observation: `size` numbers per row, normalized first if `normalizer` names statistics.
struct ObsPlan {
  std::string key;
  std::size_t size;
  std::string normalizer;  // prefix of `.shift` and `.scale`; empty: not normalized
  float clip;              // infinity: none
};

/// Linear layers by the prefix of `.weight` and `.bias`, each followed by the activation.
struct MlpPlan {
  std::vector<std::string> layers;
};

/// The encoder of one leaf of the observation before the trunk.
struct EncoderPlan {
  std::size_t obs;  // index into PolicyPlan::obs
  PartPlan encoder{"identity"};
};

/// Encoders side by side, concatenated, then the memory, then the trunk.
struct BodyPlan {
  std::vector<EncoderPlan> encoders;
  MlpPlan trunk;
  PartPlan memory{"none"};
  bool takes_actor_memory = false;  // only for critics: the output of the actor's memory precedes the encoders
};

/// A critic, after its own trunk if it has one.
struct ValuePlan {
  PartPlan critic;
  MlpPlan trunk{};
};

struct PolicyPlan {
  std::vector<ObsPlan> obs;
  Activation activation = Activation::kTanh;
  BodyPlan actor;
  BodyPlan critic;  // ignored if shared
  bool shares_trunk = false;
  PartPlan head{""};
  std::vector<ValuePlan> values;  // at least one critic; V is the smallest value
};

/// Rows of observations, one pointer per key: leaf k is [rows, size of key k], float32.
using ObsLeaves = std::span<const float* const>;

/// The recurrent state of rows, one pointer per tensor: tensor k is [rows, size of tensor k]. Empty for policies
/// without memory.
struct CarriedState {
  std::span<const float* const> tensors{};
  const bool* episode_start = nullptr;  // [rows] whose state is reset, whatever `tensors` contains; null: none
};

/// Destination of the results of `act`, one entry per row; of `action` and `choice`, only the one that matches the
/// policy is written.
struct Acted {
  float* action;                    // [rows, action_size] Box: raw, as sampled
  std::int64_t* choice;             // [rows, action_size] discrete kinds: raw, from 0
  float* log_prob;                  // [rows]
  float* value;                     // [rows] raw units; null: not computed, and the critic's own memory is unchanged
  std::span<float* const> state{};  // the next state; may be the arrays that it was read from
  float* prediction = nullptr;      // [rows, prediction_size] of all critics, raw units; null: not computed
};

/// Thread-safe after `sync`: all const functions may run concurrently, each with its own workspace. The output for a
/// row does not depend on the rows that it is batched with, bit for bit.
class Policy {
 public:
  /// Throws std::invalid_argument if the plan is inconsistent.
  explicit Policy(PolicyPlan plan, const Kernels& kernels = surefoot::kernels());
  ~Policy();
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  /// Copies new weights. If tensors are unknown, missing or of the wrong shape, throws std::invalid_argument that names
  /// all of them, and changes nothing.
  void sync(std::span<const NamedTensor> tensors);

  const PolicyPlan& plan() const;
  const Kernels& kernels() const;
  bool is_synced() const;  // whether there are weights to act with
  const Head& head() const;
  bool is_discrete() const { return head().is_discrete(); }
  std::size_t action_size() const { return head().action_size(); }
  std::size_t mask_size() const { return head().mask_size(); }
  std::size_t prediction_size() const;  // of all critics together

  /// Numbers per row of each tensor of the state: the h (and c) of the actor, then of the critic if it has its own
  /// memory.
  const std::vector<std::size_t>& state_sizes() const { return state_sizes_; }

  /// Samples actions for rows; `mask` is [rows, mask_size] or null.
  void act(std::size_t rows, ObsLeaves obs, const CarriedState& state, const bool* mask, const NoiseKey& noise,
           Workspace& workspace, const Acted& acted) const;

  /// Computes V for rows of observations; the recurrent state is unchanged.
  void value(std::size_t rows, ObsLeaves obs, const CarriedState& state, Workspace& workspace, float* value) const;

 private:
  struct Weights;
  struct Pass;
  void check_tensors(TensorReader& tensors) const;

  PolicyPlan plan_;
  const Kernels& kernels_;
  std::vector<std::size_t> state_sizes_;
  std::unique_ptr<Weights> weights_;
};

}  // namespace surefoot
