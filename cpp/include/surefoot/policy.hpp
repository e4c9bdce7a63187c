// A policy as the core runs it: networks, distribution and value head, with weights synced by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/activation.hpp"

namespace surefoot {

/// Vectorized loops of one instruction set (kernels.hpp).
struct Kernels;
const Kernels& kernels();

/// A tensor of the learner, float32 and C-contiguous, under the name it has there.
struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  const float* data;
};

/// One observation as networks take it: `size` numbers a row, normalized first if `normalizer` names statistics.
struct ObsPlan {
  std::string key;
  std::size_t size;
  std::string normalizer;  // prefix of `.shift` and `.scale`; empty: taken as it is
  float clip;              // infinity: none
};

/// Linear layers by the prefix of `.weight` and `.bias`, each followed by the activation.
struct MlpPlan {
  std::vector<std::string> layers;
};

/// What one part of the observation goes through before the trunk; no layers: as it is.
struct EncoderPlan {
  std::size_t obs;  // index into PolicyPlan::obs
  MlpPlan network;
};

enum class MemoryKind { kNone, kGru, kLstm };

/// Recurrent layers, each fed by the one before, under torch's names: `<name>.weight_ih_l0` and so on.
struct MemoryPlan {
  MemoryKind kind = MemoryKind::kNone;
  std::size_t layers = 0;
  std::size_t hidden = 0;  // numbers that a layer remembers, and as many again in an LSTM's cell
  std::string name;

  std::size_t num_parts() const;  // of the state: none, h, or h and c
  std::size_t part_size() const { return layers * hidden; }
};

/// Encoders side by side, concatenated, then the memory, then the trunk.
struct BodyPlan {
  std::vector<EncoderPlan> encoders;
  MlpPlan trunk;
  MemoryPlan memory{};
  bool takes_actor_memory = false;  // critic: what the actor's memory gives comes first, before the encoders
};

enum class Distribution { kGaussian, kTanhGaussian, kBeta, kCategorical, kMultiDiscrete, kBernoulli };

struct HeadPlan {
  Distribution kind;
  std::string layer;      // linear layer that gives mean, logits or concentrations
  std::string std_layer;  // Gaussian: linear layer of a state-dependent std, or empty
  std::string log_std;    // Gaussian: the parameter
  float std_floor = 0;
  bool rescale = false;             // Gaussian: [-1, 1] to the bounds, then clip
  std::vector<float> low, high;     // Box: bounds of each element
  std::vector<std::int64_t> sizes;  // discrete kinds: choices of each element
  std::vector<std::int64_t> start;  // what the env adds to choice 0
};

struct CriticPlan {
  std::string layer;
  std::string returns;  // prefix of `.shift` and `.scale` of normalized returns; empty: raw
};

struct PolicyPlan {
  std::vector<ObsPlan> obs;
  Activation activation = Activation::kTanh;
  BodyPlan actor;
  BodyPlan critic;  // ignored if shared
  bool shares_trunk = false;
  HeadPlan head;
  CriticPlan value;
};

/// Which numbers to act with: row r of a call draws word j of (step, first_row + r).
struct NoiseKey {
  std::uint64_t seed;
  std::uint64_t step;
  std::uint64_t first_row;
  std::uint32_t stream;
};

/// Rows of observations, one pointer a key: leaf k is [rows, size of key k], float32.
using ObsLeaves = std::span<const float* const>;

/// What rows remember of their episodes, one pointer a part: part k is [rows, size of part k]. No parts without memory.
struct CarriedState {
  std::span<const float* const> parts{};
  const bool* episode_start = nullptr;  // [rows] that remember nothing, whatever `parts` says; null: none of them
};

/// Where the outcome of acting goes, one entry a row; of `action` and `choice` only the policy's own kind is written.
struct Acted {
  float* action;                    // [rows, action_size] Box: raw, as sampled
  std::int64_t* choice;             // [rows, action_size] discrete kinds: raw, from 0
  float* log_prob;                  // [rows]
  float* value;                     // [rows] raw units
  std::span<float* const> state{};  // what rows remember now; may be the memory they came from
};

class Policy;

/// Memory for the activations of one thread; grows to what it is used for.
class Workspace {
 public:
  /// At least `count` floats, aligned for vectors; the same memory at every call with the same slot.
  float* floats(std::size_t slot, std::size_t count);

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  struct Slot {
    std::unique_ptr<float[], Free> memory;
    std::size_t capacity = 0;
  };
  std::vector<Slot> slots_;
};

/// Thread-safe once synced: all const functions may run side by side with a workspace each.
/// What a row gives does not depend on which rows it is batched with, bit for bit.
class Policy {
 public:
  /// Throws std::invalid_argument if the plan contradicts itself.
  explicit Policy(PolicyPlan plan, const Kernels& kernels = surefoot::kernels());
  ~Policy();
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  /// Take new weights. Throws std::invalid_argument that names all unknown, missing or misshapen tensors at once,
  /// and changes nothing then.
  void sync(std::span<const NamedTensor> tensors);

  const PolicyPlan& plan() const;
  const Kernels& kernels() const;
  bool is_synced() const;  // else there are no weights to act with
  bool is_discrete() const;
  std::size_t action_size() const;  // elements of a raw action
  std::size_t noise_size() const;   // uniforms that one row's sample takes
  std::size_t mask_size() const;    // entries of an action mask; 0 where masks make no sense

  /// Numbers a row of each part of the state: the actor's h (and c), then the critic's if it remembers for itself.
  const std::vector<std::size_t>& state_sizes() const { return state_sizes_; }

  /// What `act` samples rows from, [rows, noise_size]: standard normals, uniforms, or both as the head lays them out.
  void noise(std::size_t rows, const NoiseKey& key, float* out) const;

  /// Sample actions for rows; `mask` is [rows, mask_size] or null.
  void act(std::size_t rows, ObsLeaves obs, const CarriedState& state, const bool* mask, const NoiseKey& noise,
           Workspace& workspace, const Acted& acted) const;

  /// V of rows of observations; what rows remember stays as it is.
  void value(std::size_t rows, ObsLeaves obs, const CarriedState& state, Workspace& workspace, float* value) const;

  /// Raw Box actions to what the env takes; may be in place.
  void to_env(std::size_t rows, const float* action, float* env_action) const;

 private:
  struct Weights;
  struct Pass;
  PolicyPlan plan_;
  const Kernels& kernels_;
  std::vector<std::size_t> state_sizes_;
  std::unique_ptr<Weights> weights_;
};

}  // namespace surefoot
