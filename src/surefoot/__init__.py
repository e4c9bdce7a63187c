"""Surefoot trains reinforcement-learning agents with PPO: correct, fast and without surprises.

The public API is exported here; docs/extend has one page per base class. Docstrings cite the rules of the computation
by number, such as (S2); docs/semantics.md explains them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot.envs.tasks.registration import register_with_gymnasium
from surefoot.version import VERSION

if TYPE_CHECKING:
    from surefoot.api import PPO as PPO
    from surefoot.data.records import IterationReport as IterationReport
    from surefoot.data.records import Knobs as Knobs
    from surefoot.data.records import Learned as Learned
    from surefoot.data.records import Progress as Progress
    from surefoot.data.records import Rollout as Rollout
    from surefoot.data.records import Targets as Targets
    from surefoot.data.specs import ArraySpec as ArraySpec
    from surefoot.errors import SurefootError as SurefootError
    from surefoot.evaluation.evaluation import Evaluation as Evaluation
    from surefoot.evaluation.grid import Grid as Grid
    from surefoot.learning.attacks import Attack as Attack
    from surefoot.learning.estimators import Estimator as Estimator
    from surefoot.learning.schedules import Schedule as Schedule
    from surefoot.learning.terms import Minibatch as Minibatch
    from surefoot.learning.terms import Term as Term
    from surefoot.learning.terms import TermLoss as TermLoss
    from surefoot.learning.transforms import GradientTransform as GradientTransform
    from surefoot.policies.critics import Critic as Critic
    from surefoot.policies.critics import ValueTargets as ValueTargets
    from surefoot.policies.distributions import Distribution as Distribution
    from surefoot.policies.distributions import DistributionHead as DistributionHead
    from surefoot.policies.encoders import Encoder as Encoder
    from surefoot.policies.memory import Memory as Memory
    from surefoot.policies.policy import Policy as Policy
    from surefoot.policies.policy import PolicyOutput as PolicyOutput
    from surefoot.sb3.agent import from_sb3 as from_sb3
    from surefoot.settings.config import Config as Config
    from surefoot.settings.parts import Knob as Knob
    from surefoot.settings.parts import PartSettings as PartSettings
    from surefoot.telemetry.sinks import FileSink as FileSink
    from surefoot.training.hooks import Hook as Hook
    from surefoot.training.hooks import RunContext as RunContext

__version__ = VERSION

_HOMES = {
    "PPO": "surefoot.api",
    "Config": "surefoot.settings.config",
    "SurefootError": "surefoot.errors",
    "Knob": "surefoot.settings.parts",
    "PartSettings": "surefoot.settings.parts",
    "IterationReport": "surefoot.data.records",
    "Knobs": "surefoot.data.records",
    "Learned": "surefoot.data.records",
    "Progress": "surefoot.data.records",
    "Rollout": "surefoot.data.records",
    "Targets": "surefoot.data.records",
    "ArraySpec": "surefoot.data.specs",
    "Evaluation": "surefoot.evaluation.evaluation",
    "Grid": "surefoot.evaluation.grid",
    "Attack": "surefoot.learning.attacks",
    "Estimator": "surefoot.learning.estimators",
    "Schedule": "surefoot.learning.schedules",
    "Minibatch": "surefoot.learning.terms",
    "Term": "surefoot.learning.terms",
    "TermLoss": "surefoot.learning.terms",
    "GradientTransform": "surefoot.learning.transforms",
    "Critic": "surefoot.policies.critics",
    "ValueTargets": "surefoot.policies.critics",
    "Distribution": "surefoot.policies.distributions",
    "DistributionHead": "surefoot.policies.distributions",
    "Encoder": "surefoot.policies.encoders",
    "Memory": "surefoot.policies.memory",
    "Policy": "surefoot.policies.policy",
    "PolicyOutput": "surefoot.policies.policy",
    "from_sb3": "surefoot.sb3.agent",
    "FileSink": "surefoot.telemetry.sinks",
    "Hook": "surefoot.training.hooks",
    "RunContext": "surefoot.training.hooks",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    # On first use, so that `surefoot --help` and the error paths of the command line do not wait for torch.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'surefoot' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__


register_with_gymnasium()
