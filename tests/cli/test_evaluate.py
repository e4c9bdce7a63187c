"""`surefoot evaluate`: runs and model files, for people and for machines."""

import json
import re
import shutil
from pathlib import Path

import pytest

from surefoot import Attack
from surefoot.api import PPO
from surefoot.cli.arguments import parse
from surefoot.cli.evaluate import run as evaluate
from surefoot.errors import ConfigError
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, records, train

pytestmark = pytest.mark.xdist_group("evaluate")
BY_RISK = ("--train.best_metric", "cvar", "--train.cvar_alpha", 0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("evaluate") / "run"
    train(
        "CartPole-v1", run, *TINY, *BY_RISK, "--steps", 128, "--train.eval_episodes", 4, "--train.checkpoint_every", 64
    )
    return run


def test_a_run_selects_its_best_policy_by_risk(run):
    (record,) = (found for found in records(run) if "eval/cvar" in found)
    (returns,) = map(json.loads, (run / "evaluations.jsonl").read_text().splitlines())
    assert returns["step"] == record["step"] == 128
    assert record["eval/cvar"] == pytest.approx(sum(sorted(returns["rewards"])[:2]) / 2)
    best = read_checkpoint(run / "best.safetensors")
    assert (best["best_metric"], best["best_score"]) == ("cvar (alpha 0.5)", record["eval/cvar"])
    refused = surefoot("train", "CartPole-v1", "--train.cvar_alpha", 0, "--train.best_metric", "cvar").refused()
    assert "train.cvar_alpha: input should be greater than 0" in refused


def evaluated(*arguments: object) -> dict:
    finished = surefoot("evaluate", *arguments, "--json").succeeded()
    assert finished.out.count("\n") == 1
    return json.loads(finished.out)


def test_machines_get_numbers(run):
    result = evaluated(run, "--episodes", 13)
    assert result["episodes"] == len(result["rewards"]) == len(result["lengths"]) == 13
    assert result["mean_reward"] == pytest.approx(sum(result["rewards"]) / 13)
    assert result["mean_ep_length"] == pytest.approx(sum(result["lengths"]) / 13)
    variance = sum((reward - result["mean_reward"]) ** 2 for reward in result["rewards"]) / 13
    assert result["std_reward"] == pytest.approx(variance**0.5)
    low, high = result["confidence_interval"]
    assert low <= result["mean_reward"] <= high
    assert result["rewards"] == result["lengths"], "CartPole pays one a step"
    assert result["model"] == str(run / "best.safetensors")


def test_identical_episodes_are_told(tmp_path):
    """Without noise at the start, every episode of this env is the same."""
    still = {"reset_noise_scale": 0.0}
    PPO("InvertedPendulum-v5", kwargs=still, max_episode_steps=5, hidden=8).save(tmp_path / "model.safetensors")
    assert evaluated(tmp_path / "model.safetensors", "--episodes", 3)["are_identical"]
    out = surefoot("evaluate", tmp_path / "model.safetensors", "--episodes", 3).succeeded().out
    assert "note            all 3 episodes are identical, step by step: the env ignores its seed" in out


def test_people_get_lines(run):
    result = evaluated(run)
    out = surefoot("evaluate", run).succeeded().out
    assert not result["are_identical"]
    assert "note" not in out
    assert f"mean reward     {result['mean_reward']:.2f} ± {result['std_reward']:.2f}" in out
    assert f"mean length     {result['mean_ep_length']:.1f}" in out
    assert "episodes        20" in out
    risk = result["risk"]
    assert (
        f"worst reward    {risk['worst']['reward']:.2f} (episode {risk['worst']['episode']}; the first is 0)\n" in out
    )
    head, *table = out.split("\n\n")[1].splitlines()
    assert [line[:15].rstrip() for line in table] == [
        *("mean reward", "CVaR 5%", "quantile 5%", "quantile 25%", "quantile 50%", "quantile 75%", "quantile 95%"),
        *(["mean / std"] if risk["sharpe"] else []),
    ]
    low, high = risk["cvar"]["interval"]
    assert table[1].split()[2:] == [f"{risk['cvar']['value']:.2f}", f"{low:.2f}", "to", f"{high:.2f}"]
    assert len({line.index(" to ") for line in table}) == len({len(line) for line in table}) == 1, "aligned"
    assert head.index("95%") < table[0].index(" to ")


def test_the_share_of_the_cvar_can_be_set(run):
    rewards = evaluated(run, "--episodes", 16)["rewards"]
    finished = surefoot("evaluate", run, "--episodes", 16, "--alpha", 0.25, "--json").succeeded()
    risk = json.loads(finished.out)["risk"]
    assert (risk["alpha"], risk["cvar"]["value"]) == (0.25, pytest.approx(sum(sorted(rewards)[:4]) / 4))
    assert (risk["worst"]["reward"], rewards[risk["worst"]["episode"]]) == (min(rewards), min(rewards))
    assert list(risk["quantiles"]) == ["5", "25", "50", "75", "95"]
    assert risk["win_rate"] is None
    assert "WARNING" not in finished.err
    few = surefoot("evaluate", run, "--episodes", 3, "--alpha", 0.2).succeeded()
    assert (
        few.err
        == "WARNING: the CVaR of the worst 20% of 3 episodes is the worst episode; evaluate at least 5 episodes\n"
    )
    assert "CVaR 20%" in few.out
    for wrong in ("0", "1.01", "nan"):
        assert "--alpha: must be above 0 and at most 1" in surefoot("evaluate", run, "--alpha", wrong).refused()


def test_the_same_seed_gives_the_same_episodes_in_any_process(run):
    first = evaluated(run, "--seed", 3)
    assert evaluated(run, "--seed", 3) == first
    here = PPO.load(run / "best.safetensors").evaluate(seed=3)
    assert list(here.rewards) == first["rewards"]
    assert evaluated(run, "--seed", 4)["rewards"] != first["rewards"]


def test_sampled_actions_repeat_too_but_are_others(run):
    sampled = evaluated(run, "--stochastic")
    assert evaluated(run, "--stochastic") == sampled
    assert evaluated(run)["rewards"] != sampled["rewards"]


def test_a_run_without_a_best_policy_shows_its_newest(run, tmp_path):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    (copy / "best.safetensors").unlink()
    assert evaluated(copy)["model"].endswith("step_000000000128.safetensors")
    model = evaluated(RunDirectory(run).saved()[1])
    assert model["model"].endswith("step_000000000064.safetensors")


def test_a_model_file_needs_nothing_around_it(run, tmp_path):
    model = Path(shutil.copy(run / "best.safetensors", tmp_path / "model"))
    assert evaluated(model)["rewards"] == evaluated(run)["rewards"]


def test_another_env_with_the_same_spaces(run):
    assert evaluated(run, "--env", "CartPole-v0", "--episodes", 3)["episodes"] == 3


def test_an_env_with_other_spaces_is_refused(run):
    message = surefoot("evaluate", run, "--env", "Pendulum-v1").refused()
    assert "observation or action space of this env differs" in message


def test_what_cannot_be_evaluated(run, tmp_path):
    assert "--episodes: must be at least 1 (got 0)" in surefoot("evaluate", run, "--episodes", 0).refused()
    assert "does not exist" in surefoot("evaluate", tmp_path / "nothing").refused()
    assert "Hopper-v5 does not exist; did you mean zoo:Hopper-v5?" in surefoot("evaluate", "Hopper-v5").refused()
    assert "is neither a run directory nor" in surefoot("evaluate", tmp_path).refused()
    assert "did you mean 'CartPole-v1'" in surefoot("evaluate", run, "--env", "CartPol-v1").refused()
    assert surefoot("evaluate").code == 2


def test_clean_and_attacked_side_by_side(run):
    arguments = (run, "--episodes", 4, "--attack", "pgd", "--epsilon", 0.3, "--attack-steps", 5)
    result = evaluated(*arguments)
    assert result["attack"] == {"method": "pgd", "epsilon": 0.3, "steps": 5, "step_size": None}
    attacked = result.pop("attacked")
    plain = evaluated(run, "--episodes", 4)
    assert {key: result[key] for key in plain} == plain
    assert set(attacked) == set(plain) - {"model"}
    here = PPO.load(run / "best.safetensors").evaluate(4, attack=Attack("pgd", 0.3, 5))
    assert list(here.rewards) == attacked["rewards"] != plain["rewards"]
    out = surefoot("evaluate", *arguments).succeeded().out
    assert "attack          pgd, epsilon 0.3, 5 steps" in out
    rows = [
        [f"{one['mean_reward']:.2f} ± {one['std_reward']:.2f}" for one in (plain, attacked)],
        ["{:.2f} to {:.2f}".format(*one["confidence_interval"]) for one in (plain, attacked)],
    ]
    for name, row in zip(("mean reward", "95% interval"), rows, strict=True):
        assert re.search(rf"^{name} +{'   +'.join(map(re.escape, row))}$", out, re.MULTILINE), out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon", 0.1), "--epsilon: has no effect without --attack"),
        (("--attack-steps", 3), "--attack-steps: has no effect without --attack"),
        (("--attack", "pgd"), "--attack: requires --epsilon"),
        (("--attack", "pgd", "--epsilon", -0.1), "epsilon: must be a number from 0 to 1e+09 (got -0.1)"),
        (("--attack", "pgd", "--epsilon", "nan"), "epsilon: must be a number from 0 to 1e+09 (got nan)"),
        (("--attack", "pdg", "--epsilon", 0.1), "attack: unknown method 'pdg'; did you mean 'pgd'?"),
        (("--attack", "pgd", "--epsilon", 0.1, "--attack-steps", 0), "attack steps: must be a whole number"),
        (("--attack", "fgsm", "--epsilon", 0.1, "--attack-steps", 3), "--attack-steps: fgsm takes a single step"),
    ],
)
def test_wrong_attacks_are_refused(arguments, message):
    """Before the model is read."""
    assert message in surefoot("evaluate", "nothing", *arguments).refused()


def test_evaluation_leaves_the_run_as_it_was(run):
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.rglob("*")}
    evaluated(run)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in run.rglob("*")} == before


def test_a_grid_gives_a_table_json_and_a_heat_map(tmp_path):
    model = tmp_path / "model.safetensors"
    PPO("Pendulum-v1", max_episode_steps=5, hidden=8).save(model)
    grid = ("--over", "g=8-9,10.5", "--over", 'render_mode=["rgb_array"]', "--episodes", 2)
    shown = surefoot("evaluate", model, *grid, "--heat-map", tmp_path / "map.png").succeeded().out
    assert re.search(r"g=10.5 +-\d", shown)
    assert f"heat map        {tmp_path / 'map.png'}" in shown
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    result = evaluated(model, *grid)
    assert result["over"] == {"g": [8, 9, 10.5], "render_mode": ["rgb_array"]}
    for cell in result["cells"]:
        alone = PPO.load(model).evaluate_over({name: [value] for name, value in cell["at"].items()}, 2)
        assert tuple(cell["rewards"]) == alone.evaluations[0].rewards
    assert "at m=1: environment 'Pendulum-v1' does not" in surefoot("evaluate", model, "--over", "m=1").refused()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--over", "g"), "--over: pass NAME=VALUES"),
        (("--over", "g=9-0"), "--over: g: 9-0 is not a range"),
        (("--over", "g=1", "--over", "g=2"), "--over: g is given twice"),
        (("--over", "g=1,,2"), "--over: g: a value is missing"),
        (("--over", "g=[1"), "--over: g: cannot parse"),
        (("--over", "g=0-99", "--over", "m=0-99"), "10000 cells, but at most 1000"),
        (("--over", "g=1", "--attack", "fgsm", "--epsilon", "0.1"), "cannot be combined with --attack"),
        (("--over", "g=1", "--heat-map", "map.gif"), "--heat-map: the name of the file must end in .png"),
        (("--heat-map", "map.png"), "--heat-map: needs --over"),
    ],
)
def test_a_bad_grid_is_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse(evaluate, "evaluate", ["zoo:CartPole-v1", *options])
