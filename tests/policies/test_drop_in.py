"""Adding a critic, a distribution or an encoder is adding one file to its folder, and nothing else."""

import subprocess
import sys
from pathlib import Path

ENCODER = '''
"""The observation twice."""
import torch
from surefoot.policies.encoders import Encoder, encoders

@encoders.register("twice")
class Twice(Encoder):
    def __init__(self, spec, config, policy):
        super().__init__(spec, config, policy)
        self.output_size = 2 * spec.size

    def forward(self, obs):
        return torch.cat((obs.flatten(1), obs.flatten(1)), dim=1)
'''
DISTRIBUTION = '''
"""A categorical that is half uniform."""
import math
import torch
from surefoot.policies.distributions import distributions
from surefoot.policies.distributions.categorical import Categorical, CategoricalHead

@distributions.register("half_uniform")
class HalfUniformHead(CategoricalHead):
    def forward(self, latent, action_mask=None):
        log_probs = super().forward(latent, action_mask).log_probs
        uniform = torch.full_like(log_probs, -math.log(log_probs.shape[-1]))
        return Categorical(torch.logaddexp(log_probs, uniform) - math.log(2))
'''
CRITIC = '''
"""Absolute error in place of squared."""
from surefoot.policies.critics import critics
from surefoot.policies.critics.scalar import ScalarCritic

@critics.register("absolute")
class AbsoluteCritic(ScalarCritic):
    def loss(self, prediction, targets):
        return (self.value(prediction) - targets.returns).abs().mean()
'''
SETTINGS = "--policy.encoder twice --policy.distribution half_uniform --policy.critic absolute"
# The folders are packages, so a folder of ours can stand beside the shipped files.
PROGRAM = """
import sys
from surefoot.policies import critics, distributions, encoders
for package in (critics, distributions, encoders):
    package.__path__.append(sys.argv.pop(1))
from surefoot.cli.main import main
sys.exit(main())
"""


def test_one_file_each(tmp_path: Path) -> None:
    folders = []
    for name, code in (("critics", CRITIC), ("distributions", DISTRIBUTION), ("encoders", ENCODER)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "dropped_in.py").write_text(code)
        folders.append(str(folder))
    run = tmp_path / "run"
    arguments = f"train CartPole-v1 --steps 1000 --train.eval_episodes 2 --run-dir {run} --debug {SETTINGS}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *folders, *arguments.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (run / "best.safetensors").exists()
    assert "half_uniform" in (run / "config.yaml").read_text()
