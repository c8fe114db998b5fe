"""A file is whole: the old one, or the new one."""

import errno

import pytest

from minitx.analysis.machine import files
from minitx.analysis.machine.files import write


def test_a_failed_write_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write(path, "old")

    def replace(*_):
        raise OSError(errno.EIO, "disk gone")

    monkeypatch.setattr(files.os, "replace", replace)
    with pytest.raises(OSError, match="disk gone"):
        write(path, "new")
    assert path.read_text() == "old"
