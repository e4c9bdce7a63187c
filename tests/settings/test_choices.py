"""The listed choices are those that exist."""

import subprocess
import sys

import pytest

from surefoot.settings.config import Config, key_types, part_of
from surefoot.settings.parts import choices, kinds_in
from surefoot.settings.registry import Registry


def test_enumerations():
    fields = {
        f"{section}.{key}": field for section, cls in key_types().items() for key, field in cls.model_fields.items()
    }
    assert choices(fields["policy.activation"]) == ("tanh", "relu", "elu", "silu", "leaky_relu", "gelu")
    assert choices(fields["log.console"]) == ("auto", "live", "line", "plain", "off")
    assert choices(fields["policy.memory"]) == ("gru", "lstm", "none")
    assert choices(fields["rollout.engine"])[0] == "auto"
    assert choices(fields["ppo.gamma"]) == choices(fields["env.metrics"]) == ()


PATHS = [(section, key) for section, cls in key_types().items() for key in cls.model_fields]
PARTS = {part.package for path in [*PATHS, ("schedules",), ("hooks",)] if (part := part_of(path)) is not None}


@pytest.mark.parametrize("package", sorted(PARTS))
def test_kinds_are_those_of_the_registry(package):
    assert list(kinds_in(package)) == Registry.of(package).names()


def test_the_help_lists_them_without_torch():
    script = (
        "import sys\nfrom surefoot.cli.arguments import print_settings\n"
        "print_settings()\nassert 'torch' not in sys.modules"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "(gru, lstm, none; or module:Name)" in shown
    assert "(tanh, relu, elu, silu, leaky_relu, gelu)" in shown
    assert "--schedules.KNOB" in shown
    assert str(Config().normalize.obs).lower() in shown
