"""One thread at a time, for what changes an agent or needs it whole."""

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, cast

from surefoot.errors import AgentInUseError

Method = TypeVar("Method", bound=Callable[..., Any])


class TakesTurns:
    """Base of an object whose methods marked with `in_turn` run in one thread at a time."""

    def __init__(self) -> None:
        self._turn = RLock()  # a hook of the thread that has it may call further methods


def in_turn(method: Method) -> Method:
    """Refuse a call while another thread is inside such a method of the same object."""

    @wraps(method)
    def call(owner: TakesTurns, /, *arguments: Any, **named: Any) -> Any:
        if not owner._turn.acquire(blocking=False):
            raise AgentInUseError(
                f"{method.__name__}: another thread is training, saving or closing this agent; wait until it is done,"
                " or give each thread its own agent (copy.deepcopy or PPO.load)"
            )
        try:
            return method(owner, *arguments, **named)
        finally:
            owner._turn.release()

    return cast(Method, call)
