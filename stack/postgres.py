"""PostgreSQL, MLflow's database.

Debian's package keeps its programs out of PATH, and PostgreSQL refuses to run as root; as root it is
therefore run by an unprivileged account. That account must not need a right to the folders above the
data (a checkout may lie in a closed home), so the data folder is opened here and handed over as an
open descriptor: `/proc/self/fd/N` leads straight to it.

There is no Unix socket: its path has a limit of 107 bytes and would have to lie elsewhere. There is
no superuser on the network either: role and database are made in single-user mode, before anybody
can connect, and the only line of `pg_hba.conf` lets that role into that database from loopback, with
a password. Shared memory is a private mapping and files; of the one small System V segment that
remains after a kill, `clear` rids the machine.

Source: PostgreSQL 15 documentation, chapters 19, 21.1 and 20.4; miscinit.c for `postmaster.pid`.
"""

import ctypes
import os
import pwd
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import psycopg2

from stack import processes
from stack.keys import DATABASE, ROLE, Keys
from stack.layout import HOST, StackError
from stack.processes import Account, Command, Site

ACCOUNTS: Final = ("postgres", "nobody")
"""Who runs the server when we are root, the first that exists."""
IPC_RMID: Final = 0
HBA: Final = f"host {DATABASE} {ROLE} {HOST}/32 scram-sha-256\n"
SETTINGS: Final = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "on",
    "password_encryption": "scram-sha-256",
    "dynamic_shared_memory_type": "mmap",
    "log_min_error_statement": "panic",  # a statement may hold a password
}


class Postgres:
    """The database server."""

    key = "postgres"
    number = signal.SIGINT  # "fast": sessions are ended, data written
    grace_s = 20.0
    ready_s = 60.0

    def __init__(self, site: Site, *, port: int, keys: Keys) -> None:
        """Serve the folder `site.home` on a loopback port."""
        self.site = site
        self.ports: tuple[int, ...] = (port,)
        self._keys = keys

    def prepare(self) -> None:
        """Make the data folder if there is none, and set the password to what the keys say.

        Raises:
            StackError: PostgreSQL is missing, or of another version than the data.
        """
        if not self.site.home.exists():
            self._make()
        with _Opened(self.site.home) as data:
            self._single(data, [f"ALTER ROLE {ROLE} PASSWORD '{self._keys.password}'"])

    @contextmanager
    def command(self) -> Iterator[Command]:
        """The server, with its data folder as an open descriptor."""
        with _Opened(self.site.home) as data:
            words = [
                self._program("postgres"),
                "-D",
                data.path,
                "-p",
                str(self.ports[0]),
                *_settings(),
            ]
            yield _as_owner(words, data)

    def ask(self) -> None:
        """One query, as MLflow makes them.

        Raises:
            psycopg2.Error: It is not answered.
        """
        connection = psycopg2.connect(
            host=HOST, port=self.ports[0], user=ROLE, dbname=DATABASE,
            password=self._keys.password, connect_timeout=5,
        )  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.close()

    def clear(self) -> None:
        """Remove what a killed server leaves: a shared memory segment, and its word that it runs."""
        file = self.site.home / "postmaster.pid"
        with suppress(OSError, ValueError, IndexError):
            _, segment = file.read_text().splitlines()[6].split()
            _remove_segment(int(segment))
        # Its process id may be another's by now, and then the next server would refuse to start.
        file.unlink(missing_ok=True)

    # -- the first start -----------------------------------------------------------------------

    def _make(self) -> None:
        """Beside its place, and moved there when whole: a first start may be interrupted."""
        new = self.site.home.with_name(f"{self.site.home.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700, parents=True)
        if (account := _unprivileged()) is not None:
            os.chown(new, account.uid, account.gid)
        with _Opened(new) as data:
            words = [
                "-A",
                "reject",
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--no-locale",
                "--data-checksums",
            ]
            self._run([self._program("initdb"), "-D", data.path, *words], data, "")
            (new / "pg_hba.conf").write_text(HBA)
            make = [f"CREATE ROLE {ROLE} LOGIN", f"CREATE DATABASE {DATABASE} OWNER {ROLE}"]
            self._single(data, make)
        new.rename(self.site.home)

    def _single(self, data: "_Opened", statements: list[str]) -> None:
        """Run statements without a server, from standard input: nobody sees them."""
        words = [self._program("postgres"), "--single", "-D", data.path, *_settings(), "postgres"]
        self._run(words, data, "".join(f"{line}\n" for line in statements))

    def _run(self, words: list[str], data: "_Opened", text: str) -> None:
        done = subprocess.run(  # noqa: S603 (PostgreSQL's own programs)
            words,
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            **processes.options(_as_owner(words, data), {}),
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode or "ERROR:" in output:
            with self.site.log.open("a") as log:
                log.write(output)
            last = output.strip().rpartition("\n")[2]
            raise StackError(
                f"{Path(words[0]).name} failed: {last}; the rest is in {self.site.log}"
            )

    def _program(self, name: str) -> str:
        version = self.site.home / "PG_VERSION"
        return str(programs(version.read_text().strip() if version.exists() else None) / name)


def programs(major: str | None) -> Path:
    """The folder with PostgreSQL's programs, of a major version or else the newest.

    Raises:
        StackError: There is none.
    """
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += Path("/usr/lib/postgresql").glob("*/bin")
    found = {folder: _version(folder) for folder in folders if (folder / "postgres").exists()}
    fitting = {folder: version for folder, version in found.items() if major in {None, version}}
    if fitting:
        return max(fitting, key=lambda folder: float(fitting[folder] or 0))
    wanted = "" if major is None else f" {major} (the data are of this version)"
    package = "postgresql" if major is None else f"postgresql-{major}"
    raise StackError(
        f"expected PostgreSQL{wanted} on PATH or in /usr/lib/postgresql, found "
        f"{', '.join(map(str, found)) or 'none'}; apt-get install {package}"
    )


class _Opened:
    """A data folder as an open descriptor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.path = f"/proc/self/fd/{self.handle}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)


def _as_owner(words: list[str], data: _Opened) -> Command:
    owner, account = data.folder.stat(), None
    if os.geteuid() == 0:
        account = Account(uid=owner.st_uid, gid=owner.st_gid)
    return Command(words=words, folder=Path("/"), account=account, handles=(data.handle,))


def _settings() -> list[str]:
    return [f"-c{name}={value}" for name, value in SETTINGS.items()]


def _version(folder: Path) -> str:
    """Major version, such as 15."""
    words = [str(folder / "postgres"), "--version"]
    text = subprocess.run(words, capture_output=True, text=True, check=False).stdout  # noqa: S603
    return next(iter(re.findall(r"\) (\d+)", text)), "")


def _unprivileged() -> Account | None:
    """Who shall own the data; None where that is us."""
    if os.geteuid():
        return None
    for name in ACCOUNTS:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise StackError(
        f"expected an account {' or '.join(ACCOUNTS)} to run PostgreSQL; add one: useradd postgres"
    )


def _remove_segment(segment: int) -> None:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    attached = {int(line.split()[1]): int(line.split()[6]) for line in lines}
    if attached.get(segment) == 0:
        ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)
