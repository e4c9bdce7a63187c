"""`surefoot presets`"""

from surefoot.cli.lines import wrapped
from surefoot.population.presets import population_presets
from surefoot.presets import describe_preset, preset_names, preset_text
from surefoot.sweep.presets import sweep_presets

_NAMES = 29
"""Width of the column with the names."""


def run(name: str | None = None, /) -> int:
    """List the presets, also those of populations and sweeps, or show the settings of one.

    Args:
        name: the preset to show
    """
    if name is not None:
        print(preset_text(name), end="")
        return 0
    for preset in preset_names():
        print(wrapped(f"{preset:{_NAMES}s}{describe_preset(preset)}", _NAMES))
    for command, shipped in (("population", population_presets), ("sweep", sweep_presets)):
        print(f"\npresets of 'surefoot {command}':")
        for preset in shipped.names():
            print(wrapped(f"{preset:{_NAMES}s}{shipped.describe(preset)}", _NAMES))
    return 0
