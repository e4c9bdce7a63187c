// Rows of a block that several policies act in.
#include <limits>
#include <vector>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "made_up.hpp"
#include "surefoot/acting_groups.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kRows = 6, kCues = 5;

/// Reads the first leaf of three.
PolicyPlan cues_only() {
  const float none = std::numeric_limits<float>::infinity();
  PolicyPlan plan = plain_plan(kCues, categorical("head", kCues));
  plan.obs = {{"cues", kCues, "", none}, {"fuel", 1, "", none}, {"wheel", 2, "", none}};
  return plan;
}

TEST(what_no_network_reads_is_not_gathered) {
  const Rows rows("Probe-v0", Options(), kRows, {});
  CHECK_EQUAL(rows.obs_sizes(), (std::vector<std::size_t>{kCues, 1, 2}));
  Policy policy(cues_only());
  MadeUp made_up;
  made_up.add_linear("head", kCues, kCues);
  made_up.add_linear("value", 1, kCues);
  policy.sync(made_up.named());

  const std::vector<std::int64_t> wanted{0, 1, 0, 1, 1, 0};
  Rollout rollout(rows, policy, 1);
  rollout.mask = Flags(rollout.mask.size(), true);
  rollout.add({1, &policy, {}, false}, wanted);
  std::vector<float>& cues = rollout.obs[0];
  for (std::size_t i = 0; i < cues.size(); ++i) cues[i] = 0.125f * static_cast<float>(i % 17);
  RolloutArrays arrays = rollout.arrays();
  arrays.obs = {cues.data(), nullptr, nullptr};  // nothing there to be gathered
  const RolloutKey key{5, 0, 0, 1, {}, {}, {}};
  ActingGroups groups(rows, policy, arrays, key, 0, kRows);
  groups.assign(0);
  CHECK(!groups.is_learner_alone());
  Workspace workspace;
  std::vector<std::int64_t> staged(kRows);
  groups.act(0, workspace, {nullptr, staged.data()});

  std::vector<float> log_prob(kRows), value(kRows);
  std::vector<std::int64_t> alone(kRows);
  const float* const leaves[] = {cues.data(), nullptr, nullptr};
  policy.act(kRows, leaves, {}, rollout.mask.data(), {5, 0, 0, 1}, workspace,
             {nullptr, alone.data(), log_prob.data(), value.data()});
  CHECK_EQUAL(rollout.choice, alone);
  CHECK_EQUAL(staged, alone);
  for (std::size_t row = 0; row < kRows; ++row) CHECK_EQUAL(rollout.value[row], wanted[row] == 0 ? value[row] : 0.0f);
}

}  // namespace
}  // namespace surefoot
