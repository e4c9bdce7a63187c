"""What belongs together, and how it is called."""

from surefoot.inspection.report.run_groups import as_text, differing_keys, flat, group_runs
from tests.inspection.report.written_runs import records, write_run


def groups(tmp_path, *settings):
    runs = [write_run(tmp_path / f"run{index}", records(3), found) for index, found in enumerate(settings)]
    return group_runs(runs)


def test_seeds_are_one_group(tmp_path):
    found = groups(tmp_path, {"train.seed": 1}, {"train.seed": 2}, {"train.seed": 3, "optimizer.lr": 0.01})
    assert [[run.name for run in group.runs] for group in found] == [["run0", "run1"], ["run2"]]
    assert [group.label for group in found] == ["lr 0.0003", "lr 0.01"]
    assert [group.index for group in found] == [0, 1]


def test_how_a_run_was_shown_splits_no_group(tmp_path):
    assert len(groups(tmp_path, {"log.console": "plain"}, {"log.console": "off", "train.seed": 2})) == 1


def test_seeds_alone_are_called_by_their_env_and_one_run_by_its_name(tmp_path):
    assert [group.label for group in groups(tmp_path / "two", {"train.seed": 1}, {"train.seed": 2})] == ["CartPole-v1"]
    assert [group.label for group in groups(tmp_path / "one", {})] == ["run0"]


def test_labels_of_several_envs(tmp_path):
    found = groups(
        tmp_path, {"env.id": "Pendulum-v1"}, {"env.id": "CartPole-v1"}, {"env.id": "CartPole-v1", "ppo.gamma": 0.9}
    )
    assert [group.label for group in found] == ["Pendulum-v1", "CartPole-v1 · gamma 0.99", "CartPole-v1 · gamma 0.9"]
    assert [group.env for group in found] == ["Pendulum-v1", "CartPole-v1", "CartPole-v1"]


def test_many_differences_are_called_by_the_run(tmp_path):
    found = groups(tmp_path, {}, {"ppo.gamma": 0.9, "ppo.clip": 0.1, "ppo.epochs": 3}, {"train.seed": 2})
    assert [group.label for group in found] == ["run0 + 1", "run1"]


def test_keys_that_end_alike_are_called_in_full(tmp_path):
    first, second = (
        {"policy.encoder": {"kind": "mlp", "layers": [8]}},
        {"policy.encoder": {"kind": "mlp", "layers": [4]}},
    )
    first["env.kwargs"], second["env.kwargs"] = {"layers": 1}, {"layers": 2}
    labels = [group.label for group in groups(tmp_path, first, second)]
    assert labels == [
        "env.kwargs.layers 1 · policy.encoder.layers 8",
        "env.kwargs.layers 2 · policy.encoder.layers 4",
    ]


def test_a_key_that_an_earlier_version_did_not_know_is_no_difference(tmp_path):
    new = write_run(tmp_path / "new", records(3), {"train.seed": 2})
    old = write_run(tmp_path / "old", records(3))
    del old.config["rollout"]["engine"], old.config["ppo"]["gamma"]
    assert len(group_runs([new, old])) == 1
    del old.config["env"]["id"]
    assert [group.env for group in group_runs([new, old])] == ["CartPole-v1", "unknown environment"]


def test_flat_and_differing_keys():
    first = flat({"a": {"b": 1, "c": {"d": [1, 2]}}, "e": {}, "f": None})
    assert first == {"a.b": "1", "a.c.d": "1, 2", "e": "none", "f": "none"}
    assert differing_keys([first, first | {"a.b": "2", "new": "1"}]) == ["a.b", "new"]


def test_values_read_as_a_person_writes_them():
    assert [as_text(value) for value in (True, 1e-05, 0.001, (64, 64), "off", [])] == [
        *("true", "1e-05", "0.001", "64, 64", "off", "none")
    ]
