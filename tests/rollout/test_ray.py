"""Rollouts on many machines: bit for bit those of one, also if an actor or a machine is lost, and what is refused."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from surefoot import PPO, ArraySpec, Hook
from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.data.records import Rollout
from surefoot.envs.engines.ray import RayActor, RayEngine
from surefoot.errors import ClusterError, ConfigError, EnvError, NonFiniteError, PolicyError
from surefoot.policies.packed import ReceivedPolicy, packed
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.storage.state import copied, load_states, states
from surefoot.training.trainer import Trainer
from surefoot.verification.report import Findings
from surefoot.verification.rollouts import compare_machines
from surefoot.verification.subject import Subject
from tests.cli.processes import Process
from tests.envs.grows import Grows
from tests.envs.measured import ForgetfulEnv, MeasuredEnv
from tests.envs.tasks import CounterEnv
from tests.training.states import assert_same

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

RAY = {"kind": "ray", "actors": 2}
ROWS, STEPS = 18, 32
NORMALIZE = {"obs": True, "reward": True, "returns": True}
TEAM = "pettingzoo:tests.training.rank_cases"
LSTM = {"memory": {"kind": "lstm", "hidden_size": 8}, "hidden": [8]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes on this machine, with a raylet and an object store each."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ |= {"RAY_memory_monitor_refresh_ms": "0"}  # other tests fill the memory on purpose
    import ray
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 2, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    cluster.second = cluster.add_node(**small)
    cluster.wait_for_nodes()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def configured(env_id: str, engine: Any, **sections: Any) -> Config:
    rollout = {"num_envs": ROWS, "num_steps": STEPS, "sequence_length": 12, "engine": engine, "workers": 2}
    learning = {"ppo": {"batch_size": 96, "epochs": 2}, "train": {"steps": 10**6, "seed": 3}}
    return build_config({"env": {"id": env_id}, "rollout": rollout, **learning}, sections)


def started(config: Config, source: Any = None) -> Trainer:
    env = build_env(config, source)
    return build_trainer(config, env, build_policy(config, Specs(env.obs_spec, env.action_spec)))


def seen(rollout: Rollout) -> dict[str, Any]:
    """Every field, and the statistics, but for how often something was restarted."""
    stats = vars(rollout.stats) | {"finished": vars(rollout.stats.finished), "worker_restarts": 0}
    stats["recent"] = [vars(episode) for episode in rollout.stats.recent]
    moments = {key: vars(part) for key, part in (rollout.obs_moments or {}).items()}
    return copied(vars(rollout) | {"stats": stats, "obs_moments": moments, "chunks": None})  # type: ignore[no-any-return]


def trained(trainer: Trainer, iterations: int, before: Callable[[int], None] = lambda _: None) -> list[Any]:
    """The rollouts of some iterations, then the state of the whole trainer."""
    collected: list[Any] = []
    collect = trainer.collector.collect

    def watched(policy: Any) -> Rollout:
        rollout = collect(policy)
        collected.append(seen(rollout))
        return rollout

    trainer.collector.collect = watched  # type: ignore[method-assign]
    for iteration in range(iterations):
        before(iteration)
        trainer.iterate()
    trainer.collector.collect = collect  # type: ignore[method-assign]
    return [*collected, copied(states(trainer.stateful()))]


def pid(actor: RayActor) -> int:
    return os.getpid()


def lose(env: RayEngine, part: int) -> None:
    """Kill an actor that has been asked for a rollout, and has not answered."""
    number = env.ask(pid, lambda _: (), keeps_state=False)[part]
    os.kill(number, signal.SIGSTOP)
    threading.Timer(0.2, os.kill, (number, signal.SIGKILL)).start()


def test_two_actors_train_as_one_machine(cluster):
    """All fields of all rollouts, the statistics, and everything a checkpoint has, after five iterations."""
    trainer = started(configured("CartPole-v1", RAY))
    with trainer.collector.rows.env:
        actual = trained(trainer, 5)
        assert trainer.collector.description.startswith("2 Ray actors on 1 machine, native in each")
    assert_same(actual, trained(started(configured("CartPole-v1", "native")), 5))


@pytest.mark.cluster
def test_verify_compares_the_cluster_with_one_machine(cluster, monkeypatch):
    """And finds actors that number their envs from 0, each for itself."""

    def verdicts() -> list[tuple[str, str]]:
        findings = Findings()
        compare_machines(findings, Subject(configured("Pendulum-v1", RAY)).sized())
        return [(part.name, part.verdict) for part in findings.components()]

    assert verdicts() == [("machine independence", "ok")]
    blueprint_of = RayEngine._blueprint_of
    monkeypatch.setattr(RayEngine, "_blueprint_of", lambda *of: replace(blueprint_of(*of), first_env=0))
    assert verdicts() == [("machine independence", "DIFFERS")]


def test_a_lost_actor_changes_nothing_and_a_run_moves_between_one_machine_and_many(cluster, caplog):
    """Also with memory: killed in the third iteration; then saved, and resumed by another number of actors."""
    settings = {"policy": LSTM, "normalize.obs": True}
    expected = trained(started(configured("CartPoleNoVel-v1", "native", **settings)), 6)

    trainer = started(configured("CartPoleNoVel-v1", RAY, **settings))
    with trainer.collector.rows.env as env:
        assert_same(trained(trainer, 4, lambda iteration: lose(env, 1) if iteration == 2 else None)[:4], expected[:4])
        assert env.restarts == 1
        assert "actor 1 was lost" in caplog.text
        saved = copied(states(trainer.stateful()))

    one = started(configured("CartPoleNoVel-v1", "native", **settings))
    load_states(one.stateful(), saved)
    assert_same(trained(one, 2), expected[4:])

    three = started(configured("CartPoleNoVel-v1", {"kind": "ray", "actors": 3}, **settings))
    with three.collector.rows.env:
        load_states(three.stateful(), saved)
        assert three.collector.rows.is_exact
        assert_same(trained(three, 2), expected[4:])


class Labels(Hook):
    """Labels every step, and lets a copy of the policy act in the first row."""

    def begin(self) -> None:
        self.run.actors.add("copy", deepcopy(self.run.policy), is_followed=True)
        self.run.actors.assign([0], "copy")

    def extras(self) -> dict[str, ArraySpec]:
        return {"label": ArraySpec("box", (), "int64")}

    def after_rollout(self, rollout: Rollout) -> None:
        rollout.extras["label"].copy_(rollout.extras["actor"])


@pytest.mark.parametrize(
    ("env_id", "hook", "settings", "engine"),
    [
        ("CartPole-v1", Labels, {"ppo.terms": {"clone": {}}, "ppo.surrogate_coef": 0.5}, "local"),
        ("tests.envs.agent_envs:Weighted-v0", Grows, {}, "local"),
        ("Probe-v0", Hook, {"encoders": {"fuel": "none"}}, "native"),
    ],
    ids=["labels and other policies", "tensors of the agent", "keys that no network reads"],
)
def test_what_the_border_carries(cluster, caplog, env_id, hook, settings, engine):
    tiny = {"num_envs": 32, "num_steps": 4, "batch_size": 64, "epochs": 2, "hidden": [8], "preset": "none"}
    ended = []
    for one in ({"kind": "ray", "actors": 2}, engine):
        caplog.clear()
        with caplog.at_level("INFO", "surefoot"):
            agent = PPO(env_id, **tiny, **settings, engine=one, eval_episodes=0).learn(256, hooks=[hook()])
        reasons = [record.message for record in caplog.records if "Ray actors have none" in record.message]
        assert len(reasons) == (hook is Labels and one != engine)
        values = {name: torch.tensor(value) for name, value in agent._agent_values().items()}
        ended.append(agent.policy.state_dict() | values)
        agent.close()
    assert_same(*ended)


@pytest.mark.cluster
def test_python_envs_with_metrics_and_parameters_and_other_policies(cluster):
    """Stepwise inside the actors; in the end step by step through the actors, with one lost."""
    source = partial(MeasuredEnv, lengths=(3, 1, 4, 2))

    def run(engine: Any) -> list[Any]:
        config = configured("measured", engine, **{"rollout.num_envs": 40, "rollout.num_steps": 12})
        trainer = started(config, source)
        rows = trainer.collector.rows

        def before(iteration: int) -> None:
            if iteration == 1:
                rows.env.set_parameters({"wind": np.arange(40.0) + 20, "slope": [1.0, 2.0]})
            if iteration == 2:
                rows.actors.add("frozen", build_policy(config, Specs(rows.env.obs_spec, rows.env.action_spec)))
                rows.actors.assign(range(15, 25), "frozen")
            if iteration == 3 and isinstance(rows.env, RayEngine):
                lose(rows.env, 0)

        with rows.env:
            result = trained(trainer, 4, before)
            if isinstance(rows.env, RayEngine):  # one part takes the values, the other refuses them: none is set
                with pytest.raises(EnvError, match="no wind of 13"):
                    rows.env.set_parameters({"wind": np.where(np.arange(40) == 30, 13.0, 5.0)})
                effort = trainer.collector.collect(trainer.policy).extras["env/effort"]
                assert (effort[:, :20] - effort[:, :1] == torch.arange(20)).all()
            return result

    actual, expected = run({**RAY, "engine": "local"}), run("local")
    assert actual[0]["extras"].keys() == {"env/score", "env/pace", "env/effort"}
    assert not actual[3]["valid"][:, 15:25].any()
    assert actual[3]["extras"]["actor"].unique().tolist() == [0, 1]
    assert_same(actual, expected)


@pytest.mark.cluster
@pytest.mark.parametrize("inner", ["local", "processes"])
def test_teams_with_masks_in_any_engine_of_the_actors(cluster, inner):
    """Agents that join late and die early, with action masks: the rows of an env stay together."""
    settings = {"rollout.num_envs": 32, "normalize.obs": True, "ppo.batch_size": 64}
    expected = trained(started(configured(TEAM, "local", **settings)), 3)
    assert 0.0 < float(expected[0]["valid"].float().mean()) < 1.0
    trainer = started(configured(TEAM, {**RAY, "engine": inner}, **settings))
    with trainer.collector.rows.env:
        assert f"{inner} in each" in trainer.collector.description
        assert_same(trained(trainer, 3), expected)


@pytest.mark.cluster
def test_envs_that_cannot_save_their_state_start_new_episodes_where_an_actor_is_lost(cluster):
    config = configured("forgetful", {**RAY, "engine": "local", "max_restarts": 1, "call_timeout_s": 5})
    trainer = started(config, partial(ForgetfulEnv, lengths=(1000,)))
    with trainer.collector.rows.env as env:
        env.set_parameters({"wind": 7})
        first, second, _ = trained(trainer, 2, lambda iteration: lose(env, 1) if iteration == 1 else None)
        assert first["episode_start"][0].all()
        assert second["episode_start"][0].tolist() == [False] * 9 + [True] * 9
        assert (second["reward"] == 7).all()
        assert trainer.collector.rows.episodes.running[1].tolist() == [2 * STEPS] * 9 + [STEPS] * 9
        number = env.ask(pid, lambda _: (), keeps_state=False)[0]
        os.kill(number, signal.SIGSTOP)  # alive, but it does not answer
        with pytest.raises(EnvError, match=r"actor 0 was lost \(GetTimeoutError.* 1 actors were replaced"):
            trainer.iterate()
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        with pytest.raises(EnvError, match="closed"):
            trainer.iterate()


class NoEnvHereError(Exception):
    """Of an env that is made in the driver alone."""


def elsewhere(home: int) -> CounterEnv:
    if os.getpid() != home:
        raise NoEnvHereError("not on this machine")
    return CounterEnv()


class SickEnv(CounterEnv):
    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, float("nan") if self.place.step == 5 and self._is_sick else 0.0, *rest

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self._is_sick = seed is not None and seed % 3 == 0
        return super().reset(seed=seed, options=options)


@pytest.mark.cluster
def test_what_fails_on_an_actor_is_told_as_if_it_failed_here(cluster, monkeypatch, caplog):
    local = {**RAY, "engine": "local"}
    with pytest.raises(EnvError, match="env 0 could not be created: NoEnvHereError: not on this machine"):
        build_env(configured("far", {**local, "actors": 1}), partial(elsewhere, os.getpid()))
    with pytest.raises(EnvError, match="cannot be sent to a worker process"):
        build_env(configured("locked", local), partial(print, threading.Lock()))
    config = configured("sick", local, **{"policy.hidden": [4]})
    monkeypatch.setattr("surefoot.envs.engines.ray._instructions", lambda: "other")  # of this machine, not of actors
    messages, sick = [], partial(SickEnv, lengths=(1000,))
    for engine in (local, "local"):
        trainer = started(build_config(config.model_dump(mode="json"), {"rollout.engine": engine}), sick)
        with trainer.collector.rows.env, pytest.raises(NonFiniteError) as error:
            trainer.iterate()
        messages.append(str(error.value))
    assert messages[0].startswith("env ")
    assert messages[0] == messages[1]
    assert "computes with the instructions" in caplog.text


@pytest.mark.cluster
def test_a_lost_machine_changes_nothing(cluster):
    """The last test of the cluster: one of its two machines goes down in the middle of the third of five rollouts."""
    settings = {"normalize": NORMALIZE, "env.max_episode_steps": 50}
    trainer = started(configured("Pendulum-v1", {"kind": "ray"}, **settings))

    def before(iteration: int) -> None:
        if iteration == 2:
            homes = env.ask(home, lambda _: (), keeps_state=False)
            assert len({node for node, _ in homes}) == 2, "one actor on each machine"
            number = dict(homes)[cluster.second.node_id]
            os.kill(number, signal.SIGSTOP)  # asked for a rollout, and not done
            threading.Timer(0.2, go_down, (number,)).start()

    def go_down(number: int) -> None:
        cluster.remove_node(cluster.second, allow_graceful=False)
        os.kill(number, signal.SIGKILL)

    with trainer.collector.rows.env as env:
        actual = trained(trainer, 5, before)
        assert env.restarts >= 1
    assert_same(actual, trained(started(configured("Pendulum-v1", "native", **settings)), 5))


def home(actor: RayActor) -> tuple[str, int]:
    import ray

    return ray.get_runtime_context().get_node_id(), os.getpid()


def test_errors_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"the package ray is missing; run `pip install .*\.\[ray\]"):
        build_env(configured("CartPole-v1", RAY))
    with pytest.raises(ConfigError, match="must be an engine of one machine"):
        configured("CartPole-v1", {"kind": "ray", "engine": "ray"})


def test_an_address_where_no_cluster_is_is_refused_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    with pytest.raises(ClusterError, match=rf"no Ray cluster answers at 127.0.0.1:{free} \(ConnectionRefusedError"):
        build_env(configured("CartPole-v1", {"kind": "ray", "address": f"127.0.0.1:{free}"}))
    with pytest.raises(ClusterError, match="is not the address of a Ray cluster; pass HOST:PORT"):
        build_env(configured("CartPole-v1", {"kind": "ray", "address": "ray://127.0.0.1:10001"}))


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n", b"+", None])
def test_an_address_where_something_else_listens_is_refused_within_seconds(says, monkeypatch):
    """It hangs up, speaks another protocol, or says nothing."""
    monkeypatch.setattr("surefoot.machine.ray_cluster._ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, open_ones = f"127.0.0.1:{server.getsockname()[1]}", []

        def serve() -> None:
            open_ones.append(server.accept()[0])
            if says is not None:
                with suppress(OSError):  # whoever has heard enough may have hung up already
                    open_ones[0].sendall(says)
                    open_ones[0].shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(
            ClusterError, match=rf"no Ray cluster answers at {address}|the program at {address} is not a Ray cluster"
        ):
            build_env(configured("CartPole-v1", {"kind": "ray", "address": address}))
        thread.join()
        open_ones[0].close()


@pytest.mark.parametrize("named_by", ["address", "RAY_ADDRESS"])
def test_a_server_of_http2_that_is_no_cluster_is_refused_within_seconds(named_by):
    """It sends its settings, like every gRPC server, and answers nothing; Ray reads its limit once per process."""
    code = "from surefoot.machine.ray_cluster import RayCluster; RayCluster('{}')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        open_ones = []

        def serve() -> None:
            while True:
                with suppress(OSError):
                    open_ones.append(server.accept()[0])
                    open_ones[-1].sendall(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
                    continue
                return

        threading.Thread(target=serve, daemon=True).start()
        environment = {**os.environ, "RAY_py_gcs_connect_timeout_s": "2", "RAY_ADDRESS": address}
        code = code.format(address if named_by == "address" else "auto")
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100
        )
        assert f"ClusterError: the program at {address} does not answer like a Ray cluster (" in done.stderr
        server.shutdown(socket.SHUT_RDWR)
        for connection in open_ones:
            connection.close()


def test_a_policy_travels_whole_or_is_refused():
    """Also what is not a tensor; modules are made again only if more than tensors changed."""
    config = configured("Pendulum-v1", "native")
    env = build_env(config)
    policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
    received = ReceivedPolicy()
    there = received.update(packed(policy))
    assert_same(dict(there.state_dict()), dict(policy.state_dict()))
    with torch.no_grad():
        policy.head.log_std += 1
    assert received.update(packed(policy)) is there
    assert torch.equal(there.head.log_std, policy.head.log_std)
    policy.head.std_floor = 50.0
    assert received.update(packed(policy)).head.std_floor == 50.0
    policy.lock = threading.Lock()
    with pytest.raises(PolicyError, match=r"cannot be sent to other machines .*lock"):
        packed(policy)


def import_all() -> None:
    import surefoot.cli.main
    import surefoot.compose

    assert "ray" not in sys.modules, surefoot


def test_importing_the_package_does_not_import_ray():
    Process(import_all).wait().succeeded()
