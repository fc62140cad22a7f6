"""Enters namespaces and becomes a program: the one place that asks the kernel for isolation.

Problem: a pod needs a network, a hostname, a process tree and a file system of its own, and must
leave nothing when it ends, or when whoever started it is killed.

Idea: each container is process 1 of a process namespace. The kernel kills a namespace with its first
process, whatever sessions or names its members chose; and the first process dies with this launcher
(parent-death signal), which dies with the kubelet. As in any container, process 1 gets no signal that
it does not handle, except SIGKILL. Its root is an overlay of this machine's, kept in memory: it sees
our interpreters, and what it writes outside its volumes and /tmp is gone when it ends.

Run as a file by `python -I -S`; only the standard library. What to run comes as JSON on the input, so
that no secret is in an argument.

    launcher.py tied WORD ...        become a program that dies with the parent
    launcher.py node WORD ...        the same, in process and mount namespaces of its own
    launcher.py pause HOSTNAME       hold a pod's network, name and IPC until the input closes
    launcher.py run                  one container
    launcher.py exec                 a command in a running container

Source: clone(2), setns(2), mount(2), prctl(2), pid_namespaces(7), overlayfs.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
RDONLY, REMOUNT, BIND, REC, PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1
NOT_STARTED = 127
"""Exit code when the program cannot be run, as shells have it."""
SCRATCH = "size=512m,mode=755"
"""What a container may write outside its volumes and /tmp, in memory."""
LIBC = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Do what the first word says; the exit code of what was run."""
    mode, words = arguments[0], arguments[1:]
    if mode == "tied":
        _die_with_parent()
        return _become(words, dict(os.environ))
    if mode == "node":
        _die_with_parent()
        _check(LIBC.unshare(NEWNS | NEWPID), "unshare")
        return _as_first(lambda: _node(words))
    if mode == "pause":
        return _pause(words[0])
    spec = json.load(sys.stdin)
    _die_with_parent()
    return _run(spec) if mode == "run" else _exec(spec)


def _node(words: list[str]) -> int:
    _mount("none", "/", flags=REC | PRIVATE)
    _mount("proc", "/proc", kind="proc")
    return _become(words, dict(os.environ))


def _pause(hostname: str) -> int:
    _die_with_parent()
    _check(LIBC.unshare(NEWNET | NEWUTS | NEWIPC), "unshare")
    name = hostname.encode()
    _check(LIBC.sethostname(name, len(name)), "sethostname")
    print("ready", flush=True)
    sys.stdin.read()
    return 0


def _run(spec: dict[str, Any]) -> int:
    for kind in ("net", "uts", "ipc"):
        _join(f"/proc/{spec['sandbox']}/ns/{kind}")
    _check(LIBC.unshare(NEWNS | NEWPID), "unshare")
    return _as_first(lambda: _contained(spec), spec["pid_file"])


def _exec(spec: dict[str, Any]) -> int:
    home = f"/proc/{spec['pid']}"
    root = os.open(f"{home}/root", os.O_PATH)
    spaces = [os.open(f"{home}/ns/{kind}", os.O_RDONLY) for kind in ("net", "uts", "ipc", "pid")]
    mounts = os.open(f"{home}/ns/mnt", os.O_RDONLY)
    for space in (*spaces, mounts):
        _check(LIBC.setns(space, 0), "setns")
    os.fchdir(root)
    os.chroot(".")
    return _as_first(lambda: _placed(spec))


def _contained(spec: dict[str, Any]) -> int:
    """Build the container's root, go there, and become its program."""
    root, mounts = spec["root"], sorted(spec["mounts"], key=lambda mount: mount["target"])
    held = [None if mount["source"] is None else _hold(mount["source"]) for mount in mounts]
    _mount("none", "/", flags=REC | PRIVATE)
    _mount("tmpfs", root, kind="tmpfs", data=SCRATCH)
    for name in ("upper", "work", "merged"):
        os.mkdir(f"{root}/{name}")
    data = f"lowerdir=/,upperdir={root}/upper,workdir={root}/work"
    _mount("overlay", f"{root}/merged", kind="overlay", data=data)
    os.chroot(f"{root}/merged")
    os.chdir("/")
    _mount("proc", "/proc", kind="proc")
    for mount, handle in zip(mounts, held, strict=True):
        _place(mount, handle)
    return _placed(spec)


def _hold(source: str) -> int:
    return os.open(source, os.O_PATH)


def _place(mount: dict[str, Any], handle: int | None) -> None:
    """Mount a folder or file that was opened before the root changed, or new memory."""
    target = mount["target"]
    if handle is None:
        os.makedirs(target, exist_ok=True)
        _mount("tmpfs", target, kind="tmpfs", data=f"size={mount['size']},mode=1777")
        return
    source = f"/proc/self/fd/{handle}"
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT, 0o644))
    _mount(source, target, flags=BIND | (REC if mount.get("whole") else 0))
    if mount["read_only"]:
        _mount("none", target, flags=BIND | REMOUNT | RDONLY)


def _placed(spec: dict[str, Any]) -> int:
    """Become the program, in its folder, with no input."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    try:
        os.makedirs(spec["folder"], exist_ok=True)
        os.chdir(spec["folder"])
    except OSError as error:
        return _complain(f"working folder {spec['folder']}: {error.strerror}")
    return _become(spec["words"], spec["environment"])


def _become(words: list[str], environment: dict[str, str]) -> int:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        return _complain(f"cannot run {words[0]}: {error.strerror}")


def _complain(line: str) -> int:
    os.write(2, f"{line}\n".encode())
    return NOT_STARTED


def _as_first(work: Callable[[], int], pid_file: str | None = None) -> int:
    """Fork into the new process namespace, hand signals on, and return the child's exit code."""
    child = os.fork()
    if child == 0:
        _die_with_parent(alone=True)
        code = NOT_STARTED
        try:
            code = work()
        except OSError as error:
            _complain(str(error))
        os._exit(code)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: _tell(child, number))
    if pid_file is not None:
        with open(f"{pid_file}.new", "w") as file:
            file.write(str(child))
        os.rename(f"{pid_file}.new", pid_file)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _tell(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _die_with_parent(*, alone: bool = False) -> None:
    parent = os.getppid()
    _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    if not alone and os.getppid() != parent:
        os._exit(NOT_STARTED)  # the parent died before we asked to be told


def _join(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    _check(LIBC.setns(handle, 0), f"setns {path}")
    os.close(handle)


def _mount(source: str, target: str, *, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = [word.encode() or None for word in (source, target, kind)]
    _check(LIBC.mount(*words, flags, data.encode() or None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
