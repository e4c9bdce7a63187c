"""PettingZoo's parallel envs as rows: who counts when, and what is handed to whom."""

import copy
import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from surefoot.envs.adapters.pettingzoo_env import is_parallel_env
from surefoot.envs.adapters.pettingzoo_factory import pettingzoo_factory
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.protocol import Slot, VecEnv, new_slot
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import EnvError, NonFiniteError
from surefoot.philox import Stream, derived_seed
from surefoot.settings.config import EnvConfig
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from tests.envs.tasks import ACTIONS, opened
from tests.envs.teams import TEAM, Script, TeamEnv, teams

FIELDS = ("obs", "reward", "terminated", "truncated", "valid", "action_mask")
Seen = dict[str, np.ndarray]


def seen(slot: Slot, env: VecEnv) -> Seen:
    found = {name: np.copy(getattr(slot, name)) for name in FIELDS if getattr(slot, name) is not None}
    return found | {"final_obs": np.copy(env.final_obs)}


def choices_of(slot: Slot, turn: int) -> np.ndarray:
    """Another action for every row and turn; where there is a mask, the first that it allows."""
    if slot.action_mask is not None:
        return slot.action_mask.argmax(1)
    return (np.arange(len(slot.reward)) + turn) % 4


def run(env: VecEnv, num_steps: int) -> list[Seen]:
    """What each step gave, the reset first."""
    slot = opened(env)
    steps = [seen(slot, env)]
    for turn in range(num_steps):
        slot.reward[:], slot.terminated[:], slot.truncated[:], slot.valid[:] = 77, True, True, True
        env.step(choices_of(slot, turn), slot)
        check_step(env, slot, turn)
        steps.append(seen(slot, env))
    return steps


def story(env: VecEnv, num_steps: int, row: int) -> str:
    """A row's steps in letters: v valid, - not; with T, L or B where its episode ended so."""
    letters = {(False, False): "", (True, False): "T", (False, True): "L", (True, True): "B"}
    return " ".join(
        ("v" if step["valid"][row] else "-") + letters[bool(step["terminated"][row]), bool(step["truncated"][row])]
        for step in run(env, num_steps)[1:]
    )


def code(obs: np.ndarray) -> float:
    return float(100_000 * obs[0] + 10_000 * obs[1] + 100 * obs[2] + obs[3])


@pytest.mark.parametrize("masks", ["", "info", "obs"])
def test_every_number_is_that_of_its_env_agent_episode_and_step(masks):
    """Two envs of three agents; of 18 steps, two whole rounds of the script."""
    steps = run(teams(2, masks=masks), 18)
    counted = 0
    for turn, (before, after) in enumerate(pairwise(steps)):
        for row in np.flatnonzero(after["valid"]):
            began, ended = before["obs"][row], after["terminated"][row] | after["truncated"][row]
            assert tuple(began[:2]) == divmod(row, 3)
            assert after["reward"][row] == code(began)
            arrived = after["final_obs"][row] if ended else after["obs"][row]
            assert code(arrived) == code(began) + 1
            if not masks:
                assert arrived[4] == (row + turn) % 4, "the action of another row"
            counted += 1
        invalid = ~after["valid"]
        assert not after["reward"][invalid].any()
        assert not (after["terminated"] | after["truncated"])[invalid].any()
    # Of the six steps of the first episode 6, 2 and 4 count, of the three of the second 3, 3 and 1; twice, in two envs.
    assert counted == (6 + 2 + 4 + 3 + 3 + 1) * 2 * 2


def test_agents_that_end_at_different_times_and_join_late():
    assert story(teams(1), 9, row=0) == "v v v v v vL v v vL"
    assert story(teams(1), 9, row=1) == "v vT - - - - v v vT"
    assert story(teams(1), 9, row=2) == "- v v v vB - vL - -"


def test_an_env_that_nobody_is_left_in_begins_anew_in_the_same_step():
    steps = run(teams(1), 6)
    assert steps[6]["obs"][:, :4].tolist() == [[0, 0, 1, 0], [0, 1, 1, 0], [0, 2, 1, 0]]
    assert steps[6]["final_obs"][0, :4].tolist() == [0, 0, 0, 6]
    # The others' last observations were made when they ended.
    assert steps[2]["final_obs"][1, :4].tolist() == [0, 1, 0, 2]
    assert steps[5]["final_obs"][2, :4].tolist() == [0, 2, 0, 5]


def test_rows_without_an_agent_are_zeros():
    steps = run(teams(1), 6)
    assert not steps[0]["obs"][2].any(), "has not joined"
    for turn in range(2, 6):
        assert not steps[turn]["obs"][1].any(), "is dead"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("aaaaaL", "v v v v vL v", id="lives to the end"),
        pytest.param("aaB", "v vB - - - v", id="both flags"),
        pytest.param("aat", "v vT - - - v", id="terminated without an observation"),
        pytest.param("aax", "v vL - - - v", id="leaves without a flag: cut off"),
        pytest.param("aag", "v -L - - - v", id="vanishes without a word: cut off, and the step tells nothing"),
        pytest.param("aaasaT", "v v - v vT v", id="is not mentioned in between, and goes on"),
        pytest.param("aarraT", "v v v v vT v", id="is rewarded without being seen"),
        pytest.param("aaDDDT", "v vT - - - v", id="is done but stays on the list"),
        pytest.param("...aaT", "- - - v vT -", id="joins in the middle"),
        pytest.param("aT.aaT", "vT - - v vT vT", id="dies and joins again"),
        pytest.param("aaTaaT", "v vT - v vT v", id="dies and joins again at once"),
        pytest.param("......", "- - - - - -", id="never takes part"),
        pytest.param("sssaaT", "- - - v vT -", id="takes part unseen, and counts when it has an observation to act on"),
        pytest.param("ssg...", "- - - - - -", id="takes part unseen and leaves"),
    ],
)
def test_who_counts_when(line, expected):
    """Beside an agent that takes part throughout; the sixth step begins the next episode."""
    env = teams(1, [{"ann": "aaaaaL", "bob": line}])
    assert story(env, 6, row=1) == expected
    assert story(env, 6, row=0) == "v v v v vL v"


def test_an_agent_that_is_not_seen_keeps_its_observation_and_its_mask():
    for masks in ("info", "obs", ""):
        steps = run(teams(1, [{"ann": "aaaaaL", "bob": "aasraT"}], masks=masks), 4)
        for turn in (2, 3):
            np.testing.assert_array_equal(steps[turn]["obs"][1], steps[1]["obs"][1])
            if masks:
                np.testing.assert_array_equal(steps[turn]["action_mask"][1], steps[1]["action_mask"][1])
        assert steps[4]["obs"][1, 3] == 4


@pytest.mark.parametrize("leaving", ["g", "t"])
def test_one_that_leaves_unseen_leaves_its_last_observation(leaving):
    steps = run(teams(1, [{"ann": "aaaaL", "bob": "aa" + leaving}]), 2)
    np.testing.assert_array_equal(steps[2]["final_obs"][1], steps[1]["obs"][1])


def test_survivors_of_an_env_that_ends_are_cut_off():
    """Nobody is listed any more: bob died, and ann had no flag."""
    env = teams(1, [{"ann": "aax", "bob": "aaT"}])
    assert story(env, 3, row=0) == "v vL v"
    assert story(env, 3, row=1) == "v vT v"
    assert run(env, 2)[2]["final_obs"][0, :4].tolist() == [0, 0, 0, 2]


def test_terminated_for_some_and_truncated_for_others():
    env = teams(1, [{"ann": "aaL", "bob": "aaT", "cid": "aaB"}])
    assert [story(env, 3, row) for row in range(3)] == ["v vL v", "v vT v", "v vB v"]


def test_an_env_all_of_whose_agents_are_done_is_over_even_if_it_lists_them():
    env = teams(1, [{"ann": "aaDD", "bob": "aDDD"}])
    assert [story(env, 4, row) for row in range(2)] == ["v vT v vT", "vT - vT -"]


def test_what_an_env_says_of_dead_agents_does_not_matter():
    """Rewards, observations and flags of agents that do not take part, up to NaN."""
    clean = run(teams(2), 18)
    for garbage in (1e30, math.nan):
        for step, other in zip(clean, run(teams(2, garbage=garbage), 18), strict=True):
            for name, value in step.items():
                np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_truncation_as_termination():
    makers = [partial(TeamEnv, 0, [{"ann": "aaL", "bob": "al", "cid": "aax"}])]
    env = PettingZooEnvs(makers, seed=3, truncation_as_termination=True)
    assert [story(env, 3, row) for row in range(3)] == ["v vT v", "vT - vT", "v vT v"]


@pytest.mark.parametrize("masks", ["info", "obs"])
def test_masks_are_those_of_the_observation_beside_them(masks):
    """The envs refuse what they forbid; rows without an agent allow everything."""
    env = teams(2, masks=masks)
    assert env.mask_size == 4
    assert env.obs_spec == teams(1).obs_spec
    for step in run(env, 18):
        for row, (obs, mask) in enumerate(zip(step["obs"], step["action_mask"], strict=True)):
            turn = int(row % 3 + obs[2] + obs[3])
            is_there = obs.any()  # luck is never 0
            np.testing.assert_array_equal(mask, np.arange(4) != turn % 4 if is_there else np.ones(4, dtype=bool))


@pytest.mark.parametrize("actions", ACTIONS)
def test_every_agent_gets_its_own_action_in_the_dtype_of_its_space(actions):
    env, space = teams(2, [{"ann": "aaaaL", "bob": "aaaaL"}], actions=actions), ACTIONS[actions]
    slot = opened(env)
    space.seed(5)
    given = [[space.sample() for _ in range(4)] for _ in range(3)]
    dtype = np.float32 if isinstance(space, spaces.Box) else np.int64  # what policies give
    for actions_of_rows in given:
        env.step(np.stack(actions_of_rows).astype(dtype), slot)
    for row in range(4):
        received = [step["bob" if row % 2 else "ann"] for step in env._envs[row // 2].env.received]
        np.testing.assert_allclose(received, [step[row] for step in given], rtol=1e-6)


def test_masks_of_box_actions_are_ignored():
    env = teams(1, actions="box", masks="obs")
    assert env.mask_size == 0
    assert opened(env).action_mask is None


def test_env_i_is_seeded_from_the_seed_and_i():
    env = teams(3, seed=6)
    slot = opened(env)
    for index in range(3):
        seed = derived_seed(6, index, Stream.ENV_SEED)
        assert slot.obs[3 * index, 5] == np.float32(np.random.default_rng([seed, 0]).random())
        assert env.describe(3 * index + 1) == f"env {index}, agent 'bob' (seed {seed})"


def test_rows_do_not_depend_on_how_many_envs_there_are():
    """S13: env 2 alone, among three and among five; and in a part of the whole."""
    among_five, among_three = run(teams(5), 12), run(teams(3), 12)
    alone = run(teams(1, first_env=2), 12)
    for five, three, one in zip(among_five, among_three, alone, strict=True):
        for name in ("reward", "terminated", "truncated", "valid"):
            np.testing.assert_array_equal(five[name][:9], three[name], err_msg=name)
            np.testing.assert_array_equal(three[name][6:], one[name], err_msg=name)
        # Without the action, which the test makes of the row.
        keep = [0, 1, 2, 3, 5]
        for name in ("obs", "final_obs"):
            np.testing.assert_array_equal(five[name][:9], three[name], err_msg=name)
            np.testing.assert_array_equal(three[name][6:, keep], one[name][:, keep], err_msg=name)
    assert teams(1, first_env=2).describe(1) == teams(3).describe(7)


def test_reset_starts_anew_from_the_same_seeds_and_at_a_later_step_from_others():
    env = teams(2)
    # After three steps cid takes part, who is not there in the beginning.
    for before, after in zip(run(env, 3), run(env, 3), strict=True):
        for name in ("obs", "reward", "terminated", "truncated", "valid"):
            np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    first, later = opened(env), new_slot(env.num_rows, env.obs_spec, 0)
    env.reset(later, 512)
    assert (first.obs[0] != later.obs[0]).any()
    assert f"seed {derived_seed(3, 1, Stream.ENV_SEED, 512)}" in env.describe(3)


@pytest.mark.parametrize("masks", ["", "info"])
def test_rows_go_on_from_a_checkpoint(masks, tmp_path):
    """Saved while bob is dead and unseen; through a file, into fresh envs."""
    script = [{"ann": "aaaaaaL", "bob": "aaT", "cid": "aaasaB"}]
    env = teams(2, script, masks=masks)
    slot = opened(env)
    for turn in range(3):
        env.step(choices_of(slot, turn), slot)
    write_checkpoint(tmp_path / "envs.safetensors", {"envs": env.save_state()})
    fresh = teams(2, script, masks=masks)
    fresh.load_state(read_checkpoint(tmp_path / "envs.safetensors")["envs"], 3)
    fresh_slot = copy.deepcopy(slot)
    for turn in range(3, 12):
        env.step(choices_of(slot, turn), slot)
        fresh.step(choices_of(fresh_slot, turn), fresh_slot)
        for name, value in seen(slot, env).items():
            if name != "final_obs":
                np.testing.assert_array_equal(value, seen(fresh_slot, fresh)[name], err_msg=f"{name} {turn}")


def test_envs_that_cannot_say_make_the_whole_state_unknown():
    class MuteEnv(TeamEnv):
        save_state = property()  # type: ignore[assignment]

    assert PettingZooEnvs([TeamEnv, MuteEnv], seed=0).save_state() is None
    assert PettingZooEnvs([TeamEnv], seed=0).save_state() is not None


def test_close_twice():
    closed = []

    class ClosingEnv(TeamEnv):
        def close(self) -> None:
            closed.append(self._index)

    env = PettingZooEnvs([partial(ClosingEnv, 0), partial(ClosingEnv, 1)], seed=0)
    env.close()
    env.close()
    assert closed == [0, 1]


class RaisingEnv(TeamEnv):
    """Raises in its constructor, in a reset that no seed was given to, or in its second step."""

    def __init__(self, where: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._where = where
        self._raise_in("constructor")

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is None:
            self._raise_in("reset")
        return super().reset(seed)

    def step(self, actions: dict[str, Any]) -> Any:
        if self._step == 1:
            self._raise_in("step")
        return super().step(actions)

    def _raise_in(self, where: str) -> None:
        if where == self._where:
            raise RuntimeError(f"the {where} is broken")


def test_an_env_that_raises_in_its_constructor():
    with pytest.raises(EnvError, match="env 5 could not be created: RuntimeError: the constructor is broken") as caught:
        PettingZooEnvs([TeamEnv, partial(RaisingEnv, "constructor")], seed=0, first_env=4)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_env_that_raises(where):
    env = PettingZooEnvs([TeamEnv, partial(RaisingEnv, where)], seed=0, first_env=4)
    seed = derived_seed(0, 5, Stream.ENV_SEED)
    with pytest.raises(
        EnvError, match=rf"env 5 \(seed {seed}\) raised an exception in {where}: RuntimeError"
    ) as caught:
        run(env, 12)
    assert isinstance(caught.value.__cause__, RuntimeError)


def spoiled(script: list[Script] | None = None, **methods: Any) -> PettingZooEnvs:
    """One env with some of its methods replaced."""
    kind = type("SpoiledEnv", (TeamEnv,), methods)
    return PettingZooEnvs([lambda: kind(0, script or TEAM)], seed=3)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"reset": lambda self, seed=None, options=None: {}}, r"env 0 \(seed \d+\): reset must return \(observations"),
        ({"step": lambda self, actions: ({}, {}, {}, {})}, r"env 0 \(seed \d+\): step must return \(observations, rew"),
        ({"step": lambda self, actions: ([], {}, {}, {}, {})}, "step must return .* dicts by agent"),
        ({"_who": lambda self, letters: ["zoe"]}, "lists agent 'zoe', which is not in its possible_agents"),
        ({"_who": lambda self, letters: []}, "has no agents after reset; list the active agents in env.agents"),
        ({"_observe": lambda self, agent: np.zeros(5)}, r"env 0, agent 'ann' \(seed \d+\) returned .* shape \(5,\)"),
        (
            {"step": lambda self, actions: ({}, {"bob": "much"}, {}, {}, {})},
            "agent 'bob' .*: the reward must be one number",
        ),
        ({"step": lambda self, actions: ({}, {}, {"bob": 0.5}, {}, {})}, "agent 'bob' .* must be booleans, got 0.5"),
    ],
)
def test_envs_that_break_the_contract(methods, message):
    if "_who" in methods:
        methods = methods | {"_observe": lambda self, agent: np.zeros(6), "code": lambda self, agent: 0}
    with pytest.raises(EnvError, match=message):
        run(spoiled(**methods), 1)


def test_a_truncation_without_a_last_observation_is_refused_with_the_remedy():
    for line in ("al", "aX"):
        with pytest.raises(
            EnvError, match=r"agent 'bob' .* truncated without a final obs.* env\.truncation_as_termination: true"
        ):
            run(teams(1, [{"ann": "aaL", "bob": line}]), 1)


def test_not_finite_numbers_of_living_agents_are_refused():
    env = spoiled(_observe=lambda self, agent: np.full(6, np.nan if agent == "bob" else 0.0))
    slot = opened(env)
    with pytest.raises(NonFiniteError, match=r"env 0, agent 'bob' \(seed \d+\) returned nan in its observation"):
        check_step(env, slot, 0)


def test_a_mask_that_is_missing_or_of_the_wrong_size():
    env = teams(1, masks="info")
    env._envs[0].env._infos = dict
    with pytest.raises(EnvError, match=r"env 0, agent 'ann' \(seed \d+\) returned no 'action_mask'"):
        run(env, 1)
    env = teams(1, masks="obs")
    env._envs[0].env.mask = lambda agent: np.ones(3)
    with pytest.raises(
        EnvError, match=r"agent 'ann' .* returned an action mask with 3 entries; its action space requires 4"
    ):
        run(env, 1)


def test_an_observation_without_the_dict_that_its_space_promises():
    env = teams(1, masks="obs")
    env._envs[0].env._observations = lambda: {"ann": np.zeros(6, np.float32)}
    with pytest.raises(EnvError, match=r"agent 'ann' .* returned an observation of shape"):
        run(env, 1)


@pytest.mark.parametrize("role", ["observation", "action"])
def test_agents_with_different_spaces_are_named(role):
    class UnequalEnv(TeamEnv):
        pass

    def space(self: Any, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(4 + (agent == "cid"))

    setattr(UnequalEnv, f"{role}_space", space)
    with pytest.raises(
        EnvError,
        match=rf"their {role} spaces must be equal, but 'cid' \(Discrete\(5\)\) differ from 'ann' .*; pad them",
    ):
        PettingZooEnvs([UnequalEnv], seed=0)


def test_envs_with_different_agents_are_refused():
    others = partial(TeamEnv, 1, [{"ann": "aL", "eve": "aL"}])
    with pytest.raises(EnvError, match=r"env 1 .* has the possible_agents \['ann', 'eve'\], but env 0 .*same order"):
        PettingZooEnvs([TeamEnv, others], seed=0)


def test_an_env_that_does_not_say_who_its_agents_can_be():
    with pytest.raises(EnvError, match=r"env 0 .*; list all of them in env\.possible_agents"):
        PettingZooEnvs([partial(TeamEnv, 0, [{}])], seed=0)


def test_what_a_parallel_env_is():
    import gymnasium as gym
    from mpe2 import simple_spread_v3

    assert is_parallel_env(TeamEnv())
    assert is_parallel_env(simple_spread_v3.parallel_env())
    assert not is_parallel_env(simple_spread_v3.env()), "agents take turns"
    assert not is_parallel_env(gym.make("CartPole-v1"))


def test_a_real_task():
    env = PettingZooEnvs([pettingzoo_factory("mpe2.simple_spread_v3", EnvConfig(max_episode_steps=7))] * 2, seed=1)
    assert (env.num_rows, env.mask_size) == (6, 0)
    assert story(env, 15, row=4) == "v v v v v v vL v v v v v v vL v"
    env.close()
