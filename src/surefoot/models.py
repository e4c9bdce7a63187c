"""What names a trained model, wherever one is expected: a file, a run directory or a policy of the zoo."""

from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import CheckpointError
from surefoot.inspection.seeds_folder import refuse_seeds_folder
from surefoot.settings.layers import read_yaml
from surefoot.storage.trust import Trust, names_in
from surefoot.training.run_directory import RunDirectory
from surefoot.zoo import PREFIX, zoo_entry


@dataclass(frozen=True)
class Model:
    """The file of a model, and the names in the config of its run, which is the user's own, or in the zoo's index."""

    file: Path
    names: frozenset[str] = frozenset()

    def trusted(self, trust: Trust) -> Trust:
        """What may be imported: what the caller trusts, and these names."""
        return trust if isinstance(trust, bool) and (trust or not self.names) else self.names.union(trust or ())


def find_model(name: str | Path) -> Model:
    """A `.safetensors` file; the best policy of a run directory, or its newest; or `zoo:NAME`."""
    if str(name).startswith(PREFIX):
        entry = zoo_entry(str(name))
        return Model(entry.file, frozenset({entry.env}))
    path = Path(name)
    if not path.is_dir():
        return Model(path)
    refuse_seeds_folder(path)
    run = RunDirectory(path)
    names = names_in(read_yaml(run.config_file)) if run.holds_run else set()
    return Model(_policy_of(run), frozenset(names))


def _policy_of(run: RunDirectory) -> Path:
    if run.best.exists():
        return run.best
    if run.saved():
        return run.saved()[0]
    if run.holds_run:
        raise CheckpointError(
            f"{run.path} has no checkpoint yet; wait for the first one, or lower train.checkpoint_every"
        )
    raise CheckpointError(
        f"{run.path} is neither a run directory nor a model file; pass the directory that 'surefoot train' printed, a"
        " .safetensors file, or zoo:NAME"
    )
