"""`--section.key value` for every setting, in addition to the options of a command."""

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Annotated, Any, TypeVar, get_args

import tyro
from pydantic.fields import FieldInfo

from surefoot.cli.lines import wrapped
from surefoot.errors import ConfigError, PartError
from surefoot.output.failures import brief, origin
from surefoot.output.quoted import quoted
from surefoot.output.streams import styled_streams
from surefoot.settings.config import Config, key_types, known_keys, part_of
from surefoot.settings.layers import Raw
from surefoot.settings.parts import PartSettings, Section, choices
from surefoot.settings.registry import nearest
from surefoot.settings.strict_yaml import YamlError, parse_yaml
from surefoot.settings.synonyms import elsewhere_called

T = TypeVar("T")
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""A flag without its opposite."""


def parse(function: Callable[..., T], command: str, arguments: list[str]) -> T:
    """Call `function` with the command's options, declared by its signature."""

    @wraps(function)
    def later(*values: Any, **options: Any) -> Callable[[], T]:
        return partial(function, *values, **options)

    call: Callable[[], T]
    with styled_streams():
        call, unknown = tyro.cli(later, prog=f"surefoot {command}", args=arguments, return_unknown_args=True)
    if unknown:
        raise ConfigError([_explain_unknown(unknown[0], list(signature(function).parameters))])
    try:
        return call()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # tyro exits after --help; an env must not, it would look like success
        raise PartError(f"code that Surefoot called raised {brief(error)} ({origin(error)})") from error


def parse_with_settings(function: Callable[..., T], command: str, arguments: list[str]) -> T:
    """The same for a command that also takes settings: its help lists them."""
    try:
        return parse(function, command, arguments)
    finally:
        if wants_help(arguments):
            print_settings()


def _explain_unknown(argument: str, known: list[str]) -> str:
    """Settings, and what other libraries call them, are answered with the option to use."""
    if not argument.startswith("--"):
        return f"unexpected argument {quoted(argument)} (see --help)"
    option = argument.partition("=")[0]
    bare = option.removeprefix("--").replace("-", "_")
    homes = [key for key in known_keys() if key.rpartition(".")[2] == bare]
    hint = elsewhere_called(bare, "--{}") or (f"; use --{homes[0]}" if len(homes) == 1 else "")
    return f"{option}: unknown option{hint or nearest(bare, known) or ' (see --help)'}"


def split_settings(arguments: list[str]) -> tuple[list[str], Raw]:
    """Extract `--section.key value` and `--section.key=value` from the arguments; without a value it means true."""
    rest: list[str] = []
    settings: Raw = {}
    pending = list(arguments)
    while pending:
        argument = pending.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or "." not in name:
            rest.append(argument)
            continue
        name = name.replace("-", "_")
        if not equals:
            value = pending.pop(0) if pending and not pending[0].startswith("--") else "true"
            while pending and _is_number(value.rpartition(",")[2]) and _is_number(pending[0]) and _may_be_list(name):
                value += f",{pending.pop(0)}"
        settings[name] = _value(name, value)
    return rest, settings


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _may_be_list(name: str) -> bool:
    """Whether a setting can have several values: those of parts are not known here."""
    section, _, key = name.partition(".")
    cls = key_types().get(section)
    field = None if cls is None else cls.model_fields.get(key)
    return field is None or "tuple" in str(field.annotation)  # also an optional one


def print_settings(**others: type[Section]) -> None:
    """Print every setting with its default and description, below the help of a command, with those of its sections."""
    print("settings (--section.key VALUE; shown with their defaults, which presets and --config override):")
    for section, cls in (others | key_types()).items():
        print(f"\n  {section}: {(cls.__doc__ or '').strip()}")
        for key, field in cls.model_fields.items():
            default = "required" if field.is_required() else field.get_default(call_default_factory=True)
            shown = default.kind if isinstance(default, PartSettings) else _brief(default)
            _print_setting(f"{section}.{key}", shown, field)
    print("\n  parts by name:")
    for section, name in (("schedules", "KNOB"), ("hooks", "NAME")):
        _print_setting(f"{section}.{name}", "none", Config.model_fields[section])


def _print_setting(name: str, default: str, field: FieldInfo) -> None:
    known = choices(field)
    of_part = "; or module:Name" if part_of(name.split(".")[:2]) or part_of(name.split(".")[:1]) else ""
    allowed = f" ({', '.join(known)}{of_part})" if known else ""
    print(wrapped(f"    --{name:32s} {default:14s} {field.description}{allowed}", 54))


def wants_help(arguments: list[str]) -> bool:
    """Whether the user asked for help."""
    return "-h" in arguments or "--help" in arguments


def _may_be_nothing(name: str) -> bool:
    """Whether a setting is optional; for others `none` is a value: a kind of memory, or no normalization."""
    section, _, key = name.partition(".")
    cls = key_types().get(section)
    return cls is not None and key in cls.model_fields and type(None) in get_args(cls.model_fields[key].annotation)


def _value(name: str, text: str) -> Any:
    """Lists and mappings are YAML; other values stay text and are parsed by their type (`off` is not a boolean)."""
    if text.lower() == "null" or (text.lower() == "none" and _may_be_nothing(name)):
        return None
    if not text.startswith(("[", "{")):
        return text
    try:
        return parse_yaml(text)
    except YamlError as error:
        raise ConfigError(f"{name}: cannot parse the value {quoted(text)} as YAML: {error}") from error


def _brief(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value) or "none"
    if isinstance(value, Section):
        return _brief(next(iter(value.model_dump().values())))
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None or value == {} else str(value)
