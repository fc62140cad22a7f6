"""The S3 store: the contract of `experiments.stores` over a bucket of any S3-compatible service.

Only put, get, head, list (version 2), multipart and delete are used. Conditional puts make `create`
exclusive where the service has them; that is found out once, before the first one, on an object that
nobody else writes. Nothing rests on it: attempts have keys of their own, a writer's name in each.
Keys are sorted here, since services list in orders of their own.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from adaexplore.backends.s3 import growing, multiparts, writers
from adaexplore.backends.s3.calls import Calls
from adaexplore.backends.s3.growing import GrowingObject
from adaexplore.experiments.config import StoreConfig

_JOURNALS: Final = 64
"""Journals that are written at the same moment; the appends of the others wait and come together."""
_FIRST_ATTEMPTS: Final = 3
"""Tries of the first call: what fails then is mostly a wrong address, and should be told soon."""


class S3Store:
    """Objects below a prefix of a bucket; safe to use from any thread."""

    near: bool = False
    at_once: int = 64

    def __init__(
        self,
        config: StoreConfig,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Use a bucket that exists, after a look whether it can be listed.

        Args:
            config: Of kind s3.
            sleep: Waits so many seconds between tries.
            jitter: Draws from [0, 1), to spread the pauses.

        Raises:
            ConfigError: The file of certificates is missing.
            StoreError: The bucket is missing, the service is down, or it refuses the keys.
        """
        self.writer = uuid.uuid4().hex[:12]
        self._calls = Calls(config, sleep=sleep, jitter=jitter)
        self._threads = ThreadPoolExecutor(_JOURNALS, thread_name_prefix="s3 journal")
        self._lease = writers.Lease(self._calls, self.writer, config.lease_s)
        # The listing first: its refusals have names, those of a head have none.
        first = min(_FIRST_ATTEMPTS, config.max_attempts)
        self._calls.ask(
            "list_objects_v2", None, Prefix=self._calls.prefix, MaxKeys=1, attempts=first
        )
        self._calls.ask("head_bucket", None, attempts=first)

    def put(self, key: str, data: bytes) -> None:
        """Write an object whole, in several requests if it is large."""
        if len(data) > multiparts.LARGE_BYTES:
            multiparts.put(self._calls, key, data)
        else:
            self._calls.ask("put_object", key, Body=data)

    def put_all(self, objects: Mapping[str, bytes]) -> "Future[None]":
        """Write objects whole, one after the other; the future is done."""
        for key, data in objects.items():
            self.put(key, data)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None; a growing one as far as it has been acknowledged."""
        return growing.read(self._calls, key)

    def keys(self, prefix: str) -> list[str]:
        """All keys below a prefix, sorted; a growing object once, and no folder markers."""
        found = {growing.shown(key) for key in self._listed(prefix) if not key.endswith("/")}
        return sorted(found)

    def create(self, key: str, data: bytes) -> GrowingObject | None:
        """Start a growing object; None if there is one."""
        self._lease.start()
        exclusive = self._lease.exclusive
        return growing.start(self._calls, self._threads, key, data, exclusive=exclusive)

    def locate(self, key: str) -> str:
        """The object's address, `s3://BUCKET/...`."""
        return self._calls.locate(key)

    def alive(self, writer: str) -> bool:
        """Whether a writer has been heard of within its lease, or still runs on this machine."""
        return writers.alive(self._calls, writer)

    def close(self) -> None:
        """Stop being a writer."""
        self._lease.stop()

    def _listed(self, prefix: str) -> Iterator[str]:
        begin = len(self._calls.prefix)
        more: dict[str, Any] = {}
        while True:
            page = self._calls.ask(
                "list_objects_v2", None, Prefix=self._calls.prefix + prefix, **more
            ).body
            yield from (entry["Key"][begin:] for entry in page.get("Contents", ()))
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}
