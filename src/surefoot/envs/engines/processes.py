"""The `processes` engine: worker processes with many envs each, and one block of shared memory."""

import logging
import os
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from surefoot.data.tree import tree_map
from surefoot.envs.blueprint import Blueprint, shares
from surefoot.envs.engines import Engine, RowSpecs, engines, env_groups, joined_state, rows_of
from surefoot.envs.engines.block import Block, anonymous_file, copy_beginning, copy_rows
from surefoot.envs.engines.wire import MAX_GROUPS
from surefoot.envs.engines.worker_process import WorkerError, WorkerProcess, deadline
from surefoot.envs.protocol import Slot
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.parameters import values_of_rows
from surefoot.errors import ConfigError, EnvError
from surefoot.machine.cores import available_cores
from surefoot.settings.config import Positive, RolloutConfig
from surefoot.settings.parts import PartSettings, chosen

_log = logging.getLogger("surefoot")

RESTART_WINDOW_S = 3600.0


class WorkerTraceError(Exception):
    """The traceback of a worker process, as the cause of an error in this process."""


@engines.register("processes")
class ProcessEngine(Engine):
    """Every worker has envs of every group, so that all workers step whichever group is sent.

    A worker that raises, dies or hangs is replaced; its running episodes are cut off: truncated and masked out.
    """

    name = "processes"

    class Settings(PartSettings):
        """How failing environments are handled."""

        step_timeout_s: Positive = Field(
            60.0, description="seconds before an env call counts as hung and its worker is replaced"
        )
        max_restarts: int = Field(
            10, ge=0, description="maximum number of worker restarts per hour; one more saves and stops the run"
        )

    def __init__(self, blueprint: Blueprint, config: RolloutConfig) -> None:
        if config.groups > MAX_GROUPS:
            raise ConfigError([f"rollout.groups: at most {MAX_GROUPS} with the processes engine (got {config.groups})"])
        settings = chosen(config.engine, "surefoot.envs.engines", self.name)
        assert isinstance(settings, ProcessEngine.Settings)
        self._blueprint, self._max_restarts = blueprint, settings.max_restarts
        self._specs: RowSpecs
        self._owner = os.getpid()
        self._step = 0
        self._restarted: deque[float] = deque()
        groups = env_groups(blueprint.num_envs, config, overlaps=True)
        count = min(config.workers or available_cores(), max(len(group) for group in groups))
        per_group = [shares(envs, count) for envs in groups]
        self._block_file = anonymous_file("rows")
        self._workers = [
            WorkerProcess(index, _without_empty(share), self._block_file, settings.step_timeout_s)
            for index, share in enumerate(zip(*per_group, strict=True))
        ]
        self._in_flight: list[set[int]] = [set() for _ in self._workers]
        self._lost: list[set[int]] = [set() for _ in self._workers]
        self._close = weakref.finalize(self, _close, self._workers, self._block_file, self._owner)
        self._open(groups)

    def _open(self, groups: Sequence[range]) -> None:
        try:
            for worker in self._workers:
                worker.start(self._blueprint)
            asked = [worker.result() for worker in self._workers]
            self._specs = asked[0]
            of_workers = [(f"worker {index}", specs.declared) for index, specs in enumerate(asked)]
            self._specs.declared.refuse_differences(of_workers)
            self._lay_out(groups, self._specs, self._blueprint.first_env)
            self._block = Block(self._block_file, self._specs, self.num_rows)
            self.final_obs = self._block.final_obs
            for worker in self._workers:
                worker.call("attach", self._specs, self.num_rows)
                worker.result()
        except WorkerError as fault:
            self.close()
            raise _error(str(fault), fault) from WorkerTraceError(fault.trace)
        except BaseException:
            self.close()
            raise

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every env."""
        self._check_owner()
        self._drain()
        self._step = step
        self._describe_by("reset", step)
        copy_beginning(self._block.slot, slot, slice(0, self.num_rows))

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Write the actions to the block and wake every worker that has rows of the group."""
        self._check_owner()
        self._block.actions[self.groups[group]] = actions
        for index, worker in enumerate(self._workers):
            if group in worker.envs and group not in self._lost[index]:
                worker.step(group)
                self._in_flight[index].add(group)

    def receive(self, group: int, slot: Slot) -> None:
        """Wait for the workers, replace those that failed, and copy the step from the block."""
        self._check_owner()
        for index, worker in enumerate(self._workers):
            if group in self._in_flight[index]:
                try:
                    worker.wait()
                    self._in_flight[index].discard(group)
                except WorkerError as fault:
                    self._replace(index, fault)
            if group in self._lost[index]:
                self._write_loss(worker, group)
                self._lost[index].discard(group)
        self._step += group == 0
        copy_rows(self._block.slot, slot, self.groups[group])

    def describe(self, row: int) -> str:
        """Env index and seed."""
        for worker in self._workers:
            for group, names in worker.descriptions.items():
                first = rows_of(worker.envs[group], self._specs.rows_per_env).start
                if first <= row < first + len(names):
                    return str(names[row - first])
        return f"row {row}"

    def _apply_parameters(self, values: Values, before: Values) -> None:
        self._check_owner()
        self._drain()
        if refusal := self._set_in_workers(values):
            self._set_in_workers(self._held(values, before))
            raise EnvError(refusal)

    def _set_in_workers(self, values: Values) -> str:
        """Set parameters in all workers; returns the first refusal, if any."""
        for worker in self._workers:
            worker.call("set_parameters", self._share(worker, values))
        refusals = []
        for index, worker in enumerate(self._workers):
            try:
                refusals.append(worker.result())
            except WorkerError as fault:
                self._replace(index, fault)
        return next(filter(None, refusals), "")

    def _share(self, worker: WorkerProcess, values: Values) -> dict[int, Values]:
        """The parameter values of a worker's rows, by group."""
        rows = {group: rows_of(envs, self._specs.rows_per_env) for group, envs in worker.envs.items()}
        return {group: values_of_rows(values, self.parameters, own) for group, own in rows.items()}

    def save_state(self) -> dict[str, Any] | None:
        """Snapshots of all envs, or None if one of them cannot be saved or failed during saving."""
        if not self._close.alive:
            return None
        self._check_owner()
        self._drain()
        states: dict[int, dict[str, Any] | None] = {}  # by the first env of each shard
        for worker in self._workers:
            worker.call("save_state")
        for index, worker in enumerate(self._workers):
            try:
                states |= {worker.envs[group].start: state for group, state in worker.result().items()}
            except WorkerError as fault:
                self._replace(index, fault)
                states[-1] = None
        if any(self._lost):  # cut-off episodes not reported yet: their rows already show new episodes
            return None
        return self._with_parameters(joined_state([states[first] for first in sorted(states)]))

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from snapshots."""
        self._check_owner()
        self._drain()
        self._restore_from(state)
        self._step = step
        self._describe_by("load_state", {"envs": state["envs"]}, step)

    def close(self) -> None:
        """Stop the workers; returns within seconds, even if they hang."""
        self._close()

    def _describe_by(self, name: str, *arguments: Any) -> None:
        """Make a call in all workers in parallel; no step is in progress, so failures are raised."""
        refusals = []
        for worker in self._workers:
            worker.call(name, *arguments)
        for lost, worker in zip(self._lost, self._workers, strict=True):
            try:
                answer = worker.result()
            except WorkerError as fault:
                self.close()
                raise _error(str(fault), fault) from WorkerTraceError(fault.trace)
            if isinstance(answer, str):
                refusals.append(answer)
                continue
            worker.descriptions = answer
            lost.clear()
        for refusal in refusals:
            raise EnvError(refusal)

    def _replace(self, index: int, fault: WorkerError) -> None:
        """Replace a failed worker with a new one that starts new episodes; too many restarts per hour end the run."""
        worker = self._workers[index]
        while True:
            now = time.monotonic()
            while self._restarted and now - self._restarted[0] > RESTART_WINDOW_S:
                self._restarted.popleft()
            if len(self._restarted) >= self._max_restarts:
                self.close()
                limit = (
                    f"already restarted {self._max_restarts} times within an hour"
                    if self._max_restarts
                    else "no restarts"
                )
                message = f"{fault}; {limit} (rollout.engine.max_restarts)"
                raise _error(message, fault) from WorkerTraceError(fault.trace)
            self._restarted.append(now)
            self.restarts += 1
            _log.warning(
                "%s; restarting worker %d (%d of %d restarts per hour); its running episodes are discarded",
                *(fault, index, len(self._restarted), self._max_restarts),
            )
            _log.info("traceback of worker %d:\n%s", index, fault.trace)  # for the log, not the terminal
            try:
                self._restart(worker)
                break
            except WorkerError as another:
                fault = another
        self._in_flight[index].clear()
        self._lost[index] = set(worker.envs)

    def _restart(self, worker: WorkerProcess) -> None:
        worker.end()
        worker.start(self._blueprint)
        worker.result()
        worker.call("attach", self._specs, self.num_rows)
        worker.result()
        worker.call("set_parameters", self._share(worker, self.parameter_values))
        refusal = worker.result()
        if refusal:
            raise EnvError(refusal)
        worker.call("reset", self._step + self.restarts)
        worker.descriptions = worker.result()

    def _write_loss(self, worker: WorkerProcess, group: int) -> None:
        """Fill the rows of a failed step: their episodes are truncated, and the step is masked out."""
        rows = rows_of(worker.envs[group], self._specs.rows_per_env)
        lost = self._block.slot.of_rows(rows)
        lost.reward[:], lost.terminated[:], lost.truncated[:], lost.valid[:] = 0, False, True, False
        lost.metrics[:] = np.nan
        # Not used for bootstrapping, but leftovers of an earlier episode might not be finite.
        tree_map(lambda final, obs: np.copyto(final[rows], obs), self.final_obs, lost.obs)

    def _drain(self) -> None:
        """Wait for steps whose results are no longer needed."""
        for index, worker in enumerate(self._workers):
            for _ in range(len(self._in_flight[index])):
                try:
                    worker.wait()
                except WorkerError as fault:
                    self._replace(index, fault)
                    break
            self._in_flight[index].clear()

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise EnvError(
                f"these environments belong to process {self._owner} and cannot be used in a forked process; start it"
                " with the 'spawn' method and create the environments there"
            )
        if not self._close.alive:
            raise EnvError("the environments are closed")


def _close(workers: Sequence[WorkerProcess], block_file: int, owner: int) -> None:
    """Stop every worker, and kill those that do not exit in time."""
    if os.getpid() != owner:
        return
    for worker in workers:
        worker.ask_to_end()
    until = deadline()
    for worker in workers:
        worker.end(until)
    os.close(block_file)


def _without_empty(share: Sequence[range]) -> dict[int, range]:
    return {group: envs for group, envs in enumerate(share) if envs}


def _error(message: str, fault: WorkerError) -> EnvError:
    """A one-line error; the traceback is attached as its cause and written to the log."""
    _log.info("%s\n%s", message, fault.trace)
    return EnvError(message)
