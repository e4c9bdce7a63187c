"""`surefoot export RUN|MODEL --onnx FILE`"""

from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.arguments import parse
from surefoot.cli.trained import load_agent
from surefoot.core.errors import CheckpointMismatchError, ExportError


def main(arguments: list[str]) -> int:
    """Parse, then export."""
    return parse(export_model, "export", arguments)


def export_model(
    model: Annotated[Path, tyro.conf.Positional],
    /,
    onnx: Path,
    env: str | None = None,
    tolerance: float = 1e-5,
) -> int:
    """Write a run's policy as one ONNX file, from the env's observations to the env's actions, and a script to run it.

    It is written only if it acts as the policy does over a whole episode, in onnxruntime.

    Args:
        model: a run directory (its best policy, or its newest if none is marked best) or a .safetensors file
        onnx: the file to write; the script is written beside it
        env: a Gymnasium id to try it on instead of the one the policy was trained on
        tolerance: the largest difference from the policy that counts as rounding
    """
    try:
        agent, path = load_agent(model, env)
    except CheckpointMismatchError as error:
        raise ExportError(
            f"{model} has modules of your own; export it from Python: PPO.load(..., encoder=...) or"
            " PPO.load(..., policy=...), then .export_onnx(...)"
        ) from error
    exported = agent.export_onnx(onnx, tolerance=tolerance)
    parity = exported.parity
    print(f"policy    {path}")
    print(f"model     {exported.model}  ({exported.model.stat().st_size / 1e6:.1f} MB)")
    print(
        f"checked   {parity.steps} steps of {agent.config.env.id}: within {parity.largest_difference:.1e} of the policy"
    )
    print(f"script    {exported.script}  (numpy and onnxruntime alone)")
    return 0
