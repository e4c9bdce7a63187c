"""`surefoot export RUN|MODEL --onnx FILE`"""

from pathlib import Path

from surefoot.cli.arguments import Switch
from surefoot.cli.lines import tell
from surefoot.cli.trained import load_agent, or_in_python


def run(
    model: str,
    /,
    onnx: Path,
    env: str | None = None,
    tolerance: float = 1e-5,
    trust: Switch = False,
) -> int:
    """Export a policy as one ONNX file, from env observations to env actions, with a script that runs it.

    The files are written only if the model matches the policy over a complete episode in onnxruntime.

    Args:
        model: a run directory (its best policy, or the newest if there is none), a .safetensors file, or zoo:NAME
        onnx: the file to write; the script is written to the same directory
        env: a Gymnasium id to check the model on instead of the one the policy was trained on
        tolerance: largest difference from the policy that is accepted as rounding
        trust: import modules and load libraries that the model names
    """
    with or_in_python(model, f"export_onnx({str(onnx)!r})", env):
        agent, path = load_agent(model, env, trust)
        exported = agent.export_onnx(onnx, tolerance=tolerance)
    parity = exported.parity
    tell("policy", str(path))
    tell("model", f"{exported.model}  ({exported.model.stat().st_size / 1e6:.1f} MB)")
    compared = f"{parity.steps} steps of {agent.config.env.id}"
    tell("checked", f"{compared}: within {parity.largest_difference:.1e} of the policy")
    tell("script", f"{exported.script}  (needs only numpy and onnxruntime)")
    if exported.left_out:
        tell("note", f"the file has no {', '.join(exported.left_out)}: parameters of the env that belong to the agent")
    return 0
