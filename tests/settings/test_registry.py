import sys
import textwrap

import pytest

from surefoot.errors import ConfigError
from surefoot.policies.critics import critics
from surefoot.policies.distributions import distributions
from surefoot.policies.encoders import encoders
from surefoot.settings.registry import Registry, nearest


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `animals` with a registry of its own and one file an animal."""
    folder = tmp_path / "animals"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from surefoot.settings.registry import Registry\nanimals = Registry('animal', 'animals')\n"
    )
    for name in ("horse", "zebra"):
        source = f"""
            from animals import animals

            @animals.register("{name}")
            class {name.title()}:
                pass
        """
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "animals"]:
        del sys.modules[name]


def test_adding_a_thing_is_adding_a_file(package):
    (package / "ape.py").write_text("from animals import animals\n\n@animals.register('ape')\nclass Ape:\n    pass\n")
    from animals import animals

    assert animals.names() == ["ape", "horse", "zebra"]
    assert animals["zebra"].__name__ == "Zebra"


def test_files_are_imported_on_first_use_only(package):
    from animals import animals

    assert "animals.zebra" not in sys.modules
    animals.names()
    assert "animals.zebra" in sys.modules


def test_unknown_names_get_the_nearest_and_all_there_are(package):
    from animals import animals

    with pytest.raises(ConfigError) as caught:
        animals["hrose"]
    assert str(caught.value) == "unknown animal 'hrose'; did you mean 'horse'? (known: horse, zebra; or module:Name)"


def test_classes_can_be_registered_from_outside(package):
    from animals import animals

    @animals.register("mine")
    class Mine:
        pass

    assert animals["mine"] is Mine
    assert animals.names() == ["horse", "mine", "zebra"]


def test_nearest():
    assert nearest("gausian", ["gaussian", "beta"]) == "; did you mean 'gaussian'?"
    assert nearest("xyzzy", ["gaussian", "beta"]) == ""
    assert nearest("anything", []) == ""


def test_what_ships():
    assert set(distributions.names()) >= {
        "bernoulli",
        "beta",
        "categorical",
        "gaussian",
        "multi_discrete",
        "tanh_gaussian",
    }
    assert set(encoders.names()) >= {"conv", "dict", "identity", "mlp"}
    assert set(critics.names()) >= {"scalar"}
    assert isinstance(critics, Registry)
