"""One call of the API server: with a deadline, and tried again while the server is away for a moment.

An answer that says no is a `RefusedError` with its status. No answer, and answers of a server that is
overloaded or restarting, are tried again until the patience ends (a control plane that is upgraded is
away for about a minute), and are an `UnreachableError` then. One that has just started knows no roles
yet and forbids all for some seconds: a right that was there is believed to be lost only after a while.

A change that was sent is waited for even when the caller is cancelled: whoever cleans up afterwards has
to find what was made.

Source: Kubernetes API conventions (statuses, `Retry`), and what restarts of a real one answer.
"""

import asyncio
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import urllib3

from adaexplore.backends.kubernetes.connections import CONNECTIONS, Connection
from adaexplore.errors import ClusterError

Json = dict[str, Any]

AWAY: Final = (429, 500, 502, 503, 504)
"""Answers that another try may turn into a better one."""
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
MISSING: Final = 404
CONFLICT: Final = 409
GONE: Final = 410
CALL_S: Final = 20.0
"""One try, its reading included."""
PATIENCE_S: Final = 90.0
PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 3.0)
"""Before the next tries; the last one before all further ones."""
WARM_S: Final = 30.0
"""How long an API server that has just started may take to know who may do what."""
PLAIN: Final = "application/json"


class RefusedError(ClusterError):
    """The API server's answer is no."""

    def __init__(self, status: int, reason: str, said: str, where: str) -> None:
        """Keep what it said: HTTP status, the API's word for the reason, and the message."""
        super().__init__(f"the cluster refuses {where}: {said} (HTTP {status} {reason})")
        self.status = status
        self.reason = reason
        self.said = said

    @property
    def quota(self) -> bool:
        """Whether a ResourceQuota is used up."""
        return self.status == FORBIDDEN and "exceeded quota" in self.said


class ConflictError(RefusedError):
    """The name is taken, or the object is not what it was when it was read."""


class UnreachableError(ClusterError):
    """There was no answer for as long as the patience lasted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    data: bytes


class Caller:
    """Calls over one connection, for one event loop."""

    def __init__(self, connection: Connection, patience_s: float) -> None:
        """Prepare; nothing is called yet."""
        self.connection = connection
        self.patience_s = patience_s
        self._threads = ThreadPoolExecutor(CONNECTIONS, "kubernetes")
        self._allowed: set[tuple[str, str]] = set()
        self._doubted = -math.inf

    def close(self) -> None:
        """Let threads and connections go."""
        self._threads.shutdown(wait=False)
        self.connection.close()

    async def ask(
        self, method: str, path: str, body: Json | None = None, content: str = PLAIN
    ) -> Answer:
        """A success, after as many tries as the patience allows.

        Raises:
            RefusedError: An answer that another try would not better.
            UnreachableError: No answer.
        """
        deadline, pauses = time.monotonic() + self.patience_s, iter(PAUSES_S)
        warming = False
        while not isinstance(found := await self._try(method, path, body, content), Answer):
            if _without_right(found) and not warming:
                warming = True
                deadline = time.monotonic() + min(self.patience_s, WARM_S)
            pause_s = next(pauses, PAUSES_S[-1])
            if time.monotonic() + pause_s > deadline:
                raise self._given_up(found)
            await asyncio.sleep(pause_s)
        return found

    async def _try(
        self, method: str, path: str, body: Json | None, content: str
    ) -> Answer | ClusterError:
        """An answer, or a fault that may pass; other faults are raised."""
        kind = (method, _collection(path))
        try:
            answer = await self._once(method, path, body, content)
        except urllib3.exceptions.HTTPError as error:
            self._doubted = time.monotonic()
            fault = UnreachableError(f"{self.name()}: {_said(error)}")
            if _distrusted(error):
                raise fault from None
            return fault
        if answer.status < 300:
            self._allowed.add(kind)
            return answer
        refused = _refused(answer, f"{method} {path.partition('?')[0]}")
        if refused.status in (MISSING, CONFLICT):
            self._allowed.add(kind)
        if _passing(refused) or self._was_allowed(kind, refused):
            self._doubted = time.monotonic()
            return refused
        raise refused

    def _was_allowed(self, kind: tuple[str, str], refused: RefusedError) -> bool:
        """Whether a missing right may be the server's own trouble: it was there, or all are in doubt."""
        doubtful = time.monotonic() - self._doubted < WARM_S
        return _without_right(refused) and (kind in self._allowed or doubtful)

    def _given_up(self, fault: ClusterError) -> ClusterError:
        if _without_right(fault):
            return fault
        return UnreachableError(
            f"{self.name()} did not serve within {self.patience_s:g} s: {fault}"
        )

    async def _once(self, method: str, path: str, body: Json | None, content: str) -> Answer:
        """One try, in a thread; not left alone by a caller that is cancelled."""
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._threads, self._send, method, path, body, content)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            if method != "GET":
                await asyncio.wait([asked])
            asked.add_done_callback(_seen)
            raise

    def _send(self, method: str, path: str, body: Json | None, content: str) -> Answer:
        headers = self.connection.headers(method, path.partition("?")[0])
        data = None if body is None else json.dumps(body).encode()
        answer = self.connection.request(
            method,
            path,
            body=data,
            headers=headers | ({} if data is None else {"Content-Type": content}),
            timeout=urllib3.Timeout(total=CALL_S),
        )
        return Answer(answer.status, answer.data)

    def name(self) -> str:
        """The server, for people."""
        return f"the API server of {self.connection.name} ({self.connection.server})"


def _seen(asked: asyncio.Future[Answer]) -> None:
    """An error that nobody waits for any more is not reported as lost."""
    if not asked.cancelled():
        asked.exception()


def _refused(answer: Answer, where: str) -> RefusedError:
    try:
        body = json.loads(answer.data)
    except ValueError:
        body = None
    if isinstance(body, dict):
        said, reason = str(body.get("message", "")), str(body.get("reason", ""))
    else:
        said, reason = answer.data.decode(errors="replace"), ""
    kind = ConflictError if answer.status == CONFLICT else RefusedError
    return kind(answer.status, reason, " ".join(said.split())[:500], where)


def _passing(refused: RefusedError) -> bool:
    """Whether another try may do better; two creations that meet at a quota are told to try again."""
    met = refused.status == CONFLICT and "resourcequotas" in refused.said
    return refused.status in AWAY or met


def _without_right(fault: ClusterError) -> bool:
    """Whether the asker has no right, or is not known; what admission refuses is not that."""
    if not isinstance(fault, RefusedError):
        return False
    return fault.status == UNKNOWN or (fault.status == FORBIDDEN and " cannot " in fault.said)


def _collection(path: str) -> str:
    """A path without the name of the object: what rights are about."""
    parts = path.partition("?")[0].split("/")
    return "/".join(parts[: parts.index("namespaces") + 3] if "namespaces" in parts else parts)


def _distrusted(error: Exception) -> bool:
    """A certificate that is not trusted will not be trusted later."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
