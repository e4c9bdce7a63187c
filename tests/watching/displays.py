"""What tests need in order to draw: a missing part is a reason to skip, or a failure where there must be one."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")


def find_or_skip(found: T | None, reason: str) -> T:
    """What was found. Without it: skip, or fail where SUREFOOT_REQUIRE_DISPLAY says that it must be there."""
    if found is None:
        message = f"{reason} ('make display' installs it)"
        pytest.fail(message) if os.environ.get("SUREFOOT_REQUIRE_DISPLAY") else pytest.skip(message)
    return found
