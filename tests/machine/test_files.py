"""A file is whole: the old one, or the new one."""

import errno
import os
import stat
import subprocess
import sys

import failing
import pytest

from minitx.analysis.machine import files
from minitx.analysis.machine.files import write, write_all
from minitx.learning import saved


def test_a_failed_write_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write(path, "old")

    gone = failing.once(1, os.replace, OSError(errno.EIO, "disk gone"))
    monkeypatch.setattr(files.os, "replace", gone)
    with pytest.raises(OSError, match="disk gone"):
        write(path, "new")
    assert path.read_text() == "old"


def test_what_ends_while_it_is_written_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "x.npz"
    write(path, b"old")
    with pytest.raises(OSError, match="No space left") as caught, files.writing(path) as file:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    said = str(caught.value)
    assert str(path) in said and " free" in said and "wanted" not in said
    assert path.read_bytes() == b"old"
    with files.writing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and [*tmp_path.iterdir()] == [path]


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "x.json", tmp_path / "link.json"
    for content in ("a new one", "its successor"):
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.join("real", "x.json"))
        write(link, content)
        assert link.is_symlink() and target.read_text() == content
    assert [path.name for path in target.parent.iterdir()] == ["x.json"]
    target.chmod(0o640)
    write(link, "and another")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names, as Unix has")
@pytest.mark.parametrize("write", [write, saved.write], ids=["of a command", "from Python"])
def test_what_is_no_ordinary_file_is_written_into(tmp_path, write):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for path, content in (pipe, "through"), (link, "as well"):
        write(path, content)
        assert os.read(reader, 99) == content.encode() and stat.S_ISFIFO(path.stat().st_mode)
    assert link.is_symlink()
    os.close(reader)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names, as Unix has")
def test_a_pipe_beside_files_is_written_into_and_a_folder_refused(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_all({tmp_path / "x": "beside", pipe: "through"})
    assert os.read(reader, 99) == b"through" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)
    assert files.writable_file(os.devnull) and not os.path.isfile(os.devnull)
    with pytest.raises(IsADirectoryError, match="a folder; wanted the name of a file"):
        files.writable_file(tmp_path)


PRINTS = """
from pathlib import Path
from minitx.analysis.machine.files import writable_file, write
print("before")
write(writable_file("/dev/stdout"), "between\\n")
print("after")
"""


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_standard_output_is_written_to_in_order_also_where_it_is_a_file(tmp_path):
    arguments = [sys.executable, "-c", PRINTS]
    expected = "before\nbetween\nafter\n"
    piped = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    assert piped.stdout == expected
    with open(tmp_path / "log", "w") as log:
        subprocess.run(arguments, stdout=log, check=True, timeout=60)
    assert (tmp_path / "log").read_text() == expected
