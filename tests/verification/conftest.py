"""Starting Python takes longer than the rest of a verification: tests/verification/test_resuming.py does it once."""

from contextlib import nullcontext

import pytest

from surefoot.verification import check


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "new_process", lambda run: nullcontext("not in this test"))
