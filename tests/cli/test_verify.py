"""`surefoot verify` as a command: table, JSON, exit codes."""

import json
import re
from pathlib import Path

from tests.cli.processes import Process, surefoot


def test_table_and_exit_code_of_equal_paths() -> None:
    finished = surefoot("verify", "--seed", 3).succeeded()
    assert "surefoot verify HalfCheetah-v5, seed 3" in finished.out, "the default preset's env"
    conclusion = (
        r"HalfCheetah-v5: ok in \d+ comparisons: native envs equal the readable ones; native rollouts equal those of"
        r" the readable collector; the learner \(native, \w+\) equals the readable one; targets, minibatches,"
        r" statistics and schedules equal plain numpy$"
    )
    assert re.search(conclusion, " ".join(finished.out.split())), "at the end, in as many lines as it takes"
    for name in ("policy outputs", "thread independence", "resume"):
        assert name in finished.out
    assert "DIFFERS" not in finished.out


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    config = tmp_path / "small.yaml"
    config.write_text("policy: {hidden: [8]}\nnormalize: {obs: true}\n")
    finished = surefoot(
        "verify", "Pendulum-v1", "--config", config, "--policy.activation", "relu", "--json"
    ).succeeded()
    report = json.loads(finished.out)
    assert report["ok"] is True
    assert report["target"] == "Pendulum-v1"
    assert report["path"] == "native"
    assert report["differing"] == []
    names = {part["name"] for part in report["components"]}
    assert {"env dynamics", "bootstraps", "normalizer statistics"} <= names
    for part in report["components"]:
        assert part["verdict"] == "ok", part
        assert part["difference"] is None or part["difference"] <= part["tolerance"]


def test_difference_is_exit_code_1() -> None:
    finished = Process(_verify_with_a_fault).wait()
    assert finished.code == 1, finished.err
    report = json.loads(finished.out)
    assert report["ok"] is False
    assert report["differing"] == ["bootstraps"]


def _verify_with_a_fault() -> None:
    import sys

    from surefoot.cli.main import main
    from surefoot.rollout.native import NativeCollector

    collect = NativeCollector.collect

    def spoiled(self, policy):  # type: ignore[no-untyped-def]
        rollout = collect(self, policy)
        rollout.final_value[rollout.terminated] = 1.0
        return rollout

    NativeCollector.collect = spoiled  # type: ignore[method-assign]
    sys.exit(main(["verify", "CartPole-v1", "--json"]))


def test_own_registered_env_by_its_module() -> None:
    finished = surefoot("verify", "tests.cli.odd_envs:Forgetful-v0", "--json").succeeded()
    report = json.loads(finished.out)
    assert report["path"] == "stepwise"
    assert {part["name"]: part["verdict"] for part in report["components"]}["resume"] == "not applicable"


def test_typed_errors_are_exit_code_2() -> None:
    assert "did you mean 'CartPole-v1'" in surefoot("verify", "CartPole-v9").refused()
    assert "policy.hiden" in surefoot("verify", "CartPole-v1", "--policy.hiden", "8").refused()
    assert "EnvPool has no task 'foo'" in surefoot("verify", "envpool:foo").refused()


def test_a_native_id_without_the_core_is_not_held_to_the_protocol_instead(tmp_path: Path) -> None:
    for env_id in ("CartPole-v1", "gymnasium:Hopper-v5"):
        message = Process(_verify_without_the_core, str(tmp_path), env_id).wait().refused()
        assert f"the native path of '{env_id}' could not be compared: the native core cannot be imported" in message


def test_an_own_env_needs_no_core(tmp_path: Path) -> None:
    finished = Process(_verify_without_the_core, str(tmp_path), "tests.cli.odd_envs:Forgetful-v0").wait()
    told = " ".join(finished.succeeded().out.split())
    assert "the env keeps the protocol" in told
    assert "not compared: native path, against the readable" in told
    assert "equals the readable" not in told


def _verify_without_the_core(empty_folder: str, env_id: str) -> None:
    import os
    import sys

    from surefoot.cli.main import main

    os.environ["SUREFOOT_NATIVE"] = empty_folder
    sys.exit(main(["verify", env_id]))
