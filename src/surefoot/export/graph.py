"""A deployed policy to an ONNX graph that holds what acting needs and nothing else."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from surefoot.core.errors import ExportError
from surefoot.core.extras import install_hint
from surefoot.export.deployed import NEXT_STATE, STATE, Deployed

if TYPE_CHECKING:
    import onnx

_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_EXAMPLE_ROWS = 3
"""Rows of the traced example: not 1, which tracing takes for a constant."""


def require_packages() -> None:
    """Refuse to begin without the extra."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ExportError(f"exporting needs {', '.join(missing)}; {install_hint('onnx')}")


def build_graph(deployed: Deployed, metadata: Mapping[str, str]) -> "onnx.ModelProto":
    """The graph, checked for form; whether it computes the same is another question."""
    import onnx

    model = _traced(deployed)
    _prune(model.graph)
    _name_batch_axis(model.graph)
    onnx.helper.set_model_props(model, dict(metadata))
    onnx.checker.check_model(model, full_check=True)
    return model


def _traced(deployed: Deployed) -> "onnx.ModelProto":
    try:
        with torch.no_grad(), _quiet():
            graph = torch.onnx.export(
                _captured(deployed),
                dynamo=True,
                verbose=False,
                input_names=[part.name for part in deployed.inputs],
                output_names=deployed.outputs,
            )
    except Exception as error:  # tracing runs the user's own modules, so anything can happen
        raise ExportError(
            f"{type(deployed.policy).__name__} cannot be turned into a graph ({_reason(error)}); use torch operations"
            " alone in its modules, and no decisions that depend on values"
        ) from error
    assert graph is not None
    return graph.model_proto


def _captured(deployed: Deployed) -> torch.export.ExportedProgram:
    """The operations for any number of rows."""
    examples = tuple(part.batch(_EXAMPLE_ROWS) for part in deployed.inputs)
    shapes = (tuple({0: torch.export.Dim("batch", min=1)} for _ in examples),)
    try:
        return torch.export.export(deployed, examples, dynamic_shapes=shapes, strict=False)
    except torch._dynamo.exc.UserError:
        # The quick way takes `len` of a batch for a constant; the other one reads the bytecode and does not.
        return torch.export.export(deployed, examples, dynamic_shapes=shapes, strict=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns of packages that are not used here, and of its own insides."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reason(error: BaseException) -> str:
    """The first line of what began it all."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def _prune(graph: "onnx.GraphProto") -> None:
    """Drop what acting does not need: the critic, its memory, and observations that it alone sees."""
    outputs = {value.name for value in graph.output if not value.name.startswith(NEXT_STATE)}
    while True:
        needed = _needed(graph, outputs)
        carried = {name.replace(STATE, NEXT_STATE) for name in needed if name.startswith(STATE)}
        if carried <= outputs:
            break
        outputs |= carried
    _keep(graph.output, outputs)
    _keep(graph.input, needed)
    _keep(graph.initializer, needed)
    _keep(graph.value_info, needed)
    kept = [node for node in graph.node if not needed.isdisjoint(node.output)]
    del graph.node[:]
    graph.node.extend(kept)


def _needed(graph: "onnx.GraphProto", outputs: set[str]) -> set[str]:
    """Names of all that the outputs are computed from; nodes come after what they take."""
    needed = set(outputs)
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(_taken(node))
    return needed


def _taken(node: "onnx.NodeProto") -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for inner in [attribute.g, *attribute.graphs]:
            for part in inner.node:
                yield from _taken(part)


def _keep(values: Any, names: set[str]) -> None:
    kept = [value for value in values if value.name in names]
    del values[:]
    values.extend(kept)


def _name_batch_axis(graph: "onnx.GraphProto") -> None:
    """Tracing numbers what it does not know; the only such thing here is the number of rows."""
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.dim_param = "batch"
