"""Every error Surefoot raises on purpose: one line that names the cause and the remedy."""

from collections.abc import Sequence


class SurefootError(Exception):
    """Root of all typed errors; the CLI prints its message and exits with `exit_code`."""

    exit_code = 2


class ConfigError(SurefootError):
    """One or more settings are invalid; the message lists all of them."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        many = len(self.problems) > 1
        head = f"{len(self.problems)} invalid settings:\n  - " if many else ""
        super().__init__(head + "\n  - ".join(self.problems))


class EnvError(SurefootError):
    """An environment broke its contract (shapes, flags, final observations, masks)."""


class UnknownEnvError(EnvError):
    """No environment is registered under this id."""


class NonFiniteError(EnvError):
    """NaN or infinity, from an environment or in updates that rollbacks did not fix."""


class PolicyError(SurefootError):
    """A policy does not fit the environment or the protocol."""


class AgentInUseError(SurefootError):
    """An agent is used by two threads at the same time."""


class HookError(SurefootError):
    """A hook raised an exception; the run was saved before it ended."""


class PartError(SurefootError):
    """A term, a policy or another part of a run raised an exception or tried to exit the process."""


class RankError(SurefootError):
    """Another process that trains the same policy failed, or does not answer."""


class SinkError(SurefootError):
    """A sink could not be opened."""


class CheckpointError(SurefootError):
    """A checkpoint cannot be read: it is damaged, not a Surefoot checkpoint, or of an unknown version."""


class CheckpointMismatchError(CheckpointError):
    """A valid checkpoint that belongs to a different network or setup."""


class RunDirectoryError(SurefootError):
    """The run directory cannot be used: not writable, locked, or not a run."""


class DirectoryInUseError(RunDirectoryError):
    """Another process holds the lock of the directory."""


class PopulationError(SurefootError):
    """A population cannot begin or continue: all of its members failed, or its directory belongs to another one."""


class NativeError(SurefootError):
    """The compiled core is missing, does not match the package, or does not support a request."""


class InstructionsError(NativeError):
    """SUREFOOT_INSTRUCTIONS names none that this machine supports; never a reason to run without the core."""


class ZooError(SurefootError):
    """The zoo has no policy of this name."""


class ExportError(SurefootError):
    """A policy cannot be exported: a package is missing, or its graph computes different outputs."""


class VideoError(SurefootError):
    """An agent cannot be shown or recorded: its env cannot be rendered, or the file cannot be written."""


class ClusterError(SurefootError):
    """A Ray cluster cannot be used: Ray is missing, nobody answers, or a node does not fit the job."""


class SweepError(SurefootError):
    """A sweep cannot begin or has no result."""
