"""Other PPO systems that `surefoot bench peers` compares with: one file per peer, found by this folder's registry.

A peer is a `Side`. It imports its package in its constructor, which runs in a process of its own, so that listing peers
needs none of them.
"""

import torch

from benchmarks.sides import Side
from surefoot.settings.registry import Registry

PEERS: Registry[Side] = Registry("peer", __name__)


def use_torch_threads(threads: int) -> None:
    """Set the number of torch threads; 0 leaves it at what the peer uses by default."""
    if threads:
        torch.set_num_threads(threads)
