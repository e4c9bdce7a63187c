"""Keeps several processes in step: they stop, save and fail together."""

import zlib

from surefoot.data.records import IterationReport
from surefoot.errors import RankError
from surefoot.machine.ranks import Ranks
from surefoot.training.hooks import Hook
from surefoot.training.saving import SaveCheckpoints
from surefoot.training.signals import StopSignal
from surefoot.training.trainer import Trainer


class Agreement(Hook):
    """After the user's hooks and before saving: what one process wants, all do, and all have the same weights."""

    def __init__(self, ranks: Ranks, trainer: Trainer, saving: SaveCheckpoints) -> None:
        super().__init__()
        self._ranks, self._trainer, self._saving = ranks, trainer, saving

    def after_iteration(self, report: IterationReport) -> None:
        """Exchange the wishes of hooks, and a checksum of the weights."""
        checksum = zlib.crc32(self._trainer.learner.gradient.values.cpu().numpy().data)
        told = self._ranks.gather((self.run.stop_reason, self._saving.is_asked, checksum))
        if len({checksum for *_, checksum in told}) > 1:
            raise RankError(
                f"the weights of the processes differ after step {report.progress.step}: use machines with the same"
                " kind of processor, and hooks that change weights in the same way in all processes"
            )
        for reason, is_asked, _ in told:
            if reason:
                self.run.stop(reason)
            if is_asked:
                self.run.save()


def agreed_stop(ranks: Ranks, signal: StopSignal) -> bool:
    """Whether any process received a signal; from then on, all have received it."""
    number = ranks.greatest(signal.received or 0)
    if signal.received is None and number:
        signal.received = number
    return signal.is_requested()
