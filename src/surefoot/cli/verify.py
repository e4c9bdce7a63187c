"""`surefoot verify [PRESET|ENV_ID] ...`"""

import json as json_format
from pathlib import Path

from surefoot.cli.arguments import Switch, parse_with_settings, split_settings
from surefoot.settings.config import Config


def main(arguments: list[str]) -> int:
    """Parse, then verify."""
    rest, settings = split_settings(arguments)

    def verify(
        target: str | None = None,
        /,
        config: Path | None = None,
        seed: int | None = None,
        preset: str | None = None,
        json: Switch = False,
    ) -> int:
        """Prove the native code equal to the readable reference, component by component; exit code 1 if any differs.

        Args:
            target: a preset ('surefoot presets'), a Gymnasium id ('surefoot envs'), pettingzoo:MODULE, envpool:TASK
                or your own library, ./my_env.so
            config: a YAML file with settings that override the preset
            seed: random seed (train.seed)
            preset: a preset other than that of the environment, or none
            json: print JSON
        """
        from surefoot.cli.train import chosen

        shorthand = {"train.seed": seed, "preset": preset}
        named = {key: value for key, value in shorthand.items() if value is not None}
        return report(chosen(target, config, settings, named).config, json)

    return parse_with_settings(verify, "verify", rest)


def report(config: Config, as_json: bool) -> int:
    """Verify and print the results."""

    from surefoot.output.terminal import Terminal
    from surefoot.verification import verify
    from surefoot.verification.table import show

    found = verify(config)
    if as_json:
        print(json_format.dumps(found.to_json(), indent=1))
    else:
        show(found, Terminal())
    return 0 if found.ok else 1
