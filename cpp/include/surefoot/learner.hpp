// The learner: all epochs and minibatches of an update, from a rollout's samples to new weights.
//
// It computes what learning/learner.py does, in the same order. Weights stay in the memory of PyTorch's module; results
// are the same for any number of threads.
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

/// Neighboring floats of the optimizer's memory that belong to one part of the network.
struct PartSlice {
  std::size_t begin, end;
  std::size_t part;
};

/// The optimizer's memory: all tensors that learn, one after the other; frozen ones may lie between them.
struct FlatMemory {
  float* value;
  float* gradient;
  float* mean;
  float* square;
  std::size_t size;
  std::unordered_map<std::string, std::size_t> offsets;  // by name
  std::unordered_map<std::string, std::size_t> missed;   // steps that a tensor was frozen for, by name
  std::vector<PartSlice> parts;                          // of what learns, in order
  std::vector<std::size_t> clips;                        // the norm that each part counts to when it is clipped

  std::size_t num_parts() const { return clips.size(); }
  /// The part that has the float at an offset; all tensors that learn have one.
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

/// Sequences to learn from, for policies with memory.
struct SequenceSamples {
  std::vector<Run> runs;
  std::vector<std::size_t> places;   // the state that each run begins with
  std::vector<const float*> stored;  // states [places, size] of each part, as the rollout stored them
  const bool* episode_start;         // [samples]

  /// States that are recomputed at the start of an epoch: after `runs`, the longest first, from the state at `from` to
  /// the one at `to`.
  struct Carry {
    std::vector<Run> runs;
    std::vector<std::size_t> from, to;
  };
  std::vector<Carry> carries;
  std::size_t num_places;
};

/// A field that only some terms read: `size` numbers of its type a sample.
struct ExtraSamples {
  std::string name;
  ExtraType type;  // not kAction
  std::size_t size;
  const std::byte* data;
};

/// The samples to learn from, one entry per sample.
struct LearnerSamples {
  std::size_t count;
  std::vector<const float*> obs;  // [count, size] of each key
  const float* action;            // of `action` and `choice` the policy's own kind: [count, action_size]
  const std::int64_t* choice;
  const bool* mask;  // [count, mask_size] or null
  const float* log_prob;
  const float* prediction;  // [count, prediction_size] that the critics made in the rollout, raw units
  std::size_t prediction_size;
  const float* advantage;
  const float* returns;
  const SequenceSamples* sequences = nullptr;
  /// Observations as bytes, which are divided by 255; null: `obs` has them. Empty: it has all.
  std::vector<const std::uint8_t*> images{};
  std::vector<ExtraSamples> extras{};
  /// Of each sample in all terms that do not learn from other policies' rows, which weigh 0; null: all weigh 1.
  const float* weight = nullptr;
};

/// Minibatches of which other processes have a part: own units of all epochs, and what holds for whole minibatches.
struct SharedMinibatches {
  struct One {
    std::size_t first, units;  // own ones, in `units`
    std::size_t count;         // samples of all processes
    float mean, scale;         // of all their advantages
  };
  std::vector<std::int64_t> units;
  std::vector<std::vector<One>> epochs;
};

struct Update {
  LearnerSamples samples;
  std::uint64_t seed, index;  // of the shuffles: the run's, and how many updates there were before
  std::size_t num_valid;      // samples of an epoch, of which a minibatch has its share
  std::size_t epochs, units;  // units: samples or runs, which are shuffled
  std::size_t batch_size;
  std::size_t micro_batch_size;  // 0: whole minibatches
  bool normalizes_advantages;    // in each minibatch
  double target_kl;              // infinity: no limit
  OptimizerSettings optimizer;
  std::vector<double> weights;  // of the terms
  Knobs knobs;
  std::size_t steps_before;  // that the optimizer has done
  std::vector<ActiveTransform> transforms{};
  /// Called between the sum of a gradient and the step, to change the gradient in Python; then there are no transforms.
  /// It may also change the sums of the measures.
  std::function<void(std::span<double>)> on_gradient{};
  const SharedMinibatches* shared = nullptr;  // null: the units are shuffled here
  /// Asked before every step, on the calling thread; after a no, the update ends where it is.
  std::function<bool()> may_go_on{};
};

/// Measures of an update, minibatch by minibatch.
struct UpdateRecord {
  std::size_t steps = 0;                   // that the optimizer has done now
  std::vector<std::size_t> minibatches{};  // of each epoch
  std::vector<double> shares{};            // of the samples, one a minibatch
  std::vector<double> measures{};          // [minibatches, names]
  std::vector<double> transformed{};       // [minibatches, measures of all transforms]
};

class Learner {
 public:
  /// Throws std::invalid_argument if the plans contradict themselves or the tensors do not fit.
  Learner(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
          const Kernels& kernels = surefoot::kernels());
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const Policy& policy() const;
  /// `<term>.<measure>` of all terms by their index, then the norm of the gradient and whether the step was skipped;
  /// in what `learn` measures, norms of the parts of the gradient follow.
  std::vector<std::string> measures() const;
  std::size_t num_terms() const;

  UpdateRecord learn(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory,
                     ThreadPool& pool);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace surefoot
