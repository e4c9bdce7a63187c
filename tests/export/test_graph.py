"""What an export needs, and the ops that remain."""

import importlib.util

import onnx
import pytest
from onnx import TensorProto, helper

from surefoot.errors import ExportError
from surefoot.export import graph
from surefoot.machine.extras import install_hint


def test_a_missing_extra_is_named_with_its_remedy(monkeypatch):
    missing = {"onnxscript", "onnxruntime"}
    monkeypatch.setattr(graph, "find_spec", lambda name: None if name in missing else importlib.util.find_spec(name))
    with pytest.raises(ExportError) as raised:
        graph.require_packages()
    assert str(raised.value) == f"export requires onnxscript, onnxruntime; {install_hint('onnx')}"


def test_only_what_acting_needs_is_kept():
    """state_0 acts, state_1 moves state_0, state_2 is the critic's."""
    nodes = [
        helper.make_node("Add", ["obs", "state_0"], ["action"]),
        helper.make_node("Add", ["state_0", "state_1"], ["next_state_0"]),
        helper.make_node("Neg", ["state_1"], ["next_state_1"]),
        helper.make_node("Mul", ["state_2", "weight"], ["hidden"]),
        helper.make_node("Add", ["hidden", "secret"], ["next_state_2"]),
    ]
    inputs = ["obs", "secret", "state_0", "state_1", "state_2"]
    outputs = ["action", "next_state_0", "next_state_1", "next_state_2"]
    weight = helper.make_tensor("weight", TensorProto.FLOAT, [1], [2.0])
    made = helper.make_graph(
        nodes, "test", [value(name) for name in inputs], [value(name) for name in outputs], [weight]
    )
    graph._prune(made)
    graph._name_batch_axis(made)
    assert [part.name for part in made.input] == ["obs", "state_0", "state_1"]
    assert [part.name for part in made.output] == ["action", "next_state_0", "next_state_1"]
    assert [node.op_type for node in made.node] == ["Add", "Add", "Neg"]
    assert not made.initializer
    assert made.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    onnx.checker.check_model(helper.make_model(made), full_check=True)


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["s27"])
