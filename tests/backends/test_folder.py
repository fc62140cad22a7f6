"""The folder store alone: what a file system refuses, and the lock of one process."""

import errno
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from adaexplore.backends.folder import FolderStore, store_error
from adaexplore.errors import StoreError


def test_a_path_through_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file.*runs_dir="):
        FolderStore(tmp_path / "file" / "below")


def test_a_read_only_place_is_named():
    with pytest.raises(StoreError, match=r"/proc/adaexplore.*runs_dir="):
        FolderStore(Path("/proc/adaexplore"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_every_fault_says_where_what_and_what_to_do(code, tmp_path):
    message = str(store_error(tmp_path, OSError(code, os.strerror(code))))

    assert message.startswith(f"{tmp_path}: {os.strerror(code)}; ")
    assert "\n" not in message


def test_a_failed_write_leaves_the_old_object(tmp_path):
    """A real one: the file size limit of a process of its own."""
    store = FolderStore(tmp_path)
    store.put("a", b"old")
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=write_too_much, args=(tmp_path,))
    child.start()
    child.join()

    assert 4 == child.exitcode
    assert b"old" == store.get("a")
    assert ["a"] == [path.name for path in tmp_path.iterdir()]


def write_too_much(root):
    import resource

    sys.dont_write_bytecode = True  # half of a module's might stay behind
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        FolderStore(root).put("a", b"x" * 5000)
    except StoreError as error:
        raise SystemExit(error.exit_code) from None


def test_a_lock_is_held_by_one_process_and_freed_by_its_death(tmp_path):
    store = FolderStore(tmp_path)
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    child = context.Process(target=hold, args=(tmp_path, ready, leave))
    child.start()
    ready.wait()
    with pytest.raises(StoreError, match=f"process {child.pid}"), store.locked("lock"):
        pass
    child.kill()
    child.join()
    with store.locked("lock"):
        pass


def hold(root, ready, leave):
    with FolderStore(root).locked("lock"):
        ready.set()
        leave.wait()
