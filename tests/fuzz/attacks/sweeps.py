"""Damaged databases of sweeps: the trials are read, or a typed error names the file."""

import json
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import yaml

from surefoot.errors import SurefootError
from surefoot.settings.layers import read_yaml
from surefoot.sweep.directory import DATABASE, SETTINGS, keep_settings, refuse_unknown_runs
from surefoot.sweep.settings import read_settings
from surefoot.sweep.study import Study
from tests.fuzz.commands import surefoot
from tests.fuzz.values import ANY, mutated
from tests.sweep.sweeps import raw


def prepare(folder: Path) -> Path:
    """A sweep with complete, pruned, failed and unfinished trials, without their runs."""
    sweep = folder / "sweep"
    sweep.mkdir()
    config, own = read_settings(yaml.safe_load(yaml.safe_dump(raw({}))), {})
    keep_settings(sweep, config, own)
    with Study(sweep / DATABASE, own) as study:
        numbers = [study.begin().number for _ in range(5)]
        for number in numbers[:2]:
            study.report(number, 64, 0.5)
            study.complete(number, 1.5 + number, [1.0, 2.0], 64, 3.0)
        study.prune(numbers[2])
        study.fail(numbers[3], "the floor is wet")
        study.keep_finals({0: [1.0], 1: [2.0]})
    for number in numbers:
        (sweep / "trials" / f"{number:04d}").mkdir(parents=True)
    return sweep


def case(pick: random.Random, material: Path, folder: Path) -> None:
    """Change values or bytes of the file, then read it like `sweep` and `report` do."""
    sweep = folder / "sweep"
    shutil.copytree(material, sweep)
    file = sweep / DATABASE
    chance = pick.random()
    if chance < 0.1:
        file.unlink()
    elif chance < 0.3:
        file.write_bytes(mutated(pick, file.read_bytes()))
    else:
        for _ in range(pick.choice([1, 1, 2, 5])):
            _change(pick, file)
    with suppress(SurefootError):
        own = read_settings(read_yaml(sweep / SETTINGS), {})[1]
        with Study(file, own) as study:
            refuse_unknown_runs(sweep, study.numbers())
            study.discard_torn()
            study.ranked()
            study.best()
            study.importances()
    surefoot("report", sweep, "--output", "page.html")


def _change(pick: random.Random, file: Path) -> None:
    """A random value in a random place, or a table less; what SQLite itself refuses is left."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(file)) as database, database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        table = pick.choice(sorted(tables))
        if pick.random() < 0.1:
            database.execute(f"drop table {table}")
            return
        columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
        odd = pick.choice(ANY)
        value = odd if isinstance(odd, float | bytes | str | None) else json.dumps(odd, default=str)
        rows = "" if pick.random() < 0.3 else f" where rowid = (select max(rowid) from {table})"
        database.execute(f"update {table} set {pick.choice(columns)} = ?{rows}", (value,))
