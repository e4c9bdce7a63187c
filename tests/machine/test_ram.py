"""RAM of the machine, a container and this process."""

import psutil

from surefoot.machine import ram
from surefoot.machine.ram import Ram, container_ram, free_ram, machine_ram


def test_the_machine_has_more_than_is_available():
    total, available = machine_ram()
    assert 0 < available < total
    assert total == psutil.virtual_memory().total


def test_the_limit_of_a_container_counts_and_its_file_cache_is_free(monkeypatch, tmp_path):
    monkeypatch.setattr(ram, "CONTROL_GROUP", tmp_path)
    assert container_ram() is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 90\n")
    assert container_ram() == Ram(1000, 690)
    assert free_ram() == 690
    (tmp_path / "memory.max").write_text("max\n")
    assert container_ram() is None
    assert free_ram() > 1000
