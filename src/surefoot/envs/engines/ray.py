"""The `ray` engine: actors on the machines of a Ray cluster, each with an ordinary engine for a share of the envs."""

import logging
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from surefoot.data.tree import tree_map
from surefoot.envs.blueprint import Blueprint, shares
from surefoot.envs.engines import Engine, RowSpecs, engines, joined_state, rows_of, state_of_envs
from surefoot.envs.engines.block import copy_beginning, copy_rows
from surefoot.envs.engines.worker_process import portable
from surefoot.envs.protocol import ALL_ROWS, ArrayTree, Slot, new_slot, slot_for, step_all
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.parameters import values_of_rows
from surefoot.errors import ConfigError, EnvError, PartError, SurefootError
from surefoot.machine.ray_cluster import INLINE_BYTES, INLINED, Node, RayCluster
from surefoot.native.kernels import core_or_none
from surefoot.output.failures import brief, origin
from surefoot.settings.config import Engine as EnginePart
from surefoot.settings.config import Number, Positive, RolloutConfig
from surefoot.settings.parts import PartSettings
from surefoot.version import VERSION

_log = logging.getLogger("surefoot")

RESTART_WINDOW_S = 3600.0
_START_S = 120.0
_POLL_S = 1.0
"""Seconds between two looks at the clock; also the longest time before a signal is noticed."""

Arguments = Callable[[int], tuple[Any, ...]]
"""The arguments of a call for each share; asked again when a call is repeated."""


@dataclass(frozen=True)
class Home:
    """Where a share lives, and what steps it there."""

    host: str
    version: str
    instructions: str
    engine: str
    why_not_native: str
    specs: RowSpecs


@dataclass(frozen=True)
class Reply:
    """The answer of an actor, with the state of its envs after the call, from which a replacement continues."""

    answer: Any
    state: dict[str, Any] | None
    restarts: int


@dataclass(frozen=True)
class Refusal:
    """An error that another actor would not fix."""

    kind: type[SurefootError]
    message: str
    trace: str

    def error(self) -> SurefootError:
        """The same error in this process."""
        return ConfigError([self.message]) if issubclass(self.kind, ConfigError) else self.kind(self.message)


class RayActor:
    """A process of the cluster: an engine for a share of the envs, and what a collector keeps with it."""

    env: Engine
    kept: Any

    def apply(self, keeps_state: bool, function: Callable[..., Any], *arguments: Any) -> Reply | Refusal:
        """Call a function with this actor."""
        try:
            answer = function(self, *arguments)
            return Reply(answer, self.env.save_state() if keeps_state else None, self.env.restarts)
        except Exception as error:
            if isinstance(error, SurefootError):
                return Refusal(type(error), str(error), traceback.format_exc())
            return Refusal(PartError, f"an actor raised {brief(error)} ({origin(error)})", traceback.format_exc())


@engines.register("ray")
class RayEngine(Engine):
    """Rows on many machines; a whole rollout is collected by one call per actor (`RayCollector`).

    A lost actor is replaced. Its envs continue from their state before the call, and the call is repeated.
    """

    name = "ray"
    steps_here = False

    class Settings(PartSettings):
        """The cluster, and the engine inside each actor."""

        actors: Number = Field(
            0, le=65536, description="number of actors, each with an equal share of the environments; 0: one per node"
        )
        address: str | None = Field(
            None, description="address of a Ray cluster, or auto for a running one; null starts one on this machine"
        )
        engine: EnginePart = Field(
            PartSettings(kind="auto"),
            description="engine inside each actor; rollout.workers and rollout.groups are those of each actor",
        )
        call_timeout_s: Positive = Field(
            600.0, description="seconds before a rollout of an actor counts as hung and the actor is replaced"
        )
        max_restarts: int = Field(
            10, ge=0, description="maximum number of replaced actors per hour; one more saves and stops the run"
        )

        @field_validator("engine")
        @classmethod
        def _runs_in_one_process(cls, engine: PartSettings) -> PartSettings:
            if engine.kind == "ray":
                raise ValueError("must be an engine of one machine, such as auto, native, local or processes")
            return engine

    def __init__(self, blueprint: Blueprint, config: RolloutConfig) -> None:
        settings = config.engine
        assert isinstance(settings, RayEngine.Settings)
        self._settings, self._blueprint = settings, blueprint
        self._cluster = RayCluster(settings.address)  # stays connected: starting Ray again takes seconds
        self._ray, self._nodes = self._cluster.ray, self._living()
        if not self._nodes:
            raise EnvError("the Ray cluster has no node with a CPU; start one with `ray start`")
        count = min(settings.actors or len(self._nodes), blueprint.num_envs)
        self._envs = shares(range(blueprint.num_envs), count)
        self._setup: list[tuple[Callable[..., Any], Arguments]] = []
        self._states: list[dict[str, Any] | None] = [None] * count
        self._inner_restarts = [0] * count
        self._replaced: deque[float] = deque()
        self._has_begun, self._is_closed, self._step = False, False, 0
        rollout = on_this_machine(config).model_dump(mode="json")
        made = [portable((self._blueprint_of(envs), rollout)) for envs in self._envs]
        self._actors = [self._new_actor(share) for share in range(count)]
        try:
            homes = self.set_up(_construct, lambda share: (list(sys.path), os.getcwd(), made[share]))
            self._adopt(homes)
        except BaseException:
            self.close()
            raise

    def _adopt(self, homes: list[Home]) -> None:
        """Check that all shares are alike, and lay out their rows."""
        first = homes[0]
        for home in homes:
            if home.version != VERSION:
                raise EnvError(
                    f"node {home.host} has Surefoot {home.version}, this machine {VERSION}; install the same version"
                    " on all nodes"
                )
            if home.engine != first.engine:
                why = next(one.why_not_native for one in homes if one.engine != "native") or "see its log"
                raise EnvError(
                    f"node {first.host} steps its envs with the engine {first.engine} and node {home.host} with"
                    f" {home.engine} ({why}); set rollout.engine.engine"
                )
            here = _instructions()
            if home.instructions != here:
                _log.warning(
                    "node %s computes with the instructions %s and this machine with %s: results depend on where rows"
                    " are stepped; set SUREFOOT_INSTRUCTIONS to one that all nodes support",
                    *(home.host, home.instructions, here),
                )
        declared = [(f"actor {share}", home.specs.declared) for share, home in enumerate(homes)]
        first.specs.declared.refuse_differences(declared)
        self.inner, self.why_not_native = first.engine, first.why_not_native
        self.hosts = sorted({home.host for home in homes})
        self._lay_out([range(self._blueprint.num_envs)], first.specs, self._blueprint.first_env)
        self.shares = tuple(rows_of(envs, first.specs.rows_per_env) for envs in self._envs)
        self.final_obs: ArrayTree = new_slot(self.num_rows, self.obs_spec, 0).obs

    def put(self, value: Any, num_bytes: int) -> Any:
        """The value, to travel with calls, or a reference to one copy in the object store for all actors."""
        self._cluster.check_alive()
        return value if num_bytes < INLINE_BYTES // 2 else self._ray.put(value)

    def set_up(self, function: Callable[..., Any], arguments: Arguments) -> list[Any]:
        """Call a function on all actors, and on every replacement before its envs continue."""
        answers = self.ask(function, arguments, keeps_state=False)
        self._setup.append((function, arguments))
        return answers

    def ask(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        restart: Callable[[int], None] | None = None,
        keeps_state: bool = True,
    ) -> list[Any]:
        """Call a function on all actors at once; if an actor is lost, replace it and repeat its call.

        `restart` starts new episodes in a share whose envs cannot save their state; without it, their loss is an error.
        """
        self._check_open()
        shares = range(len(self._actors))
        replies: list[Reply | Refusal | None] = [None for _ in shares]
        waiting = {self._begin(share, keeps_state, function, arguments): share for share in shares}
        since = dict.fromkeys(shares, time.monotonic())
        patience_s = self._settings.call_timeout_s if keeps_state else self._setup_timeout_s
        while waiting:
            self._cluster.check_alive()
            ready, _ = self._ray.wait(list(waiting), timeout=_POLL_S)
            late = [call for call, share in waiting.items() if time.monotonic() - since[share] > patience_s]
            for call in dict.fromkeys([*ready, *late]):
                share = waiting.pop(call)
                try:
                    replies[share] = self._ray.get(call, timeout=patience_s if call in ready else 0)
                except self._ray.exceptions.RayError as error:
                    self._replace(share, error, restart)
                    waiting[self._begin(share, keeps_state, function, arguments)] = share
                    since[share] = time.monotonic()
        return [self._accept(share, reply, keeps_state) for share, reply in enumerate(self._agreed(replies))]

    @property
    def _setup_timeout_s(self) -> float:
        """An actor first starts an interpreter and imports."""
        return max(self._settings.call_timeout_s, _START_S)

    def _begin(self, share: int, keeps_state: bool, function: Callable[..., Any], arguments: Arguments) -> Any:
        return self._actors[share].apply.remote(keeps_state, function, *arguments(share))

    def _agreed(self, replies: list[Any]) -> list[Reply]:
        """All replies, or the error of the first share that refuses."""
        for reply in replies:
            if isinstance(reply, Refusal):
                _log.info("%s\n%s", reply.message, reply.trace)
                raise reply.error()
        return replies

    def _accept(self, share: int, reply: Reply, keeps_state: bool) -> Any:
        if keeps_state:
            self._states[share] = deepcopy(reply.state)  # a view would keep the whole reply
        self.restarts += reply.restarts - self._inner_restarts[share]  # of workers inside the actor
        self._inner_restarts[share] = reply.restarts
        return reply.answer

    def _one(self, share: int, function: Callable[..., Any], *arguments: Any, keeps_state: bool = False) -> Any:
        """Call a function on one actor; its loss is raised."""
        call = self._begin(share, keeps_state, function, lambda _: arguments)
        deadline = time.monotonic() + self._setup_timeout_s
        while not self._ray.wait([call], timeout=_POLL_S)[0] and time.monotonic() < deadline:
            self._cluster.check_alive()
        (reply,) = self._agreed([self._ray.get(call, timeout=0)])
        return self._accept(share, reply, keeps_state)

    def _living(self) -> list[Node]:
        """The nodes that have a CPU for actors."""
        return [node for node in self._cluster.nodes if node.cores]

    def _new_actor(self, share: int) -> Any:
        """Preferably on its own node, but on any other if that one is lost."""
        home = self._cluster.on(self._nodes[share % len(self._nodes)])
        # A replacement must never wait until a machine that is left has a free CPU in Ray's books. Not 0: then Ray
        # ignores the node.
        options = {"num_cpus": 0.001, "scheduling_strategy": home, "runtime_env": {"env_vars": INLINED}}
        return self._ray.remote(RayActor).options(**options).remote()

    def _replace(self, share: int, fault: Exception, restart: Callable[[int], None] | None) -> None:
        """A new actor whose envs continue from their last known state; too many per hour end the run."""
        while True:
            now = time.monotonic()
            while self._replaced and now - self._replaced[0] > RESTART_WINDOW_S:
                self._replaced.popleft()
            most = self._settings.max_restarts
            if len(self._replaced) >= most:
                self.close()
                raise EnvError(
                    f"actor {share} was lost ({brief(fault)}), and {most} actors were replaced within an hour"
                    " (rollout.engine.max_restarts)"
                ) from fault
            self._replaced.append(now)
            self.restarts += 1
            _log.warning(
                "actor %d was lost (%s); replacing it (%d of %d per hour) and repeating its share of the rollout",
                *(share, brief(fault), len(self._replaced), most),
            )
            with suppress(Exception):  # of an actor that is already gone
                self._ray.kill(self._actors[share])
            try:
                self._nodes = self._living() or self._nodes
                self._actors[share] = self._new_actor(share)
                self._inner_restarts[share] = 0
                for function, arguments in self._setup:
                    self._one(share, function, *arguments(share))
                if self._has_begun:
                    self._continue(share, restart)
                return
            except self._ray.exceptions.RayError as another:
                fault = another

    def _continue(self, share: int, restart: Callable[[int], None] | None) -> None:
        """Bring the envs of a new actor to where those of the lost one were."""
        state = self._states[share]
        if state is not None:
            self._one(share, _load_state, state, self._step)
            return
        if restart is None:
            raise EnvError(
                f"actor {share} was lost in the middle of a rollout, and its envs cannot save their state; resume the"
                " run from its last checkpoint"
            )
        _log.warning("the envs of actor %d cannot save their state: they start new episodes", share)
        self._one(share, _set_parameters, self._values_of(share, self.parameter_values))
        restart(share)

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every env."""
        self._has_begun, self._step = False, step  # a replacement has nothing to continue
        self._write_beginnings(self.ask(_reset, lambda _: (step,)), slot)
        self._has_begun = True

    def reset_share(self, share: int, slot: Slot, step: int) -> None:
        """Reset the envs of one actor."""
        beginning = self._one(share, _reset, step, keeps_state=True)
        rows = self.shares[share]
        copy_beginning(beginning, slot.of_rows(rows), ALL_ROWS)

    def _write_beginnings(self, beginnings: list[Slot], slot: Slot) -> None:
        for rows, beginning in zip(self.shares, beginnings, strict=True):
            copy_beginning(beginning, slot.of_rows(rows), ALL_ROWS)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Keep the actions: the step is made when it is waited for."""
        self._actions = actions

    def receive(self, group: int, slot: Slot) -> None:
        """Make one step on all machines; whole rollouts do not call this."""
        stepped = self.ask(_step, lambda share: (self._actions[self.shares[share]],))
        for rows, (own, final_obs) in zip(self.shares, stepped, strict=True):
            copy_rows(own, slot.of_rows(rows), ALL_ROWS)
            tree_map(lambda whole, of_rows, rows=rows: np.copyto(whole[rows], of_rows), self.final_obs, final_obs)

    def describe(self, row: int) -> str:
        """Env index and seed."""
        share = next(share for share, rows in enumerate(self.shares) if row < rows.stop)
        try:
            described: str = self._one(share, _describe, row - self.shares[share].start)
        except self._ray.exceptions.RayError:
            return f"row {row}"
        return described

    def _values_of(self, share: int, values: Values) -> Values:
        return values_of_rows(values, self.parameters, self.shares[share])

    def _apply_parameters(self, values: Values, before: Values) -> None:
        try:
            self.ask(_set_parameters, lambda share: (self._values_of(share, values),), keeps_state=self._has_begun)
        except EnvError:  # some shares may have taken the values
            if not self._is_closed and None not in self._states:
                self.ask(_load_state, lambda share: (self._states[share], self._step))
            raise

    def save_state(self) -> dict[str, Any] | None:
        """What one engine would save; known since the last call, without asking anybody."""
        known = [one and {name: of for name, of in one.items() if name != "parameters"} for one in self._states]
        return self._with_parameters(joined_state(known))

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from saved envs; the number of actors may be another one."""
        self._restore_from(state)
        own = {name: of for name, of in state.items() if name != "parameters"}
        self.ask(_load_state, lambda share: (state_of_envs(own, self._envs[share]), step))
        self._has_begun, self._step = True, step

    def close(self) -> None:
        """End the actors; a cluster that was started for them ends with this process."""
        if self._is_closed:
            return
        self._is_closed = True
        for actor in self._actors:
            with suppress(Exception):  # of an actor or a cluster that is already gone
                self._ray.kill(actor)

    def _check_open(self) -> None:
        if self._is_closed:
            raise EnvError("the environments are closed")

    def _blueprint_of(self, envs: range) -> Blueprint:
        whole = self._blueprint
        return replace(whole, factories=whole.factories[envs.start : envs.stop], first_env=whole.first_env + envs.start)


def on_this_machine(config: RolloutConfig) -> RolloutConfig:
    """The same without a cluster: for each actor, and for the few envs of an evaluation."""
    settings = config.engine
    return config.model_copy(update={"engine": settings.engine}) if isinstance(settings, RayEngine.Settings) else config


def _construct(actor: RayActor, path: list[str], folder: str, made: bytes) -> Home:
    """Create the envs of a share, with the modules that the driver could import."""
    import cloudpickle

    from surefoot.envs.make import build_engine  # which imports the engines

    sys.path += [entry for entry in dict.fromkeys([*path, folder]) if entry not in sys.path]
    blueprint, rollout = cloudpickle.loads(made)
    actor.env = env = build_engine(blueprint, RolloutConfig(**rollout))
    declared = Declared(env.metrics, env.parameters)
    rows_per_env = env.num_rows // blueprint.num_envs
    specs = RowSpecs(env.obs_spec, env.action_spec, env.mask_size, rows_per_env, declared, env.left_out)
    return Home(os.uname().nodename, VERSION, _instructions(), type(env).name, env.why_not_native, specs)


def _instructions() -> str:
    core = core_or_none()
    return "none" if core is None else core.instructions()


def _reset(actor: RayActor, step: int) -> Slot:
    slot = slot_for(actor.env)
    actor.env.reset(slot, step)
    return slot


def _step(actor: RayActor, actions: NDArray[Any]) -> tuple[Slot, ArrayTree]:
    slot = slot_for(actor.env)
    step_all(actor.env, actions, slot)
    return slot, actor.env.final_obs


def _describe(actor: RayActor, row: int) -> str:
    return actor.env.describe(row)


def _set_parameters(actor: RayActor, values: Mapping[str, Any]) -> None:
    actor.env.set_parameters(values)


def _load_state(actor: RayActor, state: dict[str, Any], step: int) -> None:
    actor.env.load_state(state, step)
