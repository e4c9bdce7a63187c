"""Converts a deployed policy to an ONNX graph with only what acting needs."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from surefoot.errors import ExportError
from surefoot.export.deployed import NEXT_STATE, STATE, Deployed
from surefoot.machine.extras import install_hint

if TYPE_CHECKING:
    import onnx

_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_EXAMPLE_ROWS = 3
"""Rows of the example for tracing: not 1, which tracing treats as a constant."""


def require_packages() -> None:
    """Raise an error if the extra is not installed."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ExportError(f"export requires {', '.join(missing)}; {install_hint('onnx')}")


def build_graph(deployed: Deployed, metadata: Mapping[str, str]) -> "onnx.ModelProto":
    """The graph, structurally validated; `check_parity` compares its outputs with the policy."""
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
                input_names=[one.name for one in deployed.inputs],
                output_names=deployed.outputs,
            )
    except Exception as error:  # tracing runs user modules, so any exception is possible
        raise ExportError(
            f"{type(deployed.policy).__name__} cannot be converted to a graph ({_reason(error)}); use only torch"
            " operations in its modules, without control flow that depends on tensor values"
        ) from error
    assert graph is not None
    return graph.model_proto


def _captured(deployed: Deployed) -> torch.export.ExportedProgram:
    """The operations for any number of rows."""
    examples = tuple(one.batch(_EXAMPLE_ROWS) for one in deployed.inputs)
    shapes = (tuple({0: torch.export.Dim("batch", min=1)} for _ in examples),)
    try:
        return torch.export.export(deployed, examples, dynamic_shapes=shapes, strict=False)
    except torch._dynamo.exc.UserError:
        # The fast mode treats `len` of a batch as a constant; strict mode, which reads the bytecode, does not.
        return torch.export.export(deployed, examples, dynamic_shapes=shapes, strict=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's warnings about unused packages and its internals."""
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
    """The first line of the root cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def _prune(graph: "onnx.GraphProto") -> None:
    """Remove what acting does not need: the critic, its memory, and observations that only the critic sees."""
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
    """Names of everything that the outputs depend on; nodes come after their inputs."""
    needed = set(outputs)
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(_taken(node))
    return needed


def _taken(node: "onnx.NodeProto") -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for inner in [attribute.g, *attribute.graphs]:
            for node in inner.node:
                yield from _taken(node)


def _keep(values: Any, names: set[str]) -> None:
    kept = [value for value in values if value.name in names]
    del values[:]
    values.extend(kept)


def _name_batch_axis(graph: "onnx.GraphProto") -> None:
    """Name the only dynamic axis, the number of rows; tracing gives it a numbered name."""
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.dim_param = "batch"
