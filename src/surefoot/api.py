"""PPO: the Python API, with familiar names."""

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from surefoot.agent_envs import AgentEnvs
from surefoot.assembly import assemble, resumed, started
from surefoot.call_arguments import (
    SB3_POLICIES,
    Pathlike,
    as_path,
    check_fits,
    check_modules,
    encoder_factory,
    program_of,
    refuse_unknown,
    source_settings,
    whole_number,
    writable_file,
)
from surefoot.compose import (
    EVALUATION_ROWS,
    Specs,
    build_env,
    build_policy,
    build_saved_policy,
    evaluation_rows,
    learner_plan,
)
from surefoot.data.records import State
from surefoot.data.specs import HybridSpec
from surefoot.data.tree import tree_first, tree_map
from surefoot.envs.make import EnvSource, is_instance
from surefoot.envs.protocol.agent_parameters import Values, agent_values
from surefoot.envs.protocol.batching import as_batch
from surefoot.errors import CheckpointError, ConfigError, EnvError
from surefoot.evaluation.evaluate import evaluate
from surefoot.evaluation.evaluation import Evaluation
from surefoot.evaluation.grid import Cell, Grid, checked_axes, evaluate_cells
from surefoot.export.onnx_file import Exported, export_onnx
from surefoot.export.parity import TOLERANCE
from surefoot.learning.attacks import Attack, attacker
from surefoot.learning.frozen import Frozen, frozen_now, learnable
from surefoot.learning.native_learner import LearnerPlan
from surefoot.learning.terms import Objective
from surefoot.machine.torch_defaults import torch_defaults
from surefoot.machine.turns import TakesTurns, in_turn
from surefoot.models import find_model
from surefoot.output.quoted import quoted
from surefoot.philox import Stream, uniforms
from surefoot.policies.acting import as_mask, as_starts, as_state
from surefoot.policies.actor_critic import ActorCritic, EncoderFactory
from surefoot.policies.policy import Policy
from surefoot.presets import NO_PRESET, configured
from surefoot.run import Run
from surefoot.saved_run import THE_ENV, SavedRun, differing, saved_setup
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config, by_name
from surefoot.settings.synonyms import of_agent
from surefoot.starting import starting_point
from surefoot.storage.saved import Saved, reading
from surefoot.storage.state import ModuleState, load_states
from surefoot.storage.trust import Trust
from surefoot.telemetry.console import ConsoleMode, mode_in_python
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.hooks import HookLike
from surefoot.training.policy_only import is_policy_only, saved_with_masks
from surefoot.training.policy_only import policy_only as only_policy
from surefoot.training.run_directory import RunDirectory
from surefoot.training.stateful import saved_agent_values
from surefoot.training.trainer import Trainer
from surefoot.watching.playing import MOST_STEPS
from surefoot.watching.recording import Recording, Shown, Tell, record, show
from surefoot.watching.stage import MOST_FPS
from surefoot.watching.target import check_display, check_video_file
from surefoot.watching.video_file import most_fps

EXPORT_ROWS = 2
"""Number of parallel envs for checking an exported policy."""


class PPO(TakesTurns):
    """An agent: `PPO("HalfCheetah-v5", seed=1).learn(1_000_000)`.

    `env` is a preset, a Gymnasium id, an env, a factory of envs, a list of factories (one env each) or a Gymnasium
    vector env. An id has its preset, others have one only if `preset` names it; `preset="none"` does without. Any
    setting can be passed by name (`gamma=0.98`), as `section.key`, or as a whole section (`ppo={"gamma": 0.98}`).
    `encoder` and `policy` accept custom modules: an encoder is a module or a function of the observation spec that
    returns one, a policy a `Policy`.
    """

    @torch_defaults()
    def __init__(
        self,
        env: EnvSource,
        *misplaced: Any,
        policy: Policy | dict[str, Any] | None = None,
        encoder: nn.Module | EncoderFactory | str | dict[str, Any] | None = None,
        preset: str | None = None,
        **settings: Any,
    ) -> None:
        if misplaced or (isinstance(env, str) and env in SB3_POLICIES):
            raise ConfigError(
                ["PPO: pass the env first and everything else by name: PPO(env, hidden=[64, 64], seed=1)"]
            )
        if isinstance(policy, dict):
            settings["policy"], policy = policy, None
        if isinstance(encoder, str | dict):
            settings["encoder"], encoder = encoder, None
        check_modules(policy, encoder)
        source, layer = source_settings(env)
        target, base = (env, preset) if isinstance(env, str) else (None, preset or NO_PRESET)
        given = by_name(settings)
        config = configured(target, {"preset": base}, layer if target is None else {}, given).config
        check_fits(source, config, given)
        vec_env = build_env(config, source)
        specs = Specs(vec_env.obs_spec, vec_env.action_spec)
        own = policy or build_policy(config, specs, encoder_factory(encoder))
        start = starting_point(config, specs)
        if start is not None:
            load_states({"policy": ModuleState(own, "policy")}, start.state)
        envs = AgentEnvs(config, specs, source, vec_env)
        self._begin(config, specs, own, envs, None if start is None else start.state)

    def _begin(
        self, config: Config, specs: Specs, policy: Policy, envs: AgentEnvs, saved: Mapping[str, Any] | None
    ) -> None:
        super().__init__()
        self.config, self.specs, self.policy = config, specs, policy
        learnable(policy)  # whatever is frozen from now on can be thawed
        self._envs, self._saved = envs, saved
        self._run: Run | None = None
        self._default_steps = config.train.steps  # learn() makes train.steps the total
        self._predictions = 0
        env = envs.training
        self._needs_mask = bool(env.mask_size) if env is not None else saved is not None and saved_with_masks(saved)

    @in_turn
    @torch_defaults()
    def learn(
        self,
        steps: int | None = None,
        *,
        run_dir: Pathlike | None = None,
        hooks: Sequence[HookLike] = (),
        progress: bool | None = None,
        **unknown: Any,
    ) -> "PPO":
        """Train for `steps` more steps (default: train.steps); with `run_dir`, write a complete run directory.

        `hooks` are called with the training loop; a function of the report that returns False ends it. By default, a
        line of progress is shown on a terminal and in a notebook; `progress=True` also prints elsewhere, `False` not
        at all.
        """
        refuse_unknown(unknown, "learn", "steps, run_dir, hooks and progress")
        if not isinstance(progress, bool | None):
            raise ConfigError([f"learn: progress: pass True or False, not {quoted(progress)}"])
        mode = mode_in_python(self.config.log.console, progress)
        steps = None if steps is None else whole_number(steps, "learn: steps", at_least=0)
        folder = None if run_dir is None else as_path(run_dir)
        run = self._begun()
        start = run.progress.step
        run.set_total(start + (self._default_steps if steps is None else steps))
        self.config = run.config
        if folder is None:
            self._train(run, None, hooks, mode)
        else:
            with RunDirectory(folder) as directory:
                directory.refuse_other_run(start)
                directory.write_config(self.config)
                self._train(run, directory, hooks, mode)
        return self

    @torch_defaults()
    def predict(
        self,
        obs: Any,
        state: State | None = None,
        episode_start: NDArray[np.bool_] | bool | None = None,
        deterministic: bool = True,
        action_mask: NDArray[np.bool_] | None = None,
        **unknown: Any,
    ) -> tuple[Any, State]:
        """Env actions for one observation or a batch of observations, and the next recurrent state."""
        refuse_unknown(unknown, "predict", "obs, state, episode_start, deterministic and action_mask")
        batch, is_single = as_batch(obs, self.specs.obs)
        rows = len(tree_first(batch))
        state, start = as_state(state, self.policy, rows), as_starts(episode_start, rows)
        mask = as_mask(action_mask, self.specs.action, rows, self._needs_mask)
        with torch.no_grad():
            output = self.policy(tree_map(torch.from_numpy, batch), state, start, mask)
            if deterministic:
                action = output.distribution.mode()
            else:
                action = output.distribution.sample(self._noise(rows))
            env_action = self.policy.head.to_env(action).numpy()
        chosen = env_action[0] if is_single else env_action
        spec = self.specs.action
        return (spec.split(chosen) if isinstance(spec, HybridSpec) else chosen), output.state

    @torch_defaults()
    def evaluate(
        self,
        episodes: int = 20,
        *,
        seed: int = 0,
        deterministic: bool = True,
        env: EnvSource | None = None,
        attack: Attack | None = None,
        **unknown: Any,
    ) -> Evaluation:
        """Play complete episodes from fixed seeds; the result has confidence intervals and figures of risk (`cvar`).

        With an attack, the policy sees adversarial observations: `Attack("pgd", epsilon=0.1)`. An agent that was given
        an env instance plays in that instance, which then continues where it was if it can save its state; otherwise
        training continues with new episodes.
        """
        refuse_unknown(unknown, "evaluate", "episodes, seed, deterministic, env and attack")
        episodes = whole_number(episodes, "evaluate: episodes", at_least=1)
        seed = whole_number(seed, "evaluate: seed", at_least=0)
        if not isinstance(attack, Attack | None):
            raise ConfigError([f"evaluate: attack: pass a surefoot.Attack, not {quoted(attack)}"])
        perturb = None if attack is None else attacker(self.policy, attack, seed)
        rows = evaluation_rows(self._envs.source if env is None else env, episodes)
        with self._envs.like_ours(env, seed, rows, self._agent_values()) as vec_env:
            return evaluate(self.policy, vec_env, episodes, seed, deterministic, perturb)

    @torch_defaults()
    def evaluate_over(
        self,
        over: Mapping[str, Sequence[Any]],
        episodes: int = 20,
        *,
        seed: int = 0,
        deterministic: bool = True,
        env: EnvSource | None = None,
        tell: Callable[[Cell], None] | None = None,
    ) -> Grid:
        """Evaluate at every combination of some values: `over={"level": range(10), "terrain": ["stairs", "gaps"]}`.

        A name is a parameter of the env if it declares one, else an argument of its constructor. Every cell plays from
        the same seeds. `tell` is called after every cell, for a progress bar.
        """
        axes, source = checked_axes(over), self._envs.source if env is None else env
        episodes = whole_number(episodes, "evaluate_over: episodes", at_least=1)
        seed = whole_number(seed, "evaluate_over: seed", at_least=0)
        declared = self._envs.declared_over(axes, env, self._agent_values())
        rows = evaluation_rows(source, episodes)

        def evaluate_at(cell: Cell) -> Evaluation:
            kwargs = {name: value for name, value in cell.items() if name not in declared}
            with self._envs.like_ours(env, seed, rows, self._agent_values(), kwargs) as vec_env:
                vec_env.set_parameters({name: value for name, value in cell.items() if name in declared})
                found = evaluate(self.policy, vec_env, episodes, seed, deterministic)
            if tell is not None:
                tell(cell)
            return found

        return evaluate_cells(axes, evaluate_at)

    @torch_defaults()
    def record(
        self,
        path: Pathlike,
        episodes: int = 1,
        *,
        seed: int = 0,
        deterministic: bool = True,
        env: EnvSource | None = None,
        max_steps: int = MOST_STEPS,
        tell: Tell | None = None,
    ) -> Recording:
        """Write a video of the episodes that `evaluate` plays with the same seed: .mp4 (extra `video`) or .gif.

        Longer episodes are cut off at `max_steps`. `tell` is called with every step, for a progress bar.
        """
        target, program = as_path(path), program_of("record", episodes, seed, deterministic, max_steps)
        check_video_file(target)
        fps = most_fps(target, MOST_FPS)
        with self._envs.stage("record", env, "rgb_array", seed, self._agent_values(), fps) as stage:
            return record(self.policy, stage, program, EVALUATION_ROWS, target, tell)

    @torch_defaults()
    def watch(
        self,
        episodes: int = 1,
        *,
        seed: int = 0,
        deterministic: bool = True,
        env: EnvSource | None = None,
        max_steps: int = MOST_STEPS,
        tell: Tell | None = None,
    ) -> Shown:
        """Show the same episodes in a window, which needs a display."""
        program = program_of("watch", episodes, seed, deterministic, max_steps)
        check_display()
        with self._envs.stage("watch", env, "human", seed, self._agent_values()) as stage:
            return show(self.policy, stage, program, EVALUATION_ROWS, tell)

    @torch_defaults()
    def export_onnx(self, path: Pathlike, *, env: EnvSource | None = None, tolerance: float = TOLERANCE) -> Exported:
        """Write an ONNX file and a script that runs it, after checking that both match the policy over an episode."""
        with self._envs.like_ours(env, self.config.train.seed, EXPORT_ROWS, self._agent_values()) as vec_env:
            return export_onnx(self.policy, vec_env, self.config, as_path(path), tolerance)

    @in_turn
    @torch_defaults()
    def save(self, path: Pathlike, *, policy_only: bool = False) -> None:
        """Write a checkpoint from which the agent can act and continue training.

        With `policy_only`, it has weights, normalizers and config, but nothing to resume from: `learn` after `load`
        starts a new training with these weights.
        """
        target = writable_file(path)
        saved = self._saved_now() if self._run is None else None
        state = self._begun().state() if saved is None else saved
        try:
            write_checkpoint(target, only_policy(state) if policy_only else state)
        except (OSError, ValueError) as error:  # ValueError: a null byte in the name
            cause = error.strerror if isinstance(error, OSError) else error
            raise CheckpointError(f"cannot save {target}: {cause}; choose another file") from error

    @classmethod
    @torch_defaults()
    def load(
        cls,
        path: Pathlike,
        env: EnvSource | None = None,
        *,
        policy: Policy | None = None,
        encoder: nn.Module | EncoderFactory | None = None,
        trust: Trust = False,
        device: str | None = None,
    ) -> "PPO":
        """Load an agent from a checkpoint; pass custom modules, and custom envs for further training, again.

        `path` is a .safetensors file, a run directory (its best policy, or the newest if there is none), or a policy of
        the zoo: `zoo:Hopper-v5`. `device` replaces `train.device`, for example if this machine has no GPU; agents act
        on the CPU in any case. A checkpoint can name parts and envs outside Surefoot. They are imported only with
        `trust=True`, if `trust` or the config.yaml of the run directory contains their names, or if their module is
        imported already. So is the address of a Ray cluster: `learn` connects only to one that is trusted.
        """
        model = find_model(as_path(path))
        path, trust = model.file, model.trusted(trust)
        check_modules(policy, encoder)
        state = read_checkpoint(path)
        config, specs = saved_setup(state, path, trust)
        source, layer = (None, {}) if env is None else source_settings(env)
        placed = {} if device is None else {"train.device": device}
        now = build_config(config.model_dump(mode="json"), layer, placed)
        own = policy or build_saved_policy(config, specs, state, path, encoder_factory(encoder))
        with reading(path):
            saved_agent_values(state)  # refuses a damaged file now
            if not is_policy_only(state):
                Saved(state)["hooks"].entries()
                if any(differing(config, now, THE_ENV)) and Saved(state)["collector"].entries():
                    state["collector"]["envs"] = None  # the state of the old envs does not apply to others
            load_states({"policy": ModuleState(own, "policy"), "frozen": Frozen(own, now.optimizer.frozen)}, state)
        agent = cls.__new__(cls)
        envs = AgentEnvs(now, specs, source)
        envs.distrust(path, config, trust, env is not None)
        agent._begin(now, specs, own, envs, state)
        return agent

    @in_turn
    @torch_defaults()
    def __deepcopy__(self, memo: dict[int, Any]) -> "PPO":
        """An independent copy with new envs: the envs of an engine cannot be copied."""
        if is_instance(self._envs.source):
            raise EnvError(
                "an agent that was given an env instance cannot be copied; save it, then PPO.load(path, env=...)"
            )
        saved = self._saved_now() if self._run is None else self._run.state()
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        policy, state = deepcopy(self.policy, memo), deepcopy(saved, memo)
        other._begin(self.config, self.specs, policy, self._envs.copy(), state)
        other._default_steps, other._predictions = self._default_steps, self._predictions
        return other

    @in_turn
    @torch_defaults()
    def close(self) -> None:
        """Close the envs; `predict` and `save` still work, and `learn` creates new envs."""
        try:
            if self._run is not None:
                self._saved, self._run = self._run.state(), None
        finally:
            self._envs.close()

    def _saved_now(self) -> Mapping[str, Any] | None:
        """The saved state with what the user froze and thawed since."""
        if self._saved is None or is_policy_only(self._saved):
            return self._saved
        return {**self._saved, "frozen": frozen_now(self.policy, self.config.optimizer.frozen)}

    def _begun(self) -> Run:
        """The run of the agent, assembled on first use: `predict` does not need it."""
        if self._run is None:
            env, state = self._envs.to_train(), self._saved_now()
            saved = None if state is None else SavedRun(self._envs.file, state, self.config, self.specs)
            take = started if state is not None and is_policy_only(state) else resumed
            self._run = assemble(self.config, env, saved, take, policy=self.policy, source=self._envs.source)
            self._envs.rows = self._run.trainer.collector.rows
        return self._run

    def _started(self) -> Trainer:
        return self._begun().trainer

    def _train(self, run: Run, directory: RunDirectory | None, hooks: Sequence[HookLike], console: ConsoleMode) -> None:
        run.prepare(directory, hooks)
        try:
            _, exit_code = run.train(console)
        finally:
            run.prepare()
        # The iteration is finished and saved; now raise the interruption that the caller expects.
        if exit_code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        if exit_code:
            raise SystemExit(exit_code)

    def _agent_values(self) -> Values:
        """The parameters of the envs that belong to this agent: those of training, or those that were saved."""
        if self._run is None and self._saved is not None:
            return saved_agent_values(self._saved)
        return {} if self._envs.training is None else agent_values(self._envs.training)

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.policy.parameters())
        hidden, memory = "-".join(map(str, self.config.policy.hidden)), self.config.policy.memory.kind
        kind = f" {hidden}" + f" {memory}" * (memory != "none") if isinstance(self.policy, ActorCritic) else ""
        what = f"{type(self.policy).__name__}{kind} with {count:,} parameters"
        return f"PPO({self.config.env.id}: {what}, trained for {self.steps_trained:,} steps, {self._learner} learner)"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only called for what an agent does not have."""
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{of_agent(name)}")

    @property
    def steps_trained(self) -> int:
        """Steps trained so far."""
        if self._run is not None:
            return self._run.progress.step
        return 0 if self._saved is None or is_policy_only(self._saved) else int(self._saved["progress"]["step"])

    @property
    def _learner(self) -> str:
        """Who learns; a part that cannot be built is reported by `learn`."""
        with suppress(Exception):
            plan = learner_plan(self.config, self.policy, Objective.of(self.config.ppo))
            return "native" if isinstance(plan, LearnerPlan) else "torch"
        return self.config.train.learner

    def _noise(self, rows: int) -> Tensor:
        self._predictions += 1
        count = self.policy.head.noise_size
        drawn = uniforms(self.config.train.seed, [self._predictions], np.arange(rows), count, Stream.PREDICTION)
        return self.policy.head.noise(torch.from_numpy(drawn))[0]
