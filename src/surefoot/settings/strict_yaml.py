"""YAML that means what it says: no duplicate keys, no more nesting or repetition than a config can need."""

from typing import Any

import yaml

_MAX_DEPTH = 50
_MAX_NODES = 100_000
"""With every alias counted as often as it is used."""
_LONGEST = 300


class YamlError(ValueError):
    """The text is not YAML, or not a config; one line."""


class _Loader(yaml.SafeLoader):
    """Stops reading at the first node that is too deep."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        _refuse_deep(self._depth - 1)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def parse_yaml(text: str) -> Any:
    """The plain values of a YAML text."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except YamlError:
        raise
    except Exception as error:  # PyYAML's own errors, and those of int, float and datetime in its constructors
        cause = " ".join(str(error).split())
        raise YamlError(cause if len(cause) <= _LONGEST else cause[:_LONGEST] + "...") from error


def _check(root: yaml.Node) -> None:
    left, seen = [(root, 0)], 0
    while left:
        node, depth = left.pop()
        seen += 1
        _refuse_deep(depth)  # again, because an alias can contain itself
        if seen > _MAX_NODES:
            raise YamlError(f"it has more than {_MAX_NODES} values, maybe through repeated aliases")
        if isinstance(node, yaml.MappingNode):
            _refuse_duplicates(node)
            left += [(inner, depth + 1) for pair in node.value for inner in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += [(inner, depth + 1) for inner in node.value]


def _refuse_deep(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise YamlError(f"it is nested more than {_MAX_DEPTH} levels deep")


def _refuse_duplicates(node: yaml.MappingNode) -> None:
    keys = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in keys:
                raise YamlError(f"the key '{key.value}' appears twice, again in line {key.start_mark.line + 1}")
            keys.add((key.tag, key.value))
