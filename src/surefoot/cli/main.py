"""`surefoot COMMAND ...`: runs a command, prints typed errors as one message, sets the exit code.

A failing stdout does not end a command. It is an error only if the output is the result of the command.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from surefoot.errors import SurefootError
from surefoot.output.streams import lasting_streams
from surefoot.settings.registry import nearest
from surefoot.version import VERSION

COMMANDS = {
    "train": "train a preset or any Gymnasium environment",
    "resume": "continue a run exactly where it stopped",
    "population": "train a population whose worst members continue from its best",
    "sweep": "search for good settings with many runs",
    "evaluate": "evaluate a run, a model file or a policy of the zoo",
    "watch": "show a policy in a window, or record a video",
    "export": "write a policy as an ONNX file that runs without Surefoot",
    "doctor": "diagnose a run and suggest remedies",
    "report": "write an HTML report about one or more runs",
    "compare": "compare groups of runs, with intervals over their seeds",
    "verify": "prove the native code equal to the readable reference",
    "native": "create or build your own environment in C++",
    "bench": "measure speed and memory: train, rollout, scaling, peers",
    "envs": "list environments",
    "presets": "list the presets, or show one",
    "zoo": "list the trained policies that come with Surefoot, or show one",
}
_RESULT_IN_FILES = ("train", "resume", "population", "sweep", "watch", "export", "report", "native")
"""Commands that succeed whatever happens to their output."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0 on success, 2 after a typed error, 129, 130 or 143 after a signal."""
    rest = list(sys.argv[1:] if arguments is None else arguments)
    with lasting_streams() as output:
        code = _run(rest)
        output.flush()
        is_lost = output.failure is not None and not isinstance(output.failure, BrokenPipeError)
        if is_lost and not code and not (rest and rest[0] in _RESULT_IN_FILES):
            print(f"error: cannot write to stdout: {output.failure}", file=sys.stderr)
            return SurefootError.exit_code
    end_with_others(code)
    return code


def _run(rest: list[str]) -> int:
    is_debug = "--debug" in rest
    rest = [argument for argument in rest if argument != "--debug"]
    if not rest or rest[0] in ("-h", "--help"):
        print(_usage())
        return 0 if rest else 2
    if rest[0] == "--version":
        print(f"surefoot {VERSION}")
        return 0
    try:
        return _dispatch(rest[0], rest[1:])
    except SurefootError as error:
        if is_debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _dispatch(command: str, arguments: list[str]) -> int:
    """A command declares its options as the parameters of `run`, or takes its arguments apart itself in `main`."""
    if command not in COMMANDS:
        raise SurefootError(f"unknown command '{command}'{nearest(command, COMMANDS)} (see surefoot --help)")
    module = importlib.import_module(f"surefoot.cli.{command}")
    if hasattr(module, "run"):
        from surefoot.cli.arguments import parse

        code: int = parse(module.run, command, arguments)
    else:
        code = module.main(arguments)
    return code


def _usage() -> str:
    lines = [
        "surefoot: PPO training that is correct, fast and without surprises",
        "",
        "usage: surefoot COMMAND ...",
        "",
    ]
    lines += [f"  {name:10s} {text}" for name, text in COMMANDS.items()]
    return "\n".join([*lines, "", "run 'surefoot COMMAND --help' for details; --debug shows tracebacks"])


def end_with_others(code: int) -> None:
    """End at once if torchrun started this process: threads of torch.distributed may abort a process that unwinds."""
    if os.environ.get("WORLD_SIZE", "1") == "1" or "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
