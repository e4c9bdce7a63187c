"""Calls of envs: which row's env is called, and errors that name the env and the call."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from surefoot.errors import EnvError, SurefootError
from surefoot.machine.opengl import with_opengl_advice
from surefoot.output.failures import brief, let_interrupts_through

_log = logging.getLogger("surefoot")


class Calls:
    """Marks the row whose env is being called, in memory that another process may watch."""

    def __init__(self, cells: Any = None) -> None:
        self._cells = [0, 0] if cells is None else cells

    def begin(self, row: int) -> None:
        """The env of a row is about to be called."""
        cells = self._cells
        cells[1] = row
        cells[0] += 1


def construct(make: Callable[[], Any], number: int) -> Any:
    """Create an env from its factory; an error names the index of the env."""
    try:
        return make()
    except SurefootError:
        raise
    except BaseException as error:
        let_interrupts_through(error)
        raise EnvError(f"env {number} could not be created: {with_opengl_advice(brief(error))}") from error


def env_error(who: str, call: str, error: BaseException) -> EnvError:
    """The error of an env that raised anything at all, even SystemExit; a real Ctrl-C is raised again."""
    let_interrupts_through(error)
    return EnvError(f"{who} raised an exception in {call}: {with_opengl_advice(brief(error))}")


@contextmanager
def env_call(who: Callable[[], str], call: str) -> Iterator[None]:
    """Whatever an env raises inside becomes an error that names the env and the call."""
    try:
        yield
    except SurefootError:
        raise
    except BaseException as error:
        raise env_error(who(), call, error) from error


def close_env(env: Any, who: str) -> None:
    """Close an env; an exception costs a warning, because nothing is left to lose."""
    try:
        env.close()
    except BaseException as error:
        _log.warning("%s", env_error(who, "close", error))
