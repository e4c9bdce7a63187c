"""The walk of a newcomer knows every command of README."""

import shlex

from tests.newcomer.readme import SKIPPED, readme_commands
from tests.newcomer.steps import STEPS


def test_every_command_of_readme_is_walked_or_skipped_for_a_reason() -> None:
    commands = readme_commands()
    walked = [step.readme for step in STEPS if step.readme]
    assert len(commands) > 25
    assert sorted([*walked, *SKIPPED]) == sorted(commands)
    assert all(len(reason) > 20 for reason in SKIPPED.values())


def test_a_walked_command_starts_as_readme_says() -> None:
    for step in STEPS:
        if step.readme:
            said, typed = shlex.split(step.readme), shlex.split(step.command)
            assert said[:2] == typed[:2], step.name
            assert len(said) <= len(typed), step.name


def test_commands_that_were_printed_belong_to_earlier_steps() -> None:
    for index, step in enumerate(STEPS):
        assert not step.typed_from or any(step.typed_from in earlier.name for earlier in STEPS[:index]), step.name
