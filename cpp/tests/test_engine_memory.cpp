// Rollouts of policies that remember: the same bytes on any number of threads, and as a policy stepped by hand gives.
#include <algorithm>
#include <vector>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "small_policy.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kRows = 33, kSteps = 50, kLimit = 14;
const std::vector<std::size_t> kStateSteps = {0, 0, 8, 18, 28, 38};  // sequences of 10, 2 steps of burn-in

const CellsPlan kMemories[] = {{"gru", 1, 7, "cells"}, {"lstm", 2, 16, "cells"}};

std::unique_ptr<Engine> cart_poles(std::size_t threads, std::size_t rows = kRows) {
  return std::make_unique<Engine>(std::make_unique<Rows>("CartPole-v1", Options(), rows, Endings{kLimit, false}),
                                  threads);
}

Rollout collected(Engine& engine, const Policy& policy, std::size_t rollouts) {
  StepArrays stepped(engine.rows());
  engine.reset(row_seeds(engine.rows().size()), stepped.slot());
  Rollout rollout(engine.rows(), policy, kSteps, kStateSteps);
  rollout.begin(stepped);
  for (std::uint64_t index = 0; index < rollouts; ++index) rollout.collect(engine, policy, index * kSteps);
  return rollout;
}

TEST(rollouts_with_memory_are_alike_on_any_number_of_threads) {
  for (const CellsPlan& memory : kMemories) {
    const SmallPolicy policy(memory);
    const auto one = cart_poles(1);
    const Rollout reference = collected(*one, policy.policy, 2);
    CHECK(reference.result.episodes.size() > kRows);
    for (const std::size_t threads : {1, 2, 4, 7}) {
      const auto engine = cart_poles(threads);
      CHECK(collected(*engine, policy.policy, 2).same_as(reference));
    }
  }
}

TEST(a_row_remembers_alike_among_few_and_many) {
  for (const CellsPlan& memory : kMemories) {
    const SmallPolicy policy(memory);
    const auto few = cart_poles(2, 8), many = cart_poles(2, 64);
    const Rollout eight = collected(*few, policy.policy, 2), all = collected(*many, policy.policy, 2);
    for (std::size_t tensor = 0; tensor < eight.state.size(); ++tensor) {
      CHECK(std::equal(eight.state[tensor].begin(), eight.state[tensor].end(), all.state[tensor].begin()));
    }
    CHECK(std::equal(eight.last_value.begin(), eight.last_value.end(), all.last_value.begin()));
  }
}

/// A policy's step of all rows, with a memory of its own.
struct ByHand {
  const Policy& policy;
  std::vector<std::vector<float>> state;
  std::vector<std::int64_t> choice = std::vector<std::int64_t>(kRows);
  std::vector<float> log_prob = std::vector<float>(kRows), value = std::vector<float>(kRows);
  Workspace workspace;

  explicit ByHand(const Policy& by) : policy(by) {
    for (const std::size_t size : policy.state_sizes()) state.emplace_back(kRows * size);
  }

  void act(const float* obs, const bool* starts, std::uint64_t step) {
    const auto targets = pointers(state);
    const std::vector<const float*> carried(targets.begin(), targets.end());
    policy.act(kRows, {{obs}}, {carried, starts}, nullptr, {5, step, 0, 1}, workspace,
               {nullptr, choice.data(), log_prob.data(), value.data(), targets});
  }

  std::vector<float> valued(const std::vector<double>& obs, const bool* starts) {
    const std::vector<float> single(obs.begin(), obs.end());
    const float* const leaf = single.data();
    const auto targets = pointers(state);
    const std::vector<const float*> carried(targets.begin(), targets.end());
    std::vector<float> values(kRows);
    policy.value(kRows, {&leaf, 1}, {carried, starts}, workspace, values.data());
    return values;
  }
};

TEST(rollouts_with_memory_are_what_a_policy_stepped_by_hand_gives) {
  for (const CellsPlan& memory : kMemories) {
    const SmallPolicy policy(memory);
    const auto engine = cart_poles(2), other = cart_poles(1);
    const Rollout rollout = collected(*engine, policy.policy, 1);
    StepArrays stepped(other->rows());
    other->reset(row_seeds(kRows), stepped.slot());
    ByHand by_hand(policy.policy);
    std::size_t stored = 0, open = 0;
    for (std::size_t step = 0; step < kSteps; ++step) {
      for (; stored < kStateSteps.size() && kStateSteps[stored] == step; ++stored) {
        for (std::size_t tensor = 0; tensor < by_hand.state.size(); ++tensor) {
          const auto& expected = by_hand.state[tensor];
          const float* const kept = rollout.stored_state[tensor].data() + stored * expected.size();
          CHECK(same_bytes(expected, std::vector<float>(kept, kept + expected.size())));
        }
      }
      const std::size_t place = step * kRows;
      by_hand.act(rollout.obs[0].data() + place * 4, rollout.episode_start.data() + place, step);
      CHECK(std::equal(by_hand.choice.begin(), by_hand.choice.end(), rollout.choice.begin() + place));
      CHECK(std::equal(by_hand.value.begin(), by_hand.value.end(), rollout.value.begin() + place));
      CHECK(std::equal(by_hand.log_prob.begin(), by_hand.log_prob.end(), rollout.log_prob.begin() + place));
      other->step({nullptr, by_hand.choice.data()}, stepped.slot());
      // The state after the episode's last step, and no start: the final observation belongs to the old episode.
      const auto values = by_hand.valued(stepped.final_obs[0], nullptr);
      for (std::size_t row = 0; row < kRows; ++row) {
        const bool is_open = stepped.truncated[row] && !stepped.terminated[row];
        CHECK_EQUAL(rollout.final_value[place + row], is_open ? values[row] : 0.0f);
        open += is_open;
      }
    }
    CHECK_EQUAL(stored, kStateSteps.size());
    CHECK(open > 0);
    CHECK(
        same_bytes(rollout.last_value, by_hand.valued(stepped.obs[0], rollout.episode_start.data() + kSteps * kRows)));
    for (std::size_t tensor = 0; tensor < by_hand.state.size(); ++tensor) {
      CHECK(same_bytes(rollout.state[tensor], by_hand.state[tensor]));
    }
  }
}

}  // namespace
}  // namespace surefoot
