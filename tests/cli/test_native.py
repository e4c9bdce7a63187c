"""`surefoot native`: environments of your own in C++, outside the tree, from an empty folder to a resumed run."""

import contextlib
import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.envs import native
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import slot_for, step_all
from surefoot.errors import EnvError, NativeError
from surefoot.native.building import build
from surefoot.rollout.native import NativeCollector
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.verification import check, verify
from surefoot.verification.check import NO_TWIN
from surefoot.verification.table import summary
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, newest, records, train
from tests.compiled import compiled
from tests.training.states import assert_same
from tests.verification.sizes import less

ENTRY = """
struct Table {{ int version, mujoco; void *envs, *make; }};
extern "C" __attribute__((visibility("default"))) const Table* surefoot_library() {{
  static const Table table{{{version}, {mujoco}, nullptr, nullptr}};
  return &table;
}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the files of `native new`, built."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main(["native", "new", "wind_env"]) == 0
            assert main(["native", "build", "wind_env.cpp"]) == 0
    assert "next      surefoot native build wind_env.cpp\n" in printed.getvalue()
    assert "next      surefoot verify ./wind_env.so\n          surefoot train ./wind_env.so\n" in printed.getvalue()
    return folder


@pytest.fixture(autouse=True)
def _less(monkeypatch) -> None:
    less(monkeypatch, limits=(23, 7))


@pytest.fixture
def folder(built, tmp_path, monkeypatch) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened(env_id, engine="auto", **config):
    return make_vec_env(env_id, EnvConfig(**config), 3, 0, RolloutConfig(engine=engine))


def test_new_files_are_verified_by_their_own_test(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "test_wind_env.py",
        "wind_env.cpp",
        "wind_env.py",
        "wind_env.so",
    ]
    assert verify("./wind_env.so").ok
    assert "WindEnv-v0" in (folder / "test_wind_env.py").read_text()


def test_a_fault_in_the_c_plus_plus_is_found(folder, monkeypatch):
    monkeypatch.setattr(check, "new_process", lambda run: contextlib.nullcontext("not in this test"))
    source = folder / "wind_env.cpp"
    source.write_text(source.read_text().replace("kDrag = 0.05", "kDrag = 0.0500001"))
    compiled(source)
    report = verify("./wind_env.so")
    assert not report.ok
    assert "env dynamics" in [part.name for part in report.components if part.verdict == "DIFFERS"]


def test_without_a_twin_it_is_held_to_the_protocol_and_not_called_equal(folder):
    (folder / "wind_env.py").unlink()
    report = verify("./wind_env.so:WindEnv-v0")
    assert (report.ok, report.path) == (True, "library"), report.components
    names = {part.name for part in report.components}
    assert {"seeding", "resume", "protocol", "thread independence", "row independence", "policy outputs"} <= names
    told, *missing = summary(report).splitlines()
    assert "native rollouts equal those of the readable collector; the env keeps the protocol" in told
    assert "envs equal" not in told
    assert f"not compared: rewards, of the env itself ({NO_TWIN})" in missing
    with pytest.raises(EnvError, match=r"has no Python twin \(TWINS in wind_env\.py beside it\); set rollout\.engine"):
        opened("./wind_env.so", "local")
    envs = native.make("./wind_env.so", 2)
    assert envs.observation_space.shape == (2, 2)


def test_a_fault_in_rollouts_is_found_without_a_twin(folder, monkeypatch):
    (folder / "wind_env.py").unlink()
    collect = NativeCollector.collect

    def spoiled(self, policy):
        rollout = collect(self, policy)
        rollout.log_prob.add_(0.01)
        return rollout

    monkeypatch.setattr(NativeCollector, "collect", spoiled)
    monkeypatch.setattr(check, "check_protocol", lambda *_: None)
    assert "log-probs" in verify("./wind_env.so").differing


def test_engines_and_arguments(folder):
    env = opened("./wind_env.so", kwargs={"force": 2.0})
    assert isinstance(env, NativeEngine)
    assert (env.metrics, list(env.parameters)) == ({"distance": "mean"}, ["wind"])
    assert not isinstance(opened("./wind_env.so", "local"), NativeEngine)
    for engine in ("auto", "native"):
        with pytest.raises(NativeError, match="WindEnv-v0 has no native option 'nonsense'"):
            opened("./wind_env.so", engine, kwargs={"nonsense": 1.0})
    with pytest.raises(EnvError, match=r"has no environment 'WindEnv-v1'; did you mean 'WindEnv-v0'\?"):
        opened("./wind_env.so:WindEnv-v1")


def test_a_robot_around_a_mujoco_model_is_built_verified_and_trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["native", "new", "my_dog", "--mujoco"]) == 0
    files = ["my_dog.cpp", "my_dog.py", "my_dog.xml", "test_my_dog.py"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    assert not any("robot" in Path(file).read_text().lower() for file in files if file != "my_dog.cpp")
    compiled(Path("my_dog.cpp"))
    monkeypatch.setattr(check, "new_process", lambda run: contextlib.nullcontext("not in this test"))
    report = verify("./my_dog.so")
    assert report.ok, report.differing
    envs, twins = opened("./my_dog.so"), opened("./my_dog.so", "local")
    slots = slot_for(envs), slot_for(twins)
    for one, slot in zip((envs, twins), slots, strict=True):
        one.set_parameters({"gear": [5.0, 10.0, 20.0]})
        one.reset(slot)
        step_all(one, np.ones((3, 1), np.float32), slot)
    assert np.array_equal(*(slot.obs for slot in slots))
    assert len(set(slots[0].obs[:, 2])) == 3
    agent = PPO("./my_dog.so", num_envs=8, num_steps=64, batch_size=128, seed=1, eval_episodes=0)
    before = agent.evaluate(8).mean_reward
    assert agent.learn(8_192).evaluate(8).mean_reward > 2 * before  # 3.5 to 4.7 times on seeds 1 to 3


def test_parameters_of_a_vector_env_are_those_of_the_engine(folder):
    envs, engine = native.make("./wind_env.so", 3), opened("./wind_env.so")
    adapted = GymnasiumVectorEnv(native.make("./wind_env.so", 3, autoreset_mode="NextStep"), seed=1)
    wind, still = [0.0, 1.0, -1.0], np.zeros((3, 1), np.float32)
    for one in (envs, engine, adapted):
        assert one.parameters == {"wind": 0.0}
        one.set_parameters({"wind": wind})
        assert one.parameter_values["wind"].tolist() == wind
        with pytest.raises(EnvError, match="unknown parameter 'winde'; these envs have wind"):
            one.set_parameters({"winde": 1.0})
    first = envs.reset(seed=[1, 1, 1])[0]
    pushed = envs.step(still)[0] - first
    assert pushed[2, 1] < pushed[0, 1] == 0 < pushed[1, 1]
    slot = slot_for(adapted)
    adapted.reset(slot)
    step_all(adapted, still, slot)
    assert slot.obs[2, 1] < slot.obs[0, 1] == 0 < slot.obs[1, 1]


def test_train_then_resume_bit_for_bit(folder):
    library, whole, resumed = str(folder / "wind_env.so"), folder / "whole", folder / "resumed"
    train(library, whole, *TINY, "--steps", 1024)
    train(library, resumed, *TINY, "--steps", 512)
    assert set(newest(resumed)["collector"]["envs"]) == {"rows", "parameters"}
    surefoot("resume", resumed, "--steps", 1024).succeeded()
    assert_same(newest(resumed), newest(whole))
    assert records(resumed) == records(whole)
    assert any("env/distance" in record for record in records(whole))


def test_envs_lists_what_was_built_here(folder, capsys):
    (folder / "other.so").write_bytes(b"no library")
    assert main(["envs"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == " n ./wind_env.so:WindEnv-v0"
    assert main(["envs", "wind_env.so"]) == 0
    assert capsys.readouterr().out == " n ./wind_env.so:WindEnv-v0\n"


def test_several_envs_are_told_apart(folder):
    source = folder / "wind_env.cpp"
    more = 'const Registered kMore{"Calm-v0", make<WindEnv>, 7};\n\n}  // namespace\n'
    source.write_text(source.read_text().replace("}  // namespace\n", more))
    compiled(source, folder / "two.so")
    with pytest.raises(EnvError, match=r"has several environments; choose one of \./two\.so:Calm-v0, \./two\.so:Wind"):
        opened("./two.so")
    opened("./two.so:Calm-v0").close()


@pytest.mark.parametrize(
    ("version", "mujoco", "said"),
    [("99", "1", "was built for interface version 99, not 5"), ("5", "99", "was built for MuJoCo 99, not ")],
)
def test_a_library_of_another_version_is_refused(tmp_path, version, mujoco, said):
    source = tmp_path / "old.cpp"
    source.write_text(ENTRY.format(version=version, mujoco=mujoco))
    subprocess.run(["c++", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "old.so")], check=True)
    with pytest.raises(NativeError, match=rf"{said}.*; run 'surefoot native build' on its source again"):
        opened(str(tmp_path / "old.so"))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(NativeError, match="run 'surefoot native build'"):
        opened(str(tmp_path / "text.so"))
    (tmp_path / "plain.cpp").write_text("int nothing;")
    subprocess.run(["c++", "-shared", "-fPIC", tmp_path / "plain.cpp", "-o", tmp_path / "plain.so"], check=True)
    with pytest.raises(NativeError, match="is not a library of Surefoot environments; run"):
        opened(str(tmp_path / "plain.so"))
    with pytest.raises(
        NativeError, match=r"none\.so does not exist; compile it with 'surefoot native build none\.cpp'"
    ):
        opened(str(tmp_path / "none.so"))


def test_what_does_not_compile_is_shown(tmp_path, monkeypatch):
    source = tmp_path / "broken.cpp"
    source.write_text('#include "surefoot/env.hpp"\nint broken = "text";\n')
    with pytest.raises(NativeError, match=r"broken\.cpp does not compile:(.|\n)*invalid conversion"):
        build(source)
    assert not source.with_suffix(".so").exists()
    with pytest.raises(NativeError, match="create a template with 'surefoot native new nothing'"):
        build(tmp_path / "nothing.cpp")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(NativeError, match=r"no C\+\+ compiler found \(CXX is 'no-such-compiler'\); install one"):
        build(source)


def test_new_refuses_bad_names_and_existing_files(folder, capsys):
    assert main(["native", "new", "Wind-Env"]) == 2
    assert "is not a name in lower case" in capsys.readouterr().err
    assert main(["native", "new", "wind_env"]) == 2
    assert "already exists here; choose another name" in capsys.readouterr().err
    assert main(["native", "bild", "wind_env.cpp"]) == 2
    assert "did you mean 'build'?" in capsys.readouterr().err
