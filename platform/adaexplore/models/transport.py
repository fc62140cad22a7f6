"""The seam to the network: one HTTP call, and its implementation with aiohttp.

No retry happens below this line. A connection that fails, stalls or breaks off raises `CallFaultError`
with its kind; whatever the server answered, success or not, is returned.
"""

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self
from urllib.parse import urlencode

from adaexplore.models.faults import CallFaultError, Fault, FaultKind
from adaexplore.models.profiles import Patience, Route
from adaexplore.models.wire import Content

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES: Final = 4 << 20
"""Of an answer's body, unpacked: many times the longest reply with its reasoning."""


class HttpCall(NamedTuple):
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Content | None
    timeout_s: float


def address(base_url: str, path: str, query: Mapping[str, str]) -> str:
    """A full URL below a base URL, with the query that the endpoint wants in every call."""
    url = base_url.rstrip("/") + path
    return f"{url}?{urlencode(query)}" if query else url


class HttpAnswer(NamedTuple):
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Sends one call."""

    async def send(self, call: HttpCall) -> HttpAnswer:
        """The server's answer, of any status; CallFaultError if there was none."""


class HttpTransport:
    """Calls over aiohttp, with one pool of connections."""

    def __init__(self, route: Route, patience: Patience) -> None:
        """Prepare for a route; connections are made by need."""
        self._route = route
        self._patience = patience
        self._session: aiohttp.ClientSession | None = None
        self._timeout: aiohttp.ClientTimeout | None = None

    async def send(self, call: HttpCall) -> HttpAnswer:
        """The server's answer; CallFaultError of kind timeout or network if there was none."""
        import aiohttp

        from adaexplore.models.uploads import Upload

        session = self._session or self._open()
        if self._timeout is None or self._timeout.total != call.timeout_s:  # nearly always the same
            connect_s = min(self._patience.connect_timeout_s, call.timeout_s)
            self._timeout = aiohttp.ClientTimeout(total=call.timeout_s, sock_connect=connect_s)
        try:
            async with session.request(
                call.method, call.url, headers=call.headers, timeout=self._timeout,
                data=None if call.body is None else Upload(call.body),
                proxy=self._route.proxy, allow_redirects=False,
            ) as answer:  # fmt: skip
                return HttpAnswer(
                    status=answer.status, headers=answer.headers, body=await _body(answer)
                )
        except TimeoutError:
            message = f"no answer within {call.timeout_s:g} s"
            raise CallFaultError(Fault(kind=FaultKind.TIMEOUT, message=message)) from None
        except (aiohttp.ClientError, OSError) as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise CallFaultError(Fault(kind=FaultKind.NETWORK, message=message)) from None

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp

        tls: ssl.SSLContext | bool = True
        if not self._route.verify_tls:
            tls = False
        elif self._route.ca_file is not None:
            tls = ssl.create_default_context(cafile=self._route.ca_file)
        # The governor bounds what is under way; a second bound here would queue unseen.
        connector = aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=60.0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self._session

    async def __aenter__(self) -> Self:
        """Nothing to do: connections are made by need."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


async def _body(answer: "aiohttp.ClientResponse") -> bytes:
    """The body of an answer; CallFaultError if it is larger than any completion."""
    parts, size = [], 0
    async for part in answer.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            message = f"expected a completion, got a body of more than {MOST_BYTES >> 20} MiB"
            raise CallFaultError(Fault(kind=FaultKind.JUNK, message=message, status=answer.status))
    return b"".join(parts)
