// Policies that remember, against a plain loop in double precision.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "plain_memory.hpp"
#include "surefoot/kernels.hpp"

using namespace surefoot;

namespace {

using Floats = std::vector<float>;

const std::string kKinds[] = {"gru", "lstm"};
constexpr CriticBody kCritics[] = {CriticBody::kShared, CriticBody::kOwn, CriticBody::kBranch, CriticBody::kBareBranch};

/// Rows of a policy as they go through their episodes.
struct Acting {
  Policy policy;
  std::size_t rows;
  std::vector<Floats> obs, state;
  Floats log_prob, value;
  std::vector<std::int64_t> choice;
  Workspace workspace;

  Acting(const Remembering& remembering, std::size_t num_rows, const Kernels& kernels = surefoot::kernels())
      : policy(remembering.plan, kernels),
        rows(num_rows),
        obs{Floats(3 * rows), Floats(2 * rows)},
        log_prob(rows),
        value(rows),
        choice(rows) {
    policy.sync(remembering.made_up.named());
    for (const std::size_t size : policy.state_sizes()) state.emplace_back(rows * size);
  }

  /// Numbers that depend on nothing but step and row.
  void observe(std::size_t step, std::size_t first_row = 0) {
    for (std::size_t leaf = 0; leaf < 2; ++leaf) {
      const std::size_t size = leaf == 0 ? 3 : 2;
      for (std::size_t i = 0; i < rows * size; ++i) {
        obs[leaf][i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i + first_row * size + 31 * step + leaf)));
      }
    }
  }

  void act(std::size_t step, const bool* starts, std::vector<Floats>* next = nullptr, std::size_t first_row = 0) {
    const auto before = pointers(state), seen = pointers(obs), after = pointers(next == nullptr ? state : *next);
    const std::vector<const float*> carried(before.begin(), before.end()), leaves(seen.begin(), seen.end());
    policy.act(rows, leaves, {carried, starts}, nullptr, {7, step, first_row, 0}, workspace,
               {nullptr, choice.data(), log_prob.data(), value.data(), after});
  }

  Floats valued(const bool* starts) {
    Floats values(rows);
    const auto before = pointers(state), seen = pointers(obs);
    const std::vector<const float*> carried(before.begin(), before.end()), leaves(seen.begin(), seen.end());
    policy.value(rows, leaves, {carried, starts}, workspace, values.data());
    return values;
  }
};

Numbers row_of(const Floats& whole, std::size_t row, std::size_t size) {
  return Numbers(whole.begin() + static_cast<std::ptrdiff_t>(row * size),
                 whole.begin() + static_cast<std::ptrdiff_t>((row + 1) * size));
}

/// Whether episodes of a row start at a step.
bool starts_at(std::size_t step, std::size_t row) { return step == 0 || (step + row) % 4 == 0; }

void check_against_plain_rows(const Remembering& remembering, std::size_t rows, const Kernels& kernels) {
  Acting acting(remembering, rows, kernels);
  const std::vector<std::size_t>& sizes = acting.policy.state_sizes();
  std::vector<Numbers> zeros;
  for (const std::size_t size : sizes) zeros.emplace_back(size);
  std::vector<PlainRow> plain(rows, PlainRow{remembering, zeros});
  Flags starts(rows);
  for (std::size_t step = 0; step < 9; ++step) {
    acting.observe(step);
    for (std::size_t row = 0; row < rows; ++row) starts[row] = starts_at(step, row);
    const Floats valued = acting.valued(starts.data());
    acting.act(step, starts.data());
    CHECK(same_bytes(valued, acting.value));
    for (std::size_t row = 0; row < rows; ++row) {
      if (starts[row]) plain[row].state = zeros;
      const auto expected = plain[row].step(row_of(acting.obs[0], row, 3), row_of(acting.obs[1], row, 2));
      CHECK_NEAR(acting.value[row], expected.value, 3e-6);
      double sum = 0;
      for (const double logit : expected.logits) sum += std::exp(logit);
      CHECK_NEAR(acting.log_prob[row], expected.logits[static_cast<std::size_t>(acting.choice[row])] - std::log(sum),
                 3e-6);
      for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
        CHECK_NEAR(row_of(acting.state[tensor], row, sizes[tensor]), plain[row].state[tensor], 3e-6);
      }
    }
  }
}

TEST(memories_of_every_kind_depth_and_size) {
  for (const std::string& kind : kKinds) {
    for (const std::size_t layers : {1, 2, 3}) {
      for (const std::size_t hidden : {1, 7, 33, 64}) {
        for (const Kernels* kernels : available_kernels()) {
          check_against_plain_rows(Remembering(kind, layers, hidden, CriticBody::kOwn), 5, *kernels);
        }
      }
      check_against_plain_rows(Remembering(kind, layers, 256, CriticBody::kShared), 2, kernels());
    }
  }
}

TEST(critics_that_remember_for_themselves_or_by_the_actor) {
  for (const std::string& kind : kKinds) {
    for (const CriticBody critic : kCritics) check_against_plain_rows(Remembering(kind, 2, 17, critic), 50, kernels());
  }
}

TEST(the_state_is_the_actors_then_the_critics) {
  const auto sizes = [](const std::string& kind, CriticBody critic) {
    return Policy(Remembering(kind, 3, 5, critic).plan).state_sizes();
  };
  CHECK_EQUAL(sizes("gru", CriticBody::kOwn), (std::vector<std::size_t>{15, 15}));
  CHECK_EQUAL(sizes("lstm", CriticBody::kOwn), (std::vector<std::size_t>{15, 15, 15, 15}));
  CHECK_EQUAL(sizes("lstm", CriticBody::kShared), (std::vector<std::size_t>{15, 15}));
  CHECK_EQUAL(sizes("gru", CriticBody::kBranch), (std::vector<std::size_t>{15}));
}

TEST(what_a_row_remembers_does_not_depend_on_its_neighbors) {
  constexpr std::size_t kRows = 70;
  for (const Kernels* kernels : available_kernels()) {
    for (const std::string& kind : kKinds) {
      for (const CriticBody critic : {CriticBody::kOwn, CriticBody::kBranch}) {
        const Remembering remembering(kind, 2, 37, critic);
        Acting whole(remembering, kRows, *kernels);
        const std::vector<std::size_t> sizes = whole.policy.state_sizes();
        bool starts[kRows];
        const auto run = [&](Acting& acting, std::size_t first) {
          for (std::size_t step = 0; step < 4; ++step) {
            acting.observe(step, first);
            for (std::size_t row = 0; row < acting.rows; ++row) starts[row] = starts_at(step, first + row);
            acting.act(step, starts, nullptr, first);
          }
        };
        run(whole, 0);
        for (const std::size_t rows : {1, 2, 3, 5, 13, 33, 49}) {
          for (const std::size_t first : {std::size_t{0}, kRows - rows}) {
            Acting some(remembering, rows, *kernels);
            run(some, first);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
              const float* const from = whole.state[i].data() + first * sizes[i];
              CHECK(same_bytes(some.state[i], Floats(from, from + rows * sizes[i])));
            }
            CHECK(same_bytes(some.value, Floats(&whole.value[first], &whole.value[first] + rows)));
            CHECK(same_bytes(some.log_prob, Floats(&whole.log_prob[first], &whole.log_prob[first] + rows)));
          }
        }
      }
    }
  }
}

TEST(an_episode_begins_with_nothing_whatever_was_carried) {
  for (const std::string& kind : kKinds) {
    Acting from_garbage(Remembering(kind, 2, 19, CriticBody::kOwn), 3),
        from_zeros(Remembering(kind, 2, 19, CriticBody::kOwn), 3);
    for (std::size_t tensor = 0; tensor < from_garbage.state.size(); ++tensor) {
      const std::size_t size = from_garbage.policy.state_sizes()[tensor];
      for (std::size_t i = 0; i < size; ++i) {
        from_garbage.state[tensor][size + i] = std::nanf("");
        from_garbage.state[tensor][i] = from_zeros.state[tensor][i] = 0.25f;
      }
    }
    const bool starts[] = {false, true, false}, none[] = {false, false, false};
    const Floats before = from_garbage.state[0];
    from_garbage.observe(1);
    from_zeros.observe(1);
    CHECK(same_bytes(from_garbage.valued(starts), from_zeros.valued(none)));
    CHECK(same_bytes(from_garbage.state[0], before));  // values change nothing
    from_garbage.act(1, starts);
    from_zeros.act(1, nullptr);
    for (std::size_t tensor = 0; tensor < from_garbage.state.size(); ++tensor) {
      CHECK(same_bytes(from_garbage.state[tensor], from_zeros.state[tensor]));
    }
    CHECK(same_bytes(from_garbage.log_prob, from_zeros.log_prob));
  }
}

TEST(the_next_state_may_go_elsewhere) {
  for (const std::string& kind : kKinds) {
    const Remembering remembering(kind, 3, 9, CriticBody::kOwn);
    Acting in_place(remembering, 60), elsewhere(remembering, 60);
    for (std::size_t step = 0; step < 3; ++step) {
      in_place.observe(step);
      elsewhere.observe(step);
      in_place.act(step, nullptr);
      auto next = elsewhere.state;
      const auto before = elsewhere.state;
      elsewhere.act(step, nullptr, &next);
      for (std::size_t tensor = 0; tensor < next.size(); ++tensor) {
        CHECK(same_bytes(elsewhere.state[tensor], before[tensor]));
        CHECK(same_bytes(next[tensor], in_place.state[tensor]));
      }
      elsewhere.state = next;
    }
  }
}

TEST(sync_names_the_tensors_of_a_memory_that_do_not_fit) {
  const Remembering remembering("lstm", 2, 4, CriticBody::kShared);
  Policy policy(remembering.plan);
  auto tensors = remembering.made_up.named();
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == "actor_cells.weight_ih_l1") tensor.shape = {16, 5};
    if (tensor.name == "actor_cells.weight_hh_l0") tensor.shape = {12, 4};
    if (tensor.name == "actor_cells.bias_hh_l1") tensor.name = "actor_cells.bias_hh_l2";
  }
  const std::string message = testing::refusal_of([&] { policy.sync(tensors); });
  CHECK(message.find("actor_cells.weight_ih_l1 has shape [16, 5], not [16, 4]") != std::string::npos);
  CHECK(message.find("actor_cells.weight_hh_l0 has shape [12, 4], not [16, 4]") != std::string::npos);
  CHECK(message.find("missing actor_cells.bias_hh_l1") != std::string::npos);
  CHECK(message.find("unknown actor_cells.bias_hh_l2") != std::string::npos);
}

TEST(plans_of_memories_that_contradict_themselves) {
  auto plan = Remembering("gru", 1, 4, CriticBody::kBranch).plan;
  plan.actor.memory = {"none"};
  CHECK_THROWS(Policy(plan), std::invalid_argument);
  plan = Remembering("gru", 1, 4, CriticBody::kOwn).plan;
  plan.critic.takes_actor_memory = true;
  CHECK_THROWS(Policy(plan), std::invalid_argument);
  plan = Remembering("gru", 1, 0, CriticBody::kShared).plan;
  CHECK_THROWS(Policy(plan), std::invalid_argument);
}

}  // namespace
