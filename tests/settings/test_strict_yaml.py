"""Config files that are not what their author meant, or meant to do harm."""

import time
from pathlib import Path

import pytest
import yaml

from surefoot.cli.arguments import split_settings
from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.run_record import read_run
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config, read_yaml, to_yaml
from surefoot.settings.strict_yaml import parse_yaml

LAUGHS = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))

HOSTILE: dict[str, tuple[bytes, str]] = {
    "duplicate": (b"ppo:\n  gamma: 0.9\n  clip: 0.2\n  gamma: 0.8\n", "the key 'gamma' appears twice, again in line 4"),
    "duplicate section": (b"ppo: {}\ntrain: {}\nppo: {}\n", "the key 'ppo' appears twice, again in line 3"),
    "deep": (b"a: " + b"[" * 3000 + b"]" * 3000, "nested more than 50 levels deep"),
    "deep mappings": (b"a: " + b"{a: " * 60 + b"1" + b"}" * 60, "nested more than 50 levels deep"),
    "billion laughs": (LAUGHS.encode(), "more than 100000 values, maybe through repeated aliases"),
    "endless": (b"a: &a [*a]\n", "nested more than 50 levels deep"),
    "tabs": (b"ppo:\n\tgamma: 0.9\n", "found character"),
    "other encoding": ("ppo: {gamma: ä}".encode("latin-1"), "can't decode byte"),
    "null byte": (b"ppo: \x00", "special characters are not allowed"),
    "two documents": (b"ppo: {}\n---\nppo: {}\n", "expected a single document"),
    "no date": (b"a: 2001-99-99\n", "month must be in 1..12"),
    "no integer": (b"a: !!int x\n", "invalid literal for int"),
    "huge integer": (b"a: " + b"9" * 5000, "Exceeds the limit"),
    "object": (b"a: !!python/object/apply:os.system [ls]\n", "could not determine a constructor"),
    "no key": (b"{[1]: 2}", "unhashable key"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_one_line(tmp_path, name):
    content, message = HOSTILE[name]
    file = tmp_path / "config.yaml"
    file.write_bytes(content)
    began = time.process_time()
    with pytest.raises(ConfigError, match=message) as caught:
        read_yaml(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert time.process_time() - began < 5
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(RunDirectoryError, match=message):
        read_run(tmp_path)


def test_a_list_is_not_a_config(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("- ppo\n")
    with pytest.raises(ConfigError, match="must contain sections such as 'ppo:', not a list"):
        read_yaml(file)


def test_a_long_text_is_not_repeated_in_the_message(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(f"ppo: {{gamma: {'x' * 2**20}}}\n")
    with pytest.raises(ConfigError, match=r"ppo\.gamma: .*\(got 'xxx") as caught:
        build_config(read_yaml(file))
    assert len(str(caught.value)) < 300


def test_values_on_the_command_line():
    for text in ("{a: 1, a: 2}", "[" * 3000, "[1, "):
        with pytest.raises(ConfigError, match=r"^env\.kwargs: cannot parse the value") as caught:
            split_settings(["--env.kwargs", text])
        assert len(str(caught.value)) < 500


def test_configs_are_read_as_before(tmp_path: Path):
    text = to_yaml(Config())
    assert parse_yaml(text) == yaml.safe_load(text)
    assert parse_yaml("") is None
    shared = "a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n"
    assert parse_yaml(shared) == yaml.safe_load(shared)
