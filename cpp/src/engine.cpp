#include "surefoot/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <stdexcept>

namespace surefoot {
namespace {

constexpr std::size_t kFewRows = 16, kManyRows = 64;
/// Number of stretches that the work of a thread is divided into, so that no thread waits long for another at the end.
constexpr std::size_t kStretches = 16;
/// Maximum number of steps of a stretch, so that a request to cancel the rollout is noticed soon.
constexpr std::size_t kLongestStretch = 256;
/// Number of rows from which waking another thread for a single step pays off.
constexpr std::size_t kRowsWorthWaking = 16;

/// A queue of unfinished blocks; a thread takes one and returns it unless it is finished.
class BlockQueue {
 public:
  explicit BlockQueue(std::vector<RolloutBlock>& blocks) {
    for (auto& block : blocks) waiting_.push_back(&block);
  }

  RolloutBlock* take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return nullptr;
    RolloutBlock* block = waiting_.front();
    waiting_.pop_front();
    return block;
  }

  void bring_back(RolloutBlock* block) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(block);
  }

 private:
  std::mutex mutex_;
  std::deque<RolloutBlock*> waiting_;
};

/// Envs do not check their actions, so actions outside of the space are rejected before any env steps. Box actions only
/// have to be finite.
void check_actions(const ActionSpace& space, const RowActions& actions, std::size_t rows) {
  const std::size_t size = space.size();
  const auto refuse = [size](std::size_t i, const std::string& what) {
    const std::string element = size > 1 ? "[" + std::to_string(i % size) + "]" : "";
    throw std::invalid_argument("the action of row " + std::to_string(i / size) + element + " is " + what);
  };
  for (std::size_t i = 0; i < rows * size; ++i) {
    if (!space.has_choices()) {
      if (!std::isfinite(actions.values[i])) refuse(i, "not finite");
      continue;
    }
    const auto [first, last] = space.choices(i % size);
    if (actions.choices[i] >= first && actions.choices[i] <= last) continue;
    refuse(i, std::to_string(actions.choices[i]) + "; it must be from " + std::to_string(first) + " to " +
                  std::to_string(last));
  }
}

}  // namespace

Action RowActions::of(std::size_t row, std::size_t action_size, std::size_t agents) const {
  if (choices != nullptr) return {{}, {choices + row * action_size, agents * action_size}};
  return {{values + row * action_size, agents * action_size}, {}};
}

Engine::Engine(std::unique_ptr<Rows> rows, std::size_t threads)
    : rows_(std::move(rows)), pool_(std::make_unique<ThreadPool>(threads)), workspaces_(threads), process_(getpid()) {}

Engine::~Engine() {
  // A forked child does not have these threads: waiting for them would never end.
  if (getpid() != process_) (void)pool_.release();
}

void Engine::check_process() const {
  if (getpid() != process_) {
    throw std::runtime_error(
        "this process was forked while the native engine was open, and its threads stayed behind; start processes with"
        " the method 'spawn'");
  }
}

Engine::Use::Use(Engine& engine) : engine_(engine) {
  engine.check_process();
  if (engine.in_use_.test_and_set()) {
    throw std::runtime_error("the native engine is in use by another thread; create one engine per thread");
  }
}

void Engine::each_env(const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const std::size_t count = rows_->num_envs();
  const std::size_t share = std::clamp(count / (8 * pool_->size()), std::size_t{1}, kManyRows);
  pool_->run(rows_->size() < kRowsWorthWaking ? 1 : pool_->size(), [&](std::size_t) {
    for (std::size_t begin; (begin = next.fetch_add(share)) < count;) {
      for (std::size_t env = begin; env < std::min(begin + share, count); ++env) work(env);
    }
  });
}

void Engine::observe(std::size_t row, const std::vector<double*>& leaves, bool is_end) const {
  const auto look = [&](double* obs) { is_end ? rows_->observe_end(row, obs) : rows_->observe(row, obs); };
  const auto& sizes = rows_->obs_sizes();
  if (leaves.size() == 1) return look(leaves[0] + row * sizes[0]);
  std::vector<double> observed(rows_->obs_size());
  look(observed.data());
  const double* from = observed.data();
  for (std::size_t leaf = 0; leaf < leaves.size(); from += sizes[leaf], ++leaf) {
    std::copy_n(from, sizes[leaf], leaves[leaf] + row * sizes[leaf]);
  }
}

void Engine::show(std::size_t env, const StepSlot& slot) const {
  const std::size_t agents = rows_->num_agents();
  for (std::size_t row = env * agents; row < (env + 1) * agents; ++row) {
    observe(row, slot.obs);
    if (slot.mask != nullptr) rows_->mask(row, slot.mask + row * rows_->mask_size());
  }
}

void Engine::reset(std::span<const Generator::Words> seeds, const StepSlot& slot) {
  for (const auto& words : seeds) (void)Generator(words);  // throws before any env is reset
  each_env([&](std::size_t env) {
    if (slot.rests(env * rows_->num_agents())) return;
    seeds.empty() ? rows_->reset(env) : rows_->reseed(env, seeds[env]);
    show(env, slot);
  });
}

void Engine::step_env(std::size_t env, const RowActions& actions, const StepSlot& slot) {
  const std::size_t agents = rows_->num_agents(), first = env * agents, num_metrics = rows_->metrics().size();
  if (slot.rests(first)) return;
  RowStep only;
  std::vector<RowStep> several(agents > 1 ? agents : 0);
  RowStep* steps = agents > 1 ? several.data() : &only;
  std::vector<double> measured(num_metrics);
  const bool is_over = rows_->step(env, actions.of(first, rows_->action_size(), agents), steps);
  for (std::size_t agent = 0; agent < agents; ++agent) {
    const std::size_t row = first + agent;
    slot.reward[row] = steps[agent].reward;
    slot.terminated[row] = steps[agent].terminated;
    slot.truncated[row] = steps[agent].truncated;
    if (slot.valid != nullptr) slot.valid[row] = steps[agent].valid;
    if (slot.metrics != nullptr) {
      std::fill(measured.begin(), measured.end(), std::numeric_limits<double>::quiet_NaN());
      if (steps[agent].valid) rows_->measure(row, measured.data());
      std::transform(measured.begin(), measured.end(), slot.metrics + row * num_metrics,
                     [](double value) { return static_cast<float>(value); });
    }
    if (steps[agent].ended()) observe(row, slot.final_obs, true);
  }
  if (slot.poses != nullptr) rows_->pose(env, slot.poses + env * rows_->pose_size());
  if (is_over) rows_->reset(env);
  show(env, slot);
}

void Engine::step(const RowActions& actions, const StepSlot& slot) {
  check_actions(rows_->action_space(), actions, rows_->size());
  each_env([&](std::size_t env) { step_env(env, actions, slot); });
}

std::size_t Engine::rows_per_block(std::size_t policies) const {
  // At least one block per thread; beyond that, blocks as large as pays off for the policies, whose weights are read
  // once per block.
  const std::size_t share = (rows_->size() + pool_->size() - 1) / pool_->size(), agents = rows_->num_agents();
  const std::size_t rows = std::clamp(share / kStretches, std::min(share, policies * kFewRows), policies * kManyRows);
  return (rows + agents - 1) / agents * agents;  // no env is in two blocks
}

// tour: collect
RolloutResult Engine::collect(const Policy& policy, const RolloutArrays& arrays, const RolloutKey& key,
                              const std::function<bool()>& keep_going) {
  const std::size_t size = rows_per_block(1 + arrays.others.size());
  std::vector<RolloutBlock> blocks;
  for (std::size_t begin = 0; begin < rows_->size(); begin += size) {
    blocks.emplace_back(*rows_, policy, arrays, key, begin, std::min(begin + size, rows_->size()));
  }
  BlockQueue queue(blocks);
  const std::size_t stretch = std::clamp<std::size_t>(arrays.num_steps / kStretches, 1, kLongestStretch);
  std::atomic<bool> given_up = false;
  pool_->run(blocks.size(), [&](std::size_t thread) {
    while (RolloutBlock* block = given_up ? nullptr : queue.take()) {
      block->advance(stretch, workspaces_[thread]);
      if (!block->is_done()) queue.bring_back(block);
      if (thread == 0 && !keep_going()) given_up = true;
    }
  });
  RolloutResult result;
  result.moments.resize(rows_->obs_parts().size());
  result.row_moments.resize(rows_->obs_parts().size());
  for (const auto& block : blocks) block.add_to(result);
  std::sort(result.episodes.begin(), result.episodes.end(), [](const auto& one, const auto& other) {
    return std::pair(one.step, one.row) < std::pair(other.step, other.row);
  });
  return result;
}
// tour: end

void Engine::replay(std::size_t num_steps, const RowActions& actions, const bool* ended) {
  check_actions(rows_->action_space(), actions, num_steps * rows_->size());
  const std::size_t agents = rows_->num_agents();
  each_env([&](std::size_t env) {
    std::vector<RowStep> steps(agents);  // of several agents, which end at different times
    for (std::size_t step = 0; step < num_steps; ++step) {
      const std::size_t place = step * rows_->size() + env * agents;
      const Action taken = actions.of(place, rows_->action_size(), agents);
      if (agents == 1) rows_->advance(env, taken);
      if (agents == 1 ? ended[place] : rows_->step(env, taken, steps.data())) rows_->reset(env);
    }
  });
}

}  // namespace surefoot
