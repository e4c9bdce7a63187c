// The learner: all epochs and minibatches of an update, from the samples of a rollout to new weights.
//
// It computes what learning/learner.py computes, in the same order. The weights stay in the memory of PyTorch's module.
// The results are the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "surefoot/parts/term.hpp"
#include "surefoot/parts/transform.hpp"
#include "surefoot/policy.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {

/// A range of the optimizer's memory that belongs to one part of the network.
struct PartSlice {
  std::size_t begin, end;
  std::size_t part;
};

/// The optimizer's memory: all learned tensors, concatenated; frozen ones may lie between them.
struct FlatMemory {
  float* value;
  float* gradient;
  float* mean;
  float* square;
  std::size_t size;
  std::unordered_map<std::string, std::size_t> offsets;  // by name
  std::unordered_map<std::string, std::size_t> missed;   // by name: number of steps for which a tensor was frozen
  std::vector<PartSlice> parts;                          // of the learned tensors, in order
  std::vector<std::size_t> clips;                        // by part: index of the norm by which it is clipped

  std::size_t num_parts() const { return clips.size(); }
  /// The part that contains an offset; every learned tensor belongs to one.
  std::size_t part_at(std::size_t offset) const {
    return std::upper_bound(parts.begin(), parts.end(), offset,
                            [](std::size_t at, const PartSlice& one) { return at < one.end; })
        ->part;
  }
};

struct OptimizerSettings {
  double lr;
  double beta1, beta2, epsilon;
  double weight_decay;
  bool is_decoupled;  // AdamW
  double max_norm;    // infinity: not clipped
};

/// A run of consecutive samples of one row.
struct Run {
  std::size_t first, length;
};

/// The sequences of an update, for recurrent policies.
struct SequenceSamples {
  std::vector<Run> runs;
  std::vector<std::size_t> places;   // index of the initial state of each run
  std::vector<const float*> stored;  // one array per tensor: states [places, size] stored by the rollout
  const bool* episode_start;         // [samples]

  /// States to recompute at the start of an epoch: run over `runs` (the longest first) from the state at `from`, and
  /// store the result at `to`.
  struct Carry {
    std::vector<Run> runs;
    std::vector<std::size_t> from, to;
  };
  std::vector<Carry> carries;
  std::size_t num_places;
};

/// An extra field that only some terms read: `size` elements of its type per sample.
struct ExtraSamples {
  std::string name;
  ExtraType type;  // not kAction
  std::size_t size;
  const std::byte* data;
};

/// The samples of an update, one entry per sample.
struct LearnerSamples {
  std::size_t count;
  std::vector<const float*> obs;  // one array [count, size] per key
  const float* action;  // [count, action_size]; only one of `action` and `choice` is set, by the kind of the policy
  const std::int64_t* choice;
  const bool* mask;  // [count, mask_size] or null
  const float* log_prob;
  const float* prediction;  // [count, prediction_size] predictions of the critics in the rollout, raw units
  std::size_t prediction_size;
  const float* advantage;
  const float* returns;
  const SequenceSamples* sequences = nullptr;
  /// Observations as bytes, to be divided by 255; null for keys that are in `obs`, empty if all are.
  std::vector<const std::uint8_t*> images{};
  std::vector<ExtraSamples> extras{};
  /// Weight of each sample in the terms without `learns_from_all_rows`: 0 for samples of other policies; null: all
  /// weigh 1.
  const float* weight = nullptr;
};

/// Minibatches that are shared with other processes: the units of this process in all epochs, and statistics of the
/// whole minibatches.
struct SharedMinibatches {
  struct One {
    std::size_t first, units;  // range in `units` that belongs to this process
    std::size_t count;         // samples in all processes
    float mean, scale;         // of the advantages in all processes
  };
  std::vector<std::int64_t> units;
  std::vector<std::vector<One>> epochs;
};

struct Update {
  LearnerSamples samples;
  std::uint64_t seed, index;  // keys of the shuffles: seed of the run, number of updates before
  std::size_t num_valid;      // valid samples per epoch; a minibatch weighs by its share of them
  std::size_t epochs, units;  // units that are shuffled: samples, or runs of recurrent policies
  std::size_t batch_size;
  std::size_t micro_batch_size;  // 0: whole minibatches
  bool normalizes_advantages;    // per minibatch
  double target_kl;              // infinity: no limit
  OptimizerSettings optimizer;
  std::vector<double> weights;  // one per term
  Knobs knobs;
  std::size_t steps_before;  // optimizer steps before this update
  std::vector<ActiveTransform> transforms{};
  /// Called after each gradient is summed up and before the step, to change the gradient in Python; excludes
  /// `transforms`. It may also change the sums of the measures.
  std::function<void(std::span<double>)> on_gradient{};
  const SharedMinibatches* shared = nullptr;  // null: the units are shuffled here
  /// Called before every optimizer step on the calling thread; false ends the update.
  std::function<bool()> may_go_on{};
};

/// Measures of an update, by minibatch.
struct UpdateRecord {
  std::size_t steps = 0;                   // optimizer steps including this update
  std::vector<std::size_t> minibatches{};  // number per epoch
  std::vector<double> shares{};            // share of the samples in each minibatch
  std::vector<double> measures{};          // [minibatches, names]
  std::vector<double> transformed{};       // [minibatches, measures of all transforms]
};

class Learner {
 public:
  /// Throws std::invalid_argument if a plan is inconsistent or the tensors do not fit.
  Learner(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
          const Kernels& kernels = surefoot::kernels());
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const Policy& policy() const;
  /// `<term>.<measure>` of all terms by their index, then the norm of the gradient and whether the step was skipped.
  /// The measures of `learn` have the norms of the gradient's parts after these.
  std::vector<std::string> measures() const;
  std::size_t num_terms() const;

  UpdateRecord learn(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory,
                     ThreadPool& pool);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace surefoot
