"""What memory there is."""

from surefoot.core import memory
from surefoot.core.memory import Memory, container_memory, machine_memory


def test_the_machine_has_more_than_it_leaves():
    total, available = machine_memory()
    assert 0 < available <= total


def test_where_the_system_does_not_tell_all_is_available(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")
    assert machine_memory().available == machine_memory().total > 0


def test_the_limit_of_a_container_counts_and_its_file_cache_is_free(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    assert container_memory() is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 90\n")
    assert container_memory() == Memory(1000, 690)
    (tmp_path / "memory.max").write_text("max\n")
    assert container_memory() is None
