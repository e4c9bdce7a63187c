// Steps the rows of a run on several threads: single steps, or whole rollouts including the policy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "surefoot/policy.hpp"
#include "surefoot/rollout_block.hpp"
#include "surefoot/rows.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {

/// Destination arrays of one step of all rows; `final_obs` is written only where an episode ended.
struct StepSlot {
  std::vector<double*> obs, final_obs;  // one per leaf, [N, size]
  double* reward;
  bool *terminated, *truncated;
  bool* mask;                     // [N, mask_size] or null
  bool* valid = nullptr;          // [N] or null
  float* metrics = nullptr;       // [N, M] or null
  double* poses = nullptr;        // [E, pose_size] or null: for rendering, taken before an ended env is reset
  const bool* resting = nullptr;  // [N] or null: if the first row of an env is true, the env and its rows are skipped

  bool rests(std::size_t row) const { return resting != nullptr && resting[row]; }
};

/// Actions of all rows, [N, action_size]; only the pointer that matches the action space is read.
struct RowActions {
  const float* values = nullptr;
  const std::int64_t* choices = nullptr;

  /// The actions of all agents of the env whose first row is `row`; each action has `action_size` elements.
  Action of(std::size_t row, std::size_t action_size, std::size_t agents) const;
};

/// Not safe to call from two threads at once, nor in a process that was forked after its construction
/// (`check_process`).
class Engine {
 public:
  Engine(std::unique_ptr<Rows> rows, std::size_t threads);
  ~Engine();

  Rows& rows() { return *rows_; }
  std::size_t threads() const { return pool_->size(); }

  /// Throws std::runtime_error in a forked child, where the threads of the parent do not exist.
  void check_process() const;

  /// A guard that gives exclusive use of the engine during its lifetime; throws std::runtime_error if another thread
  /// uses the engine.
  class Use {
   public:
    explicit Use(Engine& engine);
    ~Use() { engine_.in_use_.clear(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Engine& engine_;
  };

  /// Starts an episode in every env: from one seed per env or, without seeds, from the current state of each generator.
  void reset(std::span<const Generator::Words> seeds, const StepSlot& slot);
  void step(const RowActions& actions, const StepSlot& slot);

  /// T steps of every row without a barrier between them. Threads take blocks of rows, a stretch of steps at a time;
  /// the result does not depend on which thread ran which block. The calling thread calls `keep_going` regularly; if it
  /// returns false, the rollout is aborted.
  RolloutResult collect(const Policy& policy, const RolloutArrays& arrays, const RolloutKey& key,
                        const std::function<bool()>& keep_going);

  /// Repeats the recorded actions [T, N, ...] and resets with the bare dynamics: the upper bound of a rollout's speed.
  void replay(std::size_t num_steps, const RowActions& actions, const bool* ended);

 private:
  void observe(std::size_t row, const std::vector<double*>& leaves, bool is_end = false) const;
  void show(std::size_t env, const StepSlot& slot) const;
  void step_env(std::size_t env, const RowActions& actions, const StepSlot& slot);
  /// Calls `work(env)` for all envs, on all threads if there are many.
  void each_env(const std::function<void(std::size_t)>& work);
  std::size_t rows_per_block(std::size_t policies) const;

  std::unique_ptr<Rows> rows_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Workspace> workspaces_;
  int process_;
  std::atomic_flag in_use_;
};

}  // namespace surefoot
