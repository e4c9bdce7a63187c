// Rows of a block that several policies act in.
#include <limits>
#include <memory>
#include <vector>

#include "check.hpp"
#include "made_up.hpp"
#include "surefoot/acting_groups.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kRows = 6, kCues = 5;

/// Reads the first leaf of three.
PolicyPlan cues_only() {
  const float none = std::numeric_limits<float>::infinity();
  PolicyPlan plan;
  plan.obs = {{"cues", kCues, "", none}, {"fuel", 1, "", none}, {"wheel", 2, "", none}};
  plan.actor = {{{0}}, {}};
  plan.shares_trunk = true;
  plan.head = categorical("head", kCues);
  plan.values = {{scalar("value")}};
  return plan;
}

TEST(what_no_network_reads_is_not_gathered) {
  const Rows rows("Probe-v0", Options(), kRows, {});
  CHECK_EQUAL(rows.obs_sizes(), (std::vector<std::size_t>{kCues, 1, 2}));
  Policy policy(cues_only());
  MadeUp made_up;
  made_up.add_linear("head", kCues, kCues);
  made_up.add_linear("value", 1, kCues);
  policy.sync(made_up.tensors());

  std::vector<float> cues(2 * kRows * kCues), log_prob(kRows), value(kRows), alone_log_prob(kRows), alone_value(kRows);
  for (std::size_t i = 0; i < cues.size(); ++i) cues[i] = 0.125f * static_cast<float>(i % 17);
  std::vector<std::int64_t> choice(kRows), staged(kRows), alone(kRows), acting(kRows);
  const std::unique_ptr<bool[]> start(new bool[2 * kRows]()), mask(new bool[2 * kRows * kCues]);
  std::fill_n(mask.get(), 2 * kRows * kCues, true);
  const std::vector<std::int64_t> wanted{0, 1, 0, 1, 1, 0};
  std::fill_n(start.get(), kRows, true);

  RolloutArrays arrays{};
  arrays.num_steps = 1;
  arrays.num_rows = kRows;
  arrays.obs = {cues.data(), nullptr, nullptr};  // nothing there to be gathered
  arrays.mask = mask.get();
  arrays.choice = choice.data();
  arrays.log_prob = log_prob.data();
  arrays.value = value.data();
  arrays.episode_start = start.get();
  arrays.acting = acting.data();
  arrays.wanted = wanted.data();
  arrays.others = {{1, &policy, {}, false}};
  const RolloutKey key{5, 0, 0, 1, {}, {}, {}};
  ActingGroups groups(rows, policy, arrays, key, 0, kRows);
  groups.assign(0);
  CHECK(!groups.is_learner_alone());
  Workspace workspace;
  groups.act(0, workspace, {nullptr, staged.data()});

  const float* const leaves[] = {cues.data(), nullptr, nullptr};
  policy.act(kRows, leaves, {}, mask.get(), {5, 0, 0, 1}, workspace,
             {nullptr, alone.data(), alone_log_prob.data(), alone_value.data()});
  CHECK_EQUAL(choice, alone);
  CHECK_EQUAL(staged, alone);
  for (std::size_t row = 0; row < kRows; ++row) CHECK_EQUAL(value[row], wanted[row] == 0 ? alone_value[row] : 0.0f);
}

}  // namespace
}  // namespace surefoot
