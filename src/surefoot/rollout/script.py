"""A plain function that acts in rows: what it returns is checked before an env gets it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import State
from surefoot.data.specs import ArraySpec, HybridSpec
from surefoot.data.tree import tree_map
from surefoot.errors import PolicyError
from surefoot.output.failures import brief
from surefoot.output.quoted import quoted

Function = Callable[..., Any]


class Script:
    """Batched observations to env actions, both as numpy arrays."""

    memory: State = ()
    noise_size = 0

    def __init__(self, policy: Function, name: str, spec: ArraySpec, is_followed: bool = False) -> None:
        self.policy, self._name, self._spec, self.is_followed = policy, name, spec, is_followed

    def act(self, rows: Tensor, inputs: tuple[Any, Tensor, Tensor | None], uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Raw and env actions for some rows: `function(obs)`, or `function(obs, action_mask)` if the env has masks."""
        obs, _, mask = inputs
        arrays = [tree_map(lambda leaf: leaf.numpy().copy(), obs), *([] if mask is None else [mask.numpy().copy()])]
        try:
            returned = self.policy(*arrays)
        except Exception as error:
            raise PolicyError(f"the function '{self._name}' raised an exception: {brief(error)}") from error
        flat = self._flat(returned, len(rows))
        numbers, raw, first = rows.numpy(), flat.copy(), 0
        for label, leaf, columns in self._leaves():
            values = flat[:, columns]
            self._check_inside(values, label, leaf, numbers)
            if leaf.sizes:
                raw[:, columns] = values - np.array(leaf.start)
            if mask is not None and leaf.num_choices:
                allowed = mask.numpy()[:, first : first + leaf.num_choices]
                self._check_allowed(raw[:, columns], allowed, label, leaf, numbers)
            first += leaf.num_choices
        return torch.from_numpy(raw), torch.from_numpy(flat.reshape(len(rows), *self._spec.shape))

    def _leaves(self) -> Iterator[tuple[str, ArraySpec, slice]]:
        """What an action consists of, with its columns in a flat action."""
        spec = self._spec
        labels = [f" in component '{key}'" for key, _ in spec.components] if isinstance(spec, HybridSpec) else [""]
        first = 0
        for label, leaf in zip(labels, spec.leaves, strict=True):
            yield label, leaf, slice(first, first + leaf.size)
            first += leaf.size

    def _flat(self, returned: Any, count: int) -> NDArray[Any]:
        """One row of numbers for each observation; hybrid actions may have the form of the action space."""
        spec = self._spec
        if isinstance(spec, HybridSpec) and isinstance(returned, Mapping if spec.kind == "dict" else tuple):
            by_key: dict[Any, Any] = dict(returned) if isinstance(returned, Mapping) else dict(enumerate(returned))
            keys = [key if spec.kind == "dict" else number for number, (key, _) in enumerate(spec.components)]
            if set(by_key) != set(keys):
                raise self._wrong(f"the components {', '.join(key for key, _ in spec.components)}", quoted(returned))
            pieces = [
                self._array(by_key[key], (count, *leaf.shape), label)
                for key, (label, leaf, _) in zip(keys, self._leaves(), strict=True)
            ]
            return np.concatenate([piece.reshape(count, -1).astype(np.float64) for piece in pieces], axis=1)
        return self._array(returned, (count, *spec.shape), "").reshape(count, -1)

    def _array(self, returned: Any, shape: tuple[int, ...], label: str) -> NDArray[Any]:
        try:
            array = np.asarray(returned)
        except Exception:  # ragged
            raise self._wrong(f"env actions of shape {shape}{label}", quoted(returned)) from None
        if array.shape == shape and array.dtype.kind in "biuf":
            return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        got = quoted(returned) if array.dtype.kind not in "biuf" else f"{array.dtype} of shape {array.shape}"
        raise self._wrong(f"env actions of shape {shape}{label}", got)

    def _wrong(self, wanted: str, got: str) -> PolicyError:
        form = {"dict": ", flat or as a dict of arrays", "tuple": ", flat or as a tuple of arrays"}
        return PolicyError(
            f"the function '{self._name}' must return {wanted}, a row for each observation"
            f"{form.get(self._spec.kind, '')}, not {got}"
        )

    def _check_inside(self, values: NDArray[Any], label: str, leaf: ArraySpec, rows: NDArray[Any]) -> None:
        if leaf.sizes:
            low = np.array(leaf.start)
            high, what = low + leaf.sizes - 1, "whole numbers "
        else:
            low, high = (np.asarray(bound).reshape(-1) for bound in leaf.bounds())
            low, high = low.astype(np.float32), high.astype(np.float32)
            what = "0 or 1, whole numbers " if leaf.kind == "multi_binary" else ""
        kept = values if leaf.sizes else values.astype(np.float32)
        bad = ~np.isfinite(values) | (kept < low) | (kept > high)
        if what:
            bad |= values != np.floor(values)
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            where = f" at element {column}" if values.shape[1] > 1 else ""
            raise PolicyError(
                f"the function '{self._name}' returned {values[row, column]:g} for row {rows[row]}{label}{where}, which"
                f" is not in the action space: {what}from {low[column]} to {high[column]}"
            )

    def _check_allowed(
        self, raw: NDArray[Any], allowed: NDArray[np.bool_], label: str, leaf: ArraySpec, rows: NDArray[Any]
    ) -> None:
        if leaf.sizes:
            offsets = np.concatenate([[0], np.cumsum(leaf.sizes)[:-1]])
            bad = ~np.take_along_axis(allowed, offsets + raw.astype(np.int64), axis=1)
            bad &= np.logical_or.reduceat(allowed, offsets, axis=1)  # a mask that allows nothing belongs to nobody
        else:
            bad = (raw != 0) & ~allowed
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            value = int(raw[row, column]) + (leaf.start[column] if leaf.sizes else 0)
            raise PolicyError(
                f"the function '{self._name}' returned {value} for row {rows[row]}{label}, which the action mask"
                " forbids; choose only where the mask is True: def function(obs, action_mask)"
            )
