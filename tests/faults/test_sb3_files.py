"""Files of Stable-Baselines3 that anybody may have written: nothing in them runs, and what is wrong is named."""

import copyreg
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from surefoot import from_sb3
from surefoot.errors import CheckpointError, ConfigError

ENV = "Pendulum-v1"
LAYER = "mlp_extractor.policy_net.0"


class Called:
    """A call that the pickle asks for."""

    def __init__(self, *call: Any) -> None:
        self._call = call

    def __reduce__(self) -> Any:
        return self._call


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of an agent."""
    folder = tmp_path_factory.mktemp("sound")
    vector = VecNormalize(make_vec_env(ENV, 2, seed=0))
    model = sb3.PPO("MlpPolicy", vector, n_steps=8, batch_size=8, device="cpu", policy_kwargs={"net_arch": [8]})
    vector.reset()
    vector.step(np.zeros((2, 1)))
    model.save(folder / "agent.zip")
    vector.save(str(folder / "statistics.pkl"))
    return folder


def archive(sound: Path, path: Path, policy: bytes, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(sound / "agent.zip") as good, zipfile.ZipFile(path, "w") as changed:
        changed.writestr("data", good.read("data"))
        changed.writestr("policy.pth", policy, compression)
    return path


def weights(sound: Path) -> dict[str, Tensor]:
    with zipfile.ZipFile(sound / "agent.zip") as good:
        return torch.load(io.BytesIO(good.read("policy.pth")), weights_only=True)


def saved(tensors: Any) -> bytes:
    data = io.BytesIO()
    torch.save(tensors, data)
    return data.getvalue()


def refused(path: Path, statistics: Path | None = None) -> str:
    with pytest.raises(CheckpointError) as caught:
        from_sb3(path, ENV, statistics)
    message = str(caught.value)
    assert str(statistics or path) in message
    assert "\n" not in message
    return message


def with_statistics(sound: Path, path: Path, change: Callable[[Any], None]) -> Path:
    with (sound / "statistics.pkl").open("rb") as file:
        vector = pickle.load(file)
    vector.class_attributes, vector.returns = {}, np.zeros(2)  # which are not in the file
    change(vector)
    path.write_bytes(pickle.dumps(vector))
    return path


BYTES = b"\x10\0\0\0\0\0\0\0" * 3
STATISTICS: dict[str, tuple[Any, str]] = {
    "NaN": (np.full(3, np.nan), "obs_rms.mean contains NaN or infinity"),
    "objects": (np.array([None, {}, "x"]), "obs_rms.mean is not an array of"),
    "pointers": (Called(np.ndarray, ((3,), np.dtype("O"), BYTES)), "obs_rms.mean is not an array"),
    "outside the buffer": (Called(np.ndarray, ((3,), np.dtype("f8"), BYTES, -4096)), "obs_rms.mean is not an array"),
    "reconstructed": (Called(copyreg._reconstructor, (np.ndarray, np.ndarray, None)), "obs_rms.mean is not an array"),
    "complex": (np.zeros(3, complex), "obs_rms.mean is not an array of plain numbers"),
    "fields": (np.zeros(3, [("a", "f8")]), "obs_rms.mean is not an array of plain numbers"),
    "text": ("x" * 24, "obs_rms.mean is not an array"),
    "bits": (True, "obs_rms.mean is not an array"),
    "another shape": (np.zeros((3, 1)), "obs_rms has arrays whose shapes do not fit"),
    "a digit too many": (10**400, "OverflowError"),
}


@pytest.mark.parametrize("kind", STATISTICS)
def test_statistics_that_are_no_numbers_are_named(sound: Path, tmp_path: Path, kind: str) -> None:
    value, message = STATISTICS[kind]
    path = with_statistics(sound, tmp_path / "x.pkl", lambda vector: setattr(vector.obs_rms, "mean", value))
    assert message in refused(sound / "agent.zip", path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"obs_rms.var": np.array([1.0, -1.0, 1.0])}, "obs_rms.var must not be negative"),
        ({"obs_rms.count": -1.0}, "obs_rms.count must not be negative"),
        ({"ret_rms.var": np.float64(-2)}, "ret_rms.var must not be negative"),
        ({"ret_rms.count": float("nan")}, "ret_rms.count contains NaN"),
        ({"ret_rms.mean": np.zeros(3), "ret_rms.var": np.ones(3)}, "ret_rms has the shape (3,), not ()"),
        ({"obs_rms.mean": np.zeros(5), "obs_rms.var": np.ones(5)}, "obs_rms has the shape (5,), not (3,)"),
        ({"obs_rms": None}, "obs_rms.count is missing"),
        ({"clip_obs": -1.0}, "clip_obs must be a finite number above 0"),
        ({"clip_reward": "much"}, "clip_reward is not an array of numbers"),
        ({"norm_obs": 3}, "norm_obs must be true or false"),
    ],
)
def test_wrong_statistics_are_named(sound: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    def change(vector: Any) -> None:
        for name, value in changes.items():
            owner, _, field = name.rpartition(".")
            setattr(getattr(vector, owner) if owner else vector, field, value)

    assert message in refused(sound / "agent.zip", with_statistics(sound, tmp_path / "x.pkl", change))


def test_nothing_in_a_file_runs(sound: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    hostile = Called(os.mkdir, (str(trace),))
    message = refused(archive(sound, tmp_path / "a.zip", saved(weights(sound) | {f"{LAYER}.bias": hostile})))
    assert f"{LAYER}.bias is not a plain tensor" in message
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(hostile))
    assert "it has no statistics" in refused(sound / "agent.zip", tmp_path / "x.pkl")
    unused = with_statistics(sound, tmp_path / "y.pkl", lambda vector: setattr(vector, "render_mode", hostile))
    from_sb3(sound / "agent.zip", ENV, unused)
    assert not trace.exists()
    pickle.loads(pickle.dumps(hostile))
    assert trace.exists(), "the control"


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x04.",
        b"(" * 1000,
        b"N" * (10**6 + 2) + b".",
        b"\x80\x04]\x94" + b"h\x00a" * 100 + b".",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",  # 2^63 bytes
        b"\x80\x04)\x94" + b"".join(b"h%c\x86\x94" % i + b"h%c" % i for i in range(60)) + b"}(h\x3bNu.",
        b"\x80\x04" + b"(" * 5000 + b"t" * 5000 + b".",
        b"Pid\n.",
        b"\x82\x01.",
    ],
)
def test_odd_pickles_are_refused(sound: Path, tmp_path: Path, pickled: bytes) -> None:
    (tmp_path / "x.pkl").write_bytes(pickled)
    assert "is not a saved VecNormalize" in refused(sound / "agent.zip", tmp_path / "x.pkl")


WEIGHTS: dict[str, Any] = {
    "NaN": lambda weight: weight * float("nan"),
    "infinity": lambda weight: weight / 0,
    "too large for float32": lambda weight: weight.double() + 1e300,
    "integers": lambda weight: weight.long(),
    "bfloat16": lambda weight: weight.bfloat16(),
    "complex": lambda weight: weight.cfloat(),
    "sparse": lambda weight: weight.to_sparse(),
    "quantized": lambda weight: torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8),
    "without storage": lambda weight: weight.to("meta"),
    "repeated": lambda weight: torch.zeros(1, 1).expand(2**18, 2**18),
    "transposed": lambda weight: weight.T.contiguous().T,
    "no numbers": lambda weight: torch.zeros(2**30, 0),
    "a number": lambda weight: torch.zeros(()),
    "a vector": lambda weight: weight.flatten(),
    "other sizes": lambda weight: torch.zeros(8, 5),
    "a list": lambda weight: weight.tolist(),
    "a name": lambda weight: torch.Tensor,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WEIGHTS)
def test_wrong_weights_are_named(sound: Path, tmp_path: Path, kind: str) -> None:
    tensors = weights(sound)
    tensors[f"{LAYER}.weight"] = WEIGHTS[kind](tensors[f"{LAYER}.weight"])
    assert f"{LAYER}.weight" in refused(archive(sound, tmp_path / "a.zip", saved(tensors)))


@pytest.mark.parametrize("name", [f"{LAYER}.bias", "action_net.bias", "mlp_extractor.value_net.0.weight"])
def test_a_missing_weight_is_named(sound: Path, tmp_path: Path, name: str) -> None:
    tensors = weights(sound)
    del tensors[name]
    assert f"{name} is missing" in refused(archive(sound, tmp_path / "a.zip", saved(tensors)))


def test_weights_of_other_layouts_are_read(sound: Path, tmp_path: Path) -> None:
    tensors = weights(sound)
    whole = torch.cat([tensor.flatten() for tensor in tensors.values()])
    pieces = whole.split([tensor.numel() for tensor in tensors.values()])
    views = {name: piece.view(tensors[name].shape) for name, piece in zip(tensors, pieces, strict=True)}
    doubled = {name: tensor.double() for name, tensor in tensors.items()}
    expected = from_sb3(sound / "agent.zip", ENV).policy.state_dict()
    for number, other in enumerate((views, doubled)):
        path = archive(sound, tmp_path / f"{number}.zip", saved(other), zipfile.ZIP_DEFLATED)
        found = from_sb3(path, ENV).policy.state_dict()
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_an_archive_that_expands_is_refused_before_it_is_read(sound: Path, tmp_path: Path, compression: int) -> None:
    path = archive(sound, tmp_path / "a.zip", bytes(2**26), compression)
    assert path.stat().st_size < 2**17
    message = refused(path)
    assert "'policy.pth' expands from" in message or "'policy.pth' is compressed in an unusual way" in message


def test_many_names_for_few_bytes_are_refused(sound: Path, tmp_path: Path) -> None:
    tensors = weights(sound)
    large = torch.zeros(2**12, 64)
    tensors |= {f"mlp_extractor.policy_net.{number}.weight": large for number in range(1000)}
    assert "its tensors are larger than the file" in refused(archive(sound, tmp_path / "a.zip", saved(tensors)))


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device", "missing"])
def test_only_regular_files_are_opened(sound: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            os.mkfifo(tmp_path / "pipe")
            path.symlink_to(tmp_path / "pipe")
        case "folder":
            path.mkdir()
        case "device":
            path = Path("/dev/zero")
    expected = "does not exist" if kind == "missing" else "it is not a regular file"
    assert expected in refused(path)
    assert expected in refused(sound / "agent.zip", path)


def test_epsilon_is_applied(sound: Path, tmp_path: Path):
    """Actions are those of VecNormalize with a large epsilon, and a tiny one is refused where it matters."""

    def rough(vector: Any) -> None:
        vector.epsilon, vector.obs_rms.mean, vector.obs_rms.var = 1.0, np.array([0.1, 0.2, 0.3]), np.full(3, 0.5)

    obs = np.array([[1, 0, 4]], np.float32)
    model = sb3.PPO.load(sound / "agent.zip", device="cpu")
    normalized = ((obs - [0.1, 0.2, 0.3]) / np.sqrt(0.5 + 1.0)).astype(np.float32)
    agent = from_sb3(sound / "agent.zip", ENV, with_statistics(sound, tmp_path / "rough.pkl", rough))
    np.testing.assert_allclose(
        agent.predict(obs, deterministic=True)[0],
        model.predict(normalized, deterministic=True)[0],
        rtol=1e-4,
        atol=1e-5,
    )

    def tiny(vector: Any) -> None:
        vector.epsilon, vector.obs_rms.var = 1e-12, np.zeros(3)

    assert "obs_rms.var is smaller than 1e-08" in refused(
        sound / "agent.zip", with_statistics(sound, tmp_path / "tiny.pkl", tiny)
    )


def test_another_discount_of_rewards_is_refused(sound: Path, tmp_path: Path):
    other = with_statistics(sound, tmp_path / "other.pkl", lambda vector: setattr(vector, "gamma", 0.5))
    assert "discounts rewards with 0.5, but the agent with 0.99" in refused(sound / "agent.zip", other)
    from_sb3(sound / "agent.zip", ENV, other, normalize={"reward": False})
    from_sb3(sound / "agent.zip", ENV, other, gamma=0.5)


@pytest.mark.parametrize("name", ["\x1b[2Jevil\n", "A" * 10**6, f"mlp_extractor.policy_net.{'9' * 5000}.weight"])
def test_names_in_files_are_quoted_and_shortened(sound: Path, tmp_path: Path, name: str):
    path = archive(sound, tmp_path / "odd.zip", saved(weights(sound) | {name: torch.zeros(1)}))
    statistics = with_statistics(sound, tmp_path / "odd.pkl", lambda vector: setattr(vector, "obs_rms", {name: None}))
    for message in (refused(path), refused(sound / "agent.zip", statistics)):
        assert message.isprintable()
        assert len(message) < 500


@pytest.mark.parametrize("path", [None, b"x", 3])
def test_what_is_no_path_is_refused(sound: Path, path: Any):
    for given in ((path, ENV), (sound / "agent.zip", ENV, path)):
        if given[-1] is not None:
            with pytest.raises(ConfigError, match="pass a path"):
                from_sb3(*given)
