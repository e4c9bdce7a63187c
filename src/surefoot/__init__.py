"""Surefoot trains reinforcement-learning agents with PPO: correct, fast and without surprises."""

from typing import TYPE_CHECKING, Any

from surefoot.core.version import VERSION

if TYPE_CHECKING:
    from surefoot.api import PPO

__version__ = VERSION
__all__ = ["PPO", "__version__"]


def __getattr__(name: str) -> Any:
    # On first use, so that `surefoot --help` and the error paths of the command line do not wait for torch.
    if name == "PPO":
        from surefoot.api import PPO

        return PPO
    raise AttributeError(f"module 'surefoot' has no attribute '{name}'")
