"""The shared-memory block of the `processes` engine: one step of all rows, laid out from the specs."""

import mmap
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec
from surefoot.data.tree import tree_map
from surefoot.envs.engines import RowSpecs
from surefoot.envs.protocol import ArrayTree, Slot

_ALIGNMENT = 64
"""Bytes per cache line: fields are aligned so that two workers never write to the same one."""


def anonymous_file(name: str) -> int:
    """An anonymous file: the kernel frees it when the last process that uses it ends."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Block:
    """Views of the same memory in every process; the layout depends only on the specs and the number of rows."""

    def __init__(self, file: int, specs: RowSpecs, num_rows: int) -> None:
        self._offset = 0
        self._memory: mmap.mmap | None = None
        self._views(specs, num_rows)  # first without memory, for the size
        self.size = max(self._offset, 1)
        os.truncate(file, self.size)
        self._memory, self._offset = mmap.mmap(file, self.size), 0
        self.slot, self.final_obs, self.actions = self._views(specs, num_rows)

    def _views(self, specs: RowSpecs, num_rows: int) -> tuple[Slot, ArrayTree, NDArray[Any]]:
        def batch(spec: ArraySpec) -> NDArray[Any]:
            return self._array((num_rows, *spec.shape), spec.dtype)

        slot = Slot(
            obs=tree_map(batch, specs.obs),
            reward=self._array((num_rows,), "float32"),
            terminated=self._array((num_rows,), "bool"),
            truncated=self._array((num_rows,), "bool"),
            valid=self._array((num_rows,), "bool"),
            action_mask=self._array((num_rows, specs.mask_size), "bool") if specs.mask_size else None,
            metrics=self._array((num_rows, len(specs.declared.metrics)), "float32"),
        )
        return slot, tree_map(batch, specs.obs), batch(specs.action)

    def _array(self, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        offset, kind = self._offset, np.dtype(dtype)
        self._offset += -(-kind.itemsize * int(np.prod(shape)) // _ALIGNMENT) * _ALIGNMENT
        if self._memory is None:
            return np.empty(0, kind)
        return np.ndarray(shape, kind, self._memory, offset)


def copy_rows(source: Slot, target: Slot, rows: slice) -> None:
    """Copy some rows of a step."""
    target.reward[rows] = source.reward[rows]
    target.terminated[rows] = source.terminated[rows]
    target.truncated[rows] = source.truncated[rows]
    target.valid[rows] = source.valid[rows]
    if target.metrics.shape[1]:
        target.metrics[rows] = source.metrics[rows]
    copy_beginning(source, target, rows)


def copy_beginning(source: Slot, target: Slot, rows: slice) -> None:
    """Copy the next observations and masks of some rows."""
    if isinstance(source.obs, dict):
        assert isinstance(target.obs, dict)
        for key, leaf in source.obs.items():
            target.obs[key][rows] = leaf[rows]
    else:
        assert not isinstance(target.obs, dict)
        target.obs[rows] = source.obs[rows]
    if source.action_mask is not None and target.action_mask is not None:
        target.action_mask[rows] = source.action_mask[rows]
