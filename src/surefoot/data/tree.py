"""Observations are one array or a flat dict of arrays; these helpers treat both alike."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def tree_map(function: Callable[..., T], tree: Any, *others: Any) -> T | dict[str, T]:
    """Apply `function` to the array, or to each array of the dict (with the same key of the others)."""
    if isinstance(tree, dict):
        return {key: function(leaf, *(other[key] for other in others)) for key, leaf in tree.items()}
    return function(tree, *others)


def tree_items(tree: Any) -> Iterator[tuple[str, Any]]:
    """(key, array) pairs; the key of a lone array is the empty string."""
    if isinstance(tree, dict):
        yield from tree.items()
    else:
        yield "", tree


def tree_first(tree: Any) -> Any:
    """Any one of the arrays: enough to learn the batch size or the device."""
    return next(iter(tree.values())) if isinstance(tree, dict) else tree


def without(tree: Any, keys: Collection[str]) -> Any:
    """The dict without some keys; a lone array as it is."""
    return {key: leaf for key, leaf in tree.items() if key not in keys} if isinstance(tree, dict) else tree
