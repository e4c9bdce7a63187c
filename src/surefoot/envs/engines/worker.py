"""A worker of the `processes` engine: creates its envs and steps them on request."""

import ctypes
import faulthandler
import mmap
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import cloudpickle

from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import RowSpecs, rows_of, rows_of_tree, state_of_envs
from surefoot.envs.engines.block import Block
from surefoot.envs.engines.wire import (
    CALL,
    DONE,
    FAILURE,
    RESULT,
    SIGNALS,
    Cell,
    Failure,
    Phase,
    read_message,
    send_message,
)
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.calls import Calls
from surefoot.envs.protocol.shard import Shard
from surefoot.errors import EnvError, SurefootError
from surefoot.output.failures import brief
from surefoot.output.streams import lasting_streams

_PR_SET_PDEATHSIG = 1


class Worker:
    """Holds one shard per group; handles messages on the socket until the other end is closed."""

    def __init__(self, connection: socket.socket, block_file: int, status: Any) -> None:
        self._connection, self._block_file, self._status = connection, block_file, status
        self._shards: dict[int, Shard] = {}
        self._steps: dict[int, Callable[[], None]] = {}
        self._envs: Mapping[int, range] = {}

    def serve(self) -> None:
        """Handle messages until the connection is closed."""
        receive, send = self._connection.recv, self._connection.sendall
        while command := receive(1):
            try:
                if command == CALL:
                    name, arguments = read_message(self._connection)
                    # Envs may save objects of any type; the parent decides whether they can be stored.
                    send_message(self._connection, RESULT, getattr(self, name)(*arguments), cloudpickle.dumps)
                else:
                    self._steps[command[0]]()
                    send(DONE)
            except BaseException as error:  # an env may even call sys.exit
                is_ours = isinstance(error, SurefootError)
                failure = Failure(str(error) if is_ours else brief(error), is_ours, traceback.format_exc())
                with suppress(OSError):  # the parent is gone
                    send_message(self._connection, FAILURE, failure)

    def construct(self, blueprint: Blueprint, envs: Mapping[int, range]) -> RowSpecs:
        """Create the envs of each group; returns their specs."""
        calls, self._envs = Calls(self._status), envs
        for group, share in envs.items():
            self._at(group, Phase.CONSTRUCTOR)
            self._shards[group] = blueprint.make(share, calls)
        group, shard = next(iter(self._shards.items()))
        others = ((f"env {envs[other].start}", shard.declared) for other, shard in self._shards.items())
        shard.declared.refuse_differences(others)
        self._at(group, Phase.IDLE)
        return RowSpecs.of(shard, len(envs[group]))

    def attach(self, specs: RowSpecs, num_rows: int) -> None:
        """Start reading actions from the shared block and writing steps to it."""
        block = Block(self._block_file, specs, num_rows)
        self._slots = {}
        for group, envs in self._envs.items():
            shard, rows = self._shards[group], rows_of(envs, specs.rows_per_env)
            shard.final_obs = rows_of_tree(block.final_obs, rows)
            self._slots[group] = block.slot.of_rows(rows)
            self._steps[group] = self._stepper(group, block.actions[rows])

    def _stepper(self, group: int, actions: Any) -> Callable[[], None]:
        shard, slot, status = self._shards[group], self._slots[group], self._status

        def step() -> None:
            status[Cell.GROUP], status[Cell.PHASE] = group, Phase.STEP
            shard.step(actions, slot)
            status[Cell.PHASE] = Phase.IDLE

        return step

    def reset(self, step: int) -> dict[int, list[str]]:
        """Reset every env; returns the descriptions of the rows by group, for error messages."""
        for group, shard in self._shards.items():
            self._at(group, Phase.RESET)
            shard.reset(self._slots[group], step)
        self._at(0, Phase.IDLE)
        return self._descriptions()

    def set_parameters(self, values: Mapping[int, Values]) -> str:
        """Set the parameters of the envs; returns an env's error, which a restarted worker would not fix."""
        try:
            for group, shard in self._shards.items():
                self._at(group, Phase.PARAMETERS)
                shard.set_parameters(values[group])
        except EnvError as error:
            return str(error)
        finally:
            self._at(0, Phase.IDLE)
        return ""

    def save_state(self) -> dict[int, dict[str, Any] | None]:
        """Snapshots of each group's envs."""
        self._at(0, Phase.SNAPSHOT)
        return {group: shard.save_state() for group, shard in self._shards.items()}

    def load_state(self, state: dict[str, Any], step: int) -> dict[int, list[str]] | str:
        """Continue from the snapshots of all envs; returns an env's error: the worker still works."""
        self._at(0, Phase.SNAPSHOT)
        try:
            for group, shard in self._shards.items():
                shard.load_state(state_of_envs(state, self._envs[group]), step)
        except Exception as error:
            return str(error) if isinstance(error, SurefootError) else brief(error)
        return self._descriptions()

    def close(self) -> None:
        """Close the envs."""
        for shard in self._shards.values():
            shard.close()

    def _descriptions(self) -> dict[int, list[str]]:
        return {g: [shard.describe(row) for row in range(shard.num_rows)] for g, shard in self._shards.items()}

    def _at(self, group: int, phase: Phase) -> None:
        self._status[Cell.GROUP], self._status[Cell.PHASE] = group, phase


def main() -> None:
    """Entry point of the process; the arguments are file descriptors and the parent's process id."""
    connection_file, block_file, status_file, trace_file, parent, dies_with_thread = map(int, sys.argv[1:])
    _leave_signals_to_the_parent()
    for file in (connection_file, block_file, status_file, trace_file):
        os.set_inheritable(file, False)  # a child process of an env must not keep the connection open
    if dies_with_thread:
        _die_with(parent)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    faulthandler.enable(trace_file)
    faulthandler.register(signal.SIGUSR1, trace_file)
    status = memoryview(mmap.mmap(status_file, 0)).cast("q")
    worker = Worker(socket.socket(fileno=connection_file), block_file, status)
    with lasting_streams():  # what an env prints is not worth a run
        worker.serve()
        worker.close()
    os._exit(0)  # threads that an env left running must not keep the process alive


def _leave_signals_to_the_parent() -> None:
    """Ignore signals that the parent handles, such as Ctrl-C; child processes of envs still receive them."""
    for number in _heard():
        signal.signal(number, _do_nothing)  # not SIG_IGN, which other programs would inherit
    os.register_at_fork(after_in_child=_listen_again)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _do_nothing(number: int, frame: object) -> None:
    pass


def _listen_again() -> None:
    for number in _heard():
        signal.signal(number, signal.SIG_DFL)


def _heard() -> list[signal.Signals]:
    """Without signals that the parent ignores, such as SIGHUP under nohup."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _watch(parent: int) -> None:
    """Exit with the parent on systems where the kernel cannot do this."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process with its parent: a hung env would never notice the closed socket."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
