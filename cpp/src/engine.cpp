#include "surefoot/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <stdexcept>

namespace surefoot {
namespace {

constexpr std::size_t kFewRows = 16, kManyRows = 64;
/// Stretches that a block's steps are cut into, so that no thread waits long for another at the end.
constexpr std::size_t kStretches = 16;
/// Steps of a stretch at most, so that whoever asks for a rollout to be given up is heard soon.
constexpr std::size_t kLongestStretch = 256;
/// Rows from which waking another thread for a single step pays.
constexpr std::size_t kRowsWorthWaking = 16;

/// Blocks that still have steps to make; whoever takes one brings it back or is done with it.
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

}  // namespace

Action RowActions::of(std::size_t row, std::size_t size) const {
  if (choices != nullptr) return {{}, {choices + row * size, size}};
  return {{values + row * size, size}, {}};
}

Engine::Engine(std::unique_ptr<Rows> rows, std::size_t threads)
    : rows_(std::move(rows)), pool_(std::make_unique<ThreadPool>(threads)), workspaces_(threads), process_(getpid()) {}

Engine::~Engine() {
  // A forked child has no such threads: waiting for them would never end.
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
    throw std::runtime_error("the native engine is in use by another thread; make an engine for each");
  }
}

void Engine::each_row(const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const std::size_t share = std::clamp(rows_->size() / (8 * pool_->size()), std::size_t{1}, kManyRows);
  pool_->run(rows_->size() < kRowsWorthWaking ? 1 : pool_->size(), [&](std::size_t) {
    for (std::size_t begin; (begin = next.fetch_add(share)) < rows_->size();) {
      for (std::size_t row = begin; row < std::min(begin + share, rows_->size()); ++row) work(row);
    }
  });
}

void Engine::observe(std::size_t row, const std::vector<double*>& parts) const {
  const auto& layout = rows_->obs_parts();
  if (parts.size() == 1) return rows_->observe(row, parts[0] + row * layout[0].size);
  std::vector<double> observed(rows_->obs_size());
  rows_->observe(row, observed.data());
  const double* from = observed.data();
  for (std::size_t part = 0; part < parts.size(); from += layout[part].size, ++part) {
    std::copy_n(from, layout[part].size, parts[part] + row * layout[part].size);
  }
}

void Engine::reset(std::span<const Generator::Words> seeds, const StepSlot& slot) {
  each_row([&](std::size_t row) {
    seeds.empty() ? rows_->reset(row) : rows_->reseed(row, seeds[row]);
    observe(row, slot.obs);
    if (slot.mask != nullptr) rows_->mask(row, slot.mask + row * rows_->mask_size());
  });
}

void Engine::step(const RowActions& actions, const StepSlot& slot) {
  each_row([&](std::size_t row) {
    const RowStep step = rows_->step(row, actions.of(row, rows_->action_size()));
    slot.reward[row] = step.reward;
    slot.terminated[row] = step.terminated;
    slot.truncated[row] = step.truncated;
    if (step.ended()) {
      observe(row, slot.final_obs);
      rows_->reset(row);
    }
    observe(row, slot.obs);
    if (slot.mask != nullptr) rows_->mask(row, slot.mask + row * rows_->mask_size());
  });
}

std::size_t Engine::rows_a_block() const {
  // Enough blocks for all threads; then as large as pays for the policy, whose weights are read once a block.
  const std::size_t share = (rows_->size() + pool_->size() - 1) / pool_->size();
  return std::clamp(share / kStretches, std::min(share, kFewRows), kManyRows);
}

RolloutResult Engine::collect(const Policy& policy, const RolloutMemory& memory, const RolloutKey& key,
                              const std::function<bool()>& keep_going) {
  const std::size_t size = rows_a_block();
  std::vector<RolloutBlock> blocks;
  for (std::size_t begin = 0; begin < rows_->size(); begin += size) {
    blocks.emplace_back(*rows_, policy, memory, key, begin, std::min(begin + size, rows_->size()));
  }
  BlockQueue queue(blocks);
  const std::size_t stretch = std::clamp<std::size_t>(memory.num_steps / kStretches, 1, kLongestStretch);
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
  for (const auto& block : blocks) block.add_to(result);
  std::sort(result.episodes.begin(), result.episodes.end(), [](const auto& one, const auto& other) {
    return std::pair(one.step, one.row) < std::pair(other.step, other.row);
  });
  return result;
}

void Engine::replay(std::size_t num_steps, const RowActions& actions, const bool* ended) {
  each_row([&](std::size_t row) {
    for (std::size_t step = 0; step < num_steps; ++step) {
      const std::size_t place = step * rows_->size() + row;
      rows_->advance(row, actions.of(place, rows_->action_size()));
      if (ended[place]) rows_->reset(row);
    }
  });
}

}  // namespace surefoot
