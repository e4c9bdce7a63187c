"""Reads pickles without running them: a class or function is only a name, and a call of it only a note."""

import pickletools
from dataclasses import dataclass, field
from typing import Any

MOST_OPCODES = 10**6
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_BYTES = ("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8")
_LITERALS = frozenset((*_NUMBERS, *_TEXTS, *_BYTES))
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True, eq=False)
class Name:
    """A class or function that a pickle names; it is never looked up."""

    module: str
    name: str


@dataclass(eq=False, repr=False)
class Noted:
    """A call that a pickle asks for and nobody makes, with the state and the entries that its result would get."""

    what: Any
    arguments: Any
    state: Any = None
    entries: dict[str, Any] = field(default_factory=dict)

    def calls(self, *names: str) -> bool:
        """Whether it is a call of one of these, each `module.name`."""
        return isinstance(self.what, Name) and f"{self.what.module}.{self.what.name}" in names


class Outside(Noted):
    """What stands for an object outside the pickle, such as a storage of PyTorch."""


def read_inert(data: bytes) -> Any:
    """Numbers, strings, bytes, tuples, lists, and dicts with strings as keys; `Name` and `Noted` for all else."""
    machine = _Machine()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if number > MOST_OPCODES:
            raise ValueError(f"its pickle has more than {MOST_OPCODES:,} opcodes")
        if opcode.name == "STOP":
            return machine.pop(1)[0]
        machine.execute(opcode.name, argument)
    raise ValueError("its pickle has no end")


class _Machine:
    """The stack machine of pickles, with the opcodes that saved agents have."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def execute(self, name: str, argument: Any) -> None:
        """One opcode."""
        if name in _LITERALS:
            self._push(argument)
        elif name in _CONSTANTS:
            self._push(_CONSTANTS[name])
        elif name in _TUPLES:
            self._push(tuple(self.pop(_TUPLES[name])))
        else:
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        match name:
            case "PROTO" | "FRAME":
                pass
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = self._stack[-1]
            case "MEMOIZE":
                self._memo[len(self._memo)] = self._stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                self._push(self._memo[argument])
            case "MARK":
                self._outer.append(self._stack)
                self._stack = []
            case "POP":
                self.pop(1)
            case "POP_MARK" | "ADDITEMS":
                self._marked()
            case "TUPLE":
                self._push(tuple(self._marked()))
            case "EMPTY_LIST":
                self._push([])
            case "APPEND":
                self._append(self.pop(1))
            case "APPENDS":
                self._append(self._marked())
            case "EMPTY_DICT":
                self._push({})
            case "SETITEM":
                self._set_items(self.pop(2))
            case "SETITEMS":
                self._set_items(self._marked())
            case _:
                self._note(name, argument)

    def _note(self, name: str, argument: Any) -> None:
        """The opcodes that would import or call something."""
        match name:
            case "GLOBAL":
                self._push(Name(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                module, attribute = self.pop(2)
                if not (isinstance(module, str) and isinstance(attribute, str)):
                    raise ValueError("its pickle names a class by a value that is not a string")
                self._push(Name(module, attribute))
            case "REDUCE" | "NEWOBJ":
                self._push(Noted(*self.pop(2)))
            case "NEWOBJ_EX":
                self._push(Noted(*self.pop(3)[:2]))
            case "EMPTY_SET":
                self._push(Noted(None, ()))
            case "FROZENSET":
                self._push(Noted(None, tuple(self._marked())))
            case "BINPERSID":
                self._push(Outside(None, *self.pop(1)))
            case "BUILD":
                (state,) = self.pop(1)
                if isinstance(self._stack[-1], Noted):
                    self._stack[-1].state = state
            case _:
                raise ValueError(f"its pickle has the opcode {name}, which saved agents do not have")

    def pop(self, count: int) -> list[Any]:
        """The last objects, which leave the stack."""
        if count > len(self._stack):
            raise ValueError("its pickle pops from an empty stack")
        keep = len(self._stack) - count
        last = self._stack[keep:]
        del self._stack[keep:]
        return last

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _marked(self) -> list[Any]:
        """Everything since the last mark."""
        marked, self._stack = self._stack, self._outer.pop()
        return marked

    def _append(self, items: list[Any]) -> None:
        if isinstance(self._stack[-1], list):
            self._stack[-1].extend(items)

    def _set_items(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        entries = target.entries if isinstance(target, Noted) else target
        # Only strings: nothing that is needed has other keys, and hashing nested tuples can take forever.
        entries.update({key: value for key, value in zip(pairs[::2], pairs[1::2], strict=True) if isinstance(key, str)})
