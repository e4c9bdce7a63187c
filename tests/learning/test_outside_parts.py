"""Terms, gradient transforms, estimators and schedules from outside the package, named as `module:Name`."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from surefoot import PPO
from surefoot.cli.arguments import split_settings
from surefoot.data.records import Knobs, Learned, Progress
from surefoot.errors import ConfigError
from surefoot.learning.schedules import Schedules
from surefoot.settings.config import PPOConfig
from surefoot.settings.layers import build_config, to_yaml
from surefoot.storage.state import states
from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import surefoot
from tests.cli.runs import column, newest
from tests.training.states import assert_same

HERE = "tests.learning.outside_parts"
PENALTY = {"ppo.terms": {"penalty": {"kind": f"{HERE}:Smooth", "weight": 0.25}}}
MOMENTUM = {"optimizer.transforms": {"momentum": {"kind": f"{HERE}:Heavy"}}}
CAUTIOUS = {"ppo.estimator": {"kind": f"{HERE}:Cautious", "share": 0.25}}
ENTROPY = {"schedules": {"entropy_coef": {"kind": f"{HERE}:EntropyTarget"}}, "entropy_coef": 0.01}
EACH = {"term": PENALTY, "transform": MOMENTUM, "estimator": CAUTIOUS, "schedule": ENTROPY}
STEPS = 32


def small(env: str = "Pendulum-v1", **settings: Any) -> PPO:
    """Iterations of 32 steps."""
    common = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": [8], "eval_episodes": 0}
    return PPO(env, **{**common, **settings})


def learned_of(agent: PPO, iterations: int) -> list[Learned]:
    found: list[Learned] = []
    agent.learn(iterations * STEPS, hooks=[lambda report: found.append(report.learned)])
    return found


def weights(agent: PPO) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in agent.policy.parameters()])


def test_a_term_adds_its_weighted_loss_and_its_metrics():
    agent = small(**PENALTY)
    trainer = agent._started()
    objective, knobs = trainer.learner.objective, trainer.schedules.at(trainer.progress)
    assert list(objective.terms) == ["surrogate", "value", "entropy", "penalty"]
    assert knobs["penalty.weight"] == 0.25
    rollout = trainer.collector.collect(trainer.policy)
    targets = trainer.scorer.score(rollout, trainer.policy.critic)
    from surefoot.rollout.samples import samples_of

    batch = next(samples_of(rollout, targets, agent.config.ppo).minibatches(16))
    runs: list[int] = []
    handle = trainer.policy.register_forward_hook(lambda *call: runs.append(1))
    with_it = objective(trainer.policy, batch, knobs)
    handle.remove()
    assert len(runs) == 2, "the policy ran for all terms, and once more for the penalty"
    without = objective(trainer.policy, batch, Knobs(knobs, **{"penalty.weight": 0.0}))
    assert with_it.watched["penalty/loss"] > 0
    torch.testing.assert_close(with_it.total, without.total + 0.25 * with_it.watched["penalty/loss"])
    torch.testing.assert_close(without.watched, with_it.watched)
    grads = [torch.autograd.grad(losses.total, trainer.policy.head.mean.weight)[0] for losses in (with_it, without)]
    assert not torch.equal(*grads)


def test_the_metrics_of_a_term_and_its_weight_are_in_learned():
    first, second = learned_of(small(**PENALTY), 2)
    for learned in (first, second):
        assert learned.metrics["penalty/loss"] > 0
        assert learned.metrics["penalty/apart"] > 0
        assert learned.metrics["penalty/weight"] == 0.25
    assert first.metrics["penalty/loss"] != second.metrics["penalty/loss"]


def test_a_penalty_does_what_it_says():
    penalty = {"kind": f"{HERE}:Smooth", "distance": 0.5}
    bound, unused = (small(lr=0.01, **{"ppo.terms": {"penalty": penalty | {"weight": w}}}) for w in (100.0, 0.0))
    free = small(lr=0.01, **{"train.learner": "torch"})  # as with a term of one's own
    learned = [learned_of(agent, 20)[-1] for agent in (bound, unused)]
    assert learned[0].metrics["penalty/apart"] < 0.5 * learned[1].metrics["penalty/apart"]
    learned_of(free, 20)
    assert torch.equal(weights(free), weights(unused)), "at weight 0 a term is only measured"
    assert not torch.equal(weights(free), weights(bound))


def test_a_weight_is_a_knob_that_schedules_move():
    agent = small(**PENALTY, schedules={"penalty.weight": "linear"})
    found = learned_of(agent, 4)
    assert [learned.metrics["penalty/weight"] for learned in found] == pytest.approx([0.25, 0.1875, 0.125, 0.0625])


def test_a_schedule_of_a_weight_in_yaml_and_on_the_command_line():
    text = f"""
        ppo: {{terms: {{penalty: {{kind: "{HERE}:Smooth", weight: 0.25}}}}}}
        schedules: {{penalty.weight: linear}}
    """
    in_file = build_config(yaml.safe_load(text))
    rest, flags = split_settings(["--schedules.penalty.weight", "linear", "--ppo.terms.penalty.weight", "0.25"])
    assert rest == []
    by_flag = build_config({"ppo.terms": {"penalty": f"{HERE}:Smooth"}}, flags)
    assert in_file == by_flag
    assert list(in_file.schedules) == ["penalty.weight"]
    assert Schedules(in_file).at(Progress(50, 100))["penalty.weight"] == 0.125
    assert build_config(yaml.safe_load(to_yaml(in_file))) == in_file
    _, flags = split_settings(["--schedules.penalty.weight", "cosine", "--schedules.penalty.weight.floor", "0.5"])
    cosine = build_config(PENALTY, flags)
    assert Schedules(cosine).at(Progress(100, 100))["penalty.weight"] == 0.125


def test_a_schedule_of_a_term_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"schedules\.penalty\.weight: unknown knob"):
        build_config({"schedules": {"penalty.weight": "linear"}})
    with pytest.raises(ConfigError, match=r"schedules\.penalty\.wieght: unknown knob; did you mean 'penalty.weight'"):
        build_config(PENALTY, {"schedules.penalty.wieght": "linear"})


def test_what_is_not_a_term_is_refused():
    with pytest.raises(ConfigError, match=r"ppo\.terms\.penalty: .*must be a subclass of surefoot\.Term"):
        build_config({"ppo.terms": {"penalty": f"{HERE}:NotATerm"}})


def test_a_transform_changes_the_gradient_before_the_clip():
    plain, heavy = learned_of(small(), 2), learned_of(small(**MOMENTUM), 2)
    assert heavy[0].metrics["momentum/size"] > 0
    assert heavy[0].metrics["momentum/decay"] == 0.5
    assert heavy[0].grad_norm != plain[0].grad_norm
    assert heavy[0].grad_norm == pytest.approx(heavy[0].metrics["momentum/size"]), "the clip sees the transformed one"


def test_an_estimator_replaces_gae_and_has_metrics():
    agent = small(**CAUTIOUS)
    first, second = learned_of(agent, 2)
    assert first.metrics["cautious/mean"] < 0, "Pendulum's rewards are costs"
    assert second.metrics["cautious/mean"] == agent._started().scorer.estimator.mean
    assert "cautious/mean" not in learned_of(small(), 1)[0].metrics


def test_a_closed_loop_schedule_observes_every_update():
    found = learned_of(small(**ENTROPY), 3)
    assert [learned.entropy_coef for learned in found] == pytest.approx([0.01, 0.0125, 0.015625])


@pytest.mark.parametrize("engine", ["native", "local"])
@pytest.mark.parametrize("name", [*EACH, "all"])
def test_each_continues_bit_for_bit_from_a_checkpoint(name, engine, tmp_path):
    parts = {"term": PENALTY, "transform": MOMENTUM, "estimator": CAUTIOUS, "schedule": ENTROPY}
    given = {key: value for one in parts.values() for key, value in one.items()} if name == "all" else parts[name]
    whole = small(engine=engine, steps=5 * STEPS, **given)
    whole.learn(2 * STEPS)
    whole.save(tmp_path / "agent.safetensors")
    resumed = PPO.load(tmp_path / "agent.safetensors")
    for agent in (whole, resumed):
        agent.learn(3 * STEPS)
    trainers = [agent._started() for agent in (whole, resumed)]
    assert trainers[1].collector.rows.is_exact
    assert_same(states(trainers[1].stateful()), states(trainers[0].stateful()))
    plain = small(engine=engine, steps=5 * STEPS)
    plain.learn(2 * STEPS).learn(3 * STEPS)
    assert not torch.equal(weights(plain), weights(whole)), "the part makes a difference"


def test_their_states_are_in_the_checkpoint_by_name(tmp_path):
    agent = small(**PENALTY, **MOMENTUM, **CAUTIOUS, **ENTROPY).learn(2 * STEPS)
    agent.save(tmp_path / "agent.safetensors")
    state = read_checkpoint(tmp_path / "agent.safetensors")
    assert state["objective"] == {"penalty": {"updates": 2}}
    assert state["gradient"]["transforms"]["momentum"]["past"].any()
    assert state["scorer"]["estimator"]["mean"] < 0
    assert state["schedules"]["entropy_coef"]["state"]["value"] == pytest.approx(0.01 * 1.25**2)


def test_a_state_that_is_lost_is_noticed(tmp_path):
    """The comparison above would fail if a part's state were not brought back."""
    whole = small(**MOMENTUM).learn(2 * STEPS)
    whole.save(tmp_path / "agent.safetensors")
    resumed = PPO.load(tmp_path / "agent.safetensors")
    resumed._started().learner.gradient.transforms["momentum"].load_state({"past": torch.zeros(())})
    for agent in (whole, resumed):
        agent.learn(STEPS)
    assert not torch.equal(weights(whole), weights(resumed))


def test_a_run_with_all_of_them_is_resumed_bit_for_bit_by_the_command(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"""
env: {{id: Pendulum-v1}}
rollout: {{num_envs: 2, num_steps: 16}}
policy: {{hidden: [8]}}
ppo:
  batch_size: 16
  epochs: 2
  entropy_coef: 0.01
  estimator: {{kind: "{HERE}:Cautious"}}
  terms: {{penalty: {{kind: "{HERE}:Smooth"}}}}
optimizer: {{transforms: {{momentum: "{HERE}:Heavy"}}}}
schedules: {{penalty.weight: linear, entropy_coef: "{HERE}:EntropyTarget", momentum.decay: linear}}
train: {{steps: 128, eval_episodes: 0, checkpoint_every: 64}}
log: {{console: plain, tensorboard: false}}
"""
    )
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for run in (whole, cut):
        surefoot("train", "--config", file, "--run-dir", run).succeeded()
    (cut / "checkpoints" / "step_000000000128.safetensors").unlink()
    surefoot("resume", cut).succeeded()
    one, two = newest(whole), newest(cut)
    assert_same({name: two[name] for name in one if name != "config"}, {n: one[n] for n in one if n != "config"})
    assert column(whole, "penalty/weight") == pytest.approx([0.5, 0.375, 0.25, 0.125])
    assert column(whole, "momentum/decay") == pytest.approx([0.5, 0.375, 0.25, 0.125])
    assert len(column(whole, "penalty/apart")) == len(column(whole, "cautious/mean")) == 4


def test_the_settings_of_terms_default_to_no_more_terms():
    assert PPOConfig().terms == {}
