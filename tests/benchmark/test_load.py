"""What others use of the machine."""

import time

from surefoot.benchmark.load import OthersClock, loadavg, summarize_load
from tests.benchmark.trees import script


def test_others_are_seen_and_our_own_are_not_others() -> None:
    with script("print(flush=True)\nwhile True: pass") as spinner:
        all_others, without_the_spinner = OthersClock([]), OthersClock([spinner.pid])
        time.sleep(0.5)
        seen, rest = all_others.share(), without_the_spinner.share()
    assert 0 < seen <= 1
    assert rest < seen


def test_a_busy_machine_is_named() -> None:
    busy, quiet = summarize_load(2.5, [0.1, 0.5]), summarize_load(0.1, [0.0, 0.02])
    assert (busy.others_share, busy.others_share_highest, busy.is_busy) == (0.3, 0.5, True)
    assert "BUSY" in busy.describe()
    assert "30%" in busy.describe()
    assert not quiet.is_busy
    assert "quiet" in quiet.describe()


def test_nothing_was_measured() -> None:
    unknown = summarize_load(loadavg(), [])
    assert not unknown.is_busy
    assert "unknown" in unknown.describe()
