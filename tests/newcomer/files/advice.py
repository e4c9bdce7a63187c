"""A run with an env and an encoder of Python: each command names the Python that does the same, and it works."""

import re
import subprocess

from my_envs import Lamps
from torch import nn

from surefoot import PPO
from surefoot.errors import RunDirectoryError

SMALL = {"num_envs": 4, "num_steps": 32, "batch_size": 64}
PPO(Lamps, **SMALL).learn(256, run_dir="runs/object")
encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
PPO("CartPole-v1", encoder=encoder, **SMALL).learn(256, run_dir="runs/encoder")
of_lamps = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
PPO(Lamps, encoder=of_lamps, **SMALL).learn(256, run_dir="runs/both")
names = {"PPO": PPO, "YOUR_ENV": Lamps, "YOUR_ENCODER": encoder}
COMMANDS = (
    "resume {} --steps 512",
    "resume {} --checkpoint 256 --run-dir {}-new --steps 768",
    "evaluate {} --episodes 2",
    "watch {} --video advice.gif --max-steps 5",
    "export {} --onnx advice.onnx",
)
OVER = ("evaluate {} --episodes 2 --over sutton_barto_reward=true,false",)
for run, commands in (("runs/object", COMMANDS), ("runs/encoder", COMMANDS + OVER), ("runs/both", COMMANDS)):
    names["YOUR_ENCODER"] = encoder if run == "runs/encoder" else of_lamps
    for command in commands:
        typed = ["surefoot", *command.replace("{}", run).split()]
        said = subprocess.run(typed, capture_output=True, text=True, check=False)
        assert said.returncode == 2, said
        advice = re.search(r"PPO\.load\(.+?\)\.\w+\([^)]*\)", said.stderr)
        assert advice is not None, said.stderr
        print(" ".join(typed), "->", advice[0])
        eval(advice[0], names)

try:
    PPO("CartPole-v1", encoder=encoder, **SMALL).learn(128, run_dir="runs/encoder")
except RunDirectoryError as refusal:
    newest = re.search(r"load '([^']+)'", str(refusal))
assert newest is not None
PPO.load(newest[1], encoder=encoder).learn(128, run_dir="runs/encoder")
