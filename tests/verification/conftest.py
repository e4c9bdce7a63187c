"""Starting Python takes longer than the rest of a verification: only tests that ask for it do."""

from contextlib import nullcontext

import pytest

from surefoot.verification import check


@pytest.fixture(autouse=True)
def _one_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "with_a_new_process" not in request.fixturenames:
        monkeypatch.setattr(check, "new_process", lambda run: nullcontext("not in this test"))


@pytest.fixture
def with_a_new_process() -> None:
    """For tests of a resume in a new process."""
