"""The end of a process that torchrun started."""

import os
import sys


def end_with_others(code: int) -> None:
    """End at once if torchrun started this process: threads of torch.distributed may abort a process that unwinds."""
    if os.environ.get("WORLD_SIZE", "1") == "1" or "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
