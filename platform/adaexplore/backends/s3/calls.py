"""One request to the service, made to succeed where that is possible: the one layer of retries.

botocore's own retries are off, so that one place decides. Pauses grow to a cap and are drawn from the
whole range below it (full jitter), so that many writers do not come back together. Credentials come
from the usual chain and are refreshed by botocore as they age; when the service refuses them, the
chain is walked again, since files may have changed under a long sweep.

Source: Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015 (full jitter).
"""

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import boto3
from botocore.config import Config

from adaexplore.backends.s3 import diagnoses, faults
from adaexplore.backends.s3.faults import Fault, Kind
from adaexplore.errors import ConfigError, StoreError
from adaexplore.experiments.config import StoreConfig

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 20.0
CONNECTIONS: Final = 200
"""Kept open at most: more than the threads of those who call, or every further call makes its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call."""

    body: dict[str, Any]
    """The response; `Body` is read to bytes. Empty if an expected refusal came."""
    status: int = 200
    """HTTP status of an expected refusal."""
    tries: int = 1
    """After more than one, an earlier try that got no answer may still be carried out, even later."""

    @property
    def refused(self) -> bool:
        """Whether an expected refusal came."""
        return not self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connection:
    client: Any
    credentials: Any = field(repr=False)
    keys: str
    """Where its credentials are looked for, in words."""


@dataclass(slots=True)
class _Tried:
    """What one call has gone through."""

    most: int
    tries: int = 0
    renewals: int = 0


class Calls:
    """Calls about one bucket; safe to use from any thread."""

    def __init__(
        self,
        config: StoreConfig,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Connect to nothing yet.

        Args:
            config: Of kind s3.
            sleep: Waits so many seconds.
            jitter: Draws from [0, 1).

        Raises:
            ConfigError: The file of certificates is missing.
            StoreError: No client can be made from the configuration.
        """
        if config.ca_file is not None and not Path(config.ca_file).is_file():
            raise ConfigError(
                f"configuration key 'store.ca_file': there is no file {config.ca_file}"
            )
        self._config = config
        self._sleep = sleep
        self._jitter = jitter
        self._renewing = threading.Lock()
        self.prefix = f"{config.prefix.rstrip('/')}/" if config.prefix else ""
        try:
            self._connection = _connect(config)
        except diagnoses.CAUGHT as error:
            text = faults.message(diagnoses.of(error), self.locate(""), _looked_in(None), 1)
            raise StoreError(text) from error

    def locate(self, key: str) -> str:
        """The address of a key, without the service's."""
        return f"s3://{self._config.bucket}/{self.prefix}{key}"

    def ask(
        self,
        operation: str,
        key: str | None,
        *,
        expected: frozenset[int] = frozenset(),
        attempts: int | None = None,
        **parameters: Any,
    ) -> Answer:
        """The answer to a call.

        Args:
            operation: Name of the client's method.
            key: Which object, without the prefix; None if the call is about the bucket.
            expected: HTTP statuses of refusals that the caller wants to see.
            attempts: How often at most; None as configured.
            parameters: Of the operation, beside bucket and key.

        Raises:
            StoreError: It failed for good.
        """
        parameters["Bucket"] = self._config.bucket
        if key is not None:
            parameters["Key"] = self.prefix + key
        tried = _Tried(attempts or self._config.max_attempts)
        while True:
            tried.tries += 1
            connection = self._connection
            try:
                body = _perform(getattr(connection.client, operation), parameters)
                return Answer(body=body, tries=tried.tries)
            except diagnoses.CAUGHT as error:
                fault = diagnoses.of(error)
                if fault.status in expected and _final(fault):
                    return Answer(body={}, status=fault.status, tries=tried.tries)
                if not self._goes_on(fault, connection, tried):
                    raise self._error(fault, key, connection, tried.tries) from error

    def _goes_on(self, fault: Fault, used: _Connection, tried: _Tried) -> bool:
        """Whether to try again; the pause before that is over then."""
        if tried.renewals < 2 and self._renewed(fault, used, first=tried.renewals == 0):
            tried.renewals += 1
            return True
        if fault.kind is not Kind.BUSY or tried.tries >= tried.most:
            return False
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (tried.tries - 1))
        self._sleep(self._jitter() * longest)
        return True

    def _renewed(self, fault: Fault, used: _Connection, *, first: bool) -> bool:
        """Whether it is worth another try: the credentials are new, or may be."""
        if fault.kind not in (Kind.EXPIRED, Kind.KEYS):
            return False
        with self._renewing:
            if self._connection is not used:  # another thread was faster
                return True
            try:
                self._connection = _connect(self._config)
            except diagnoses.CAUGHT:  # the chain is broken now; the refusal is still what to tell
                return False
            changed = bool(self._connection.credentials != used.credentials)
        return changed or (fault.kind is Kind.EXPIRED and first)

    def _error(self, fault: Fault, key: str | None, used: _Connection, tries: int) -> StoreError:
        where = f"{self.locate(key or '')} ({used.client.meta.endpoint_url})"
        return StoreError(faults.message(fault, where, used.keys, tries))


def _final(fault: Fault) -> bool:
    # A missing bucket answers 404 as a missing object does, and is never what a caller expects.
    return fault.kind is Kind.FINAL and fault.code != "NoSuchBucket"


def _perform(call: Callable[..., dict[str, Any]], parameters: dict[str, Any]) -> dict[str, Any]:
    response = call(**parameters)
    if "Body" in response:  # read here: a connection that breaks in the middle is tried again whole
        with closing(response["Body"]) as stream:
            response["Body"] = stream.read()
    if "Metadata" in response:  # what stands between may change the case of a header
        said = response["Metadata"].items()
        response["Metadata"] = {name.lower(): value for name, value in said}
    return response


# -- clients -------------------------------------------------------------------------------------


def _connect(config: StoreConfig) -> _Connection:
    """A client with the credentials that the chain gives now."""
    session = boto3.Session()
    style = config.addressing
    if style == "auto" and config.endpoint is not None:
        style = _style(config.endpoint)
    client = _client(session, config, style)
    if style == "auto" and _style(client.meta.endpoint_url) == "path":
        # The address came from the environment or a profile, so it is known only now.
        client = _client(session, config, "path")
    credentials = session.get_credentials()
    return _Connection(
        client=client,
        credentials=credentials and credentials.get_frozen_credentials(),
        keys=_looked_in(session.profile_name, credentials and credentials.method),
    )


def _style(address: str) -> Literal["path", "auto"]:
    return "auto" if ".amazonaws.com" in address else "path"


def _client(session: Any, config: StoreConfig, style: str) -> Any:
    return session.client(
        "s3",
        endpoint_url=config.endpoint,
        region_name=config.region or session.region_name or "us-east-1",
        verify=config.ca_file,
        config=Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            s3={"addressing_style": style},
            request_checksum_calculation=config.checksums,
            response_checksum_validation=config.checksums,
            connect_timeout=config.connect_timeout_s,
            read_timeout=config.read_timeout_s,
            max_pool_connections=CONNECTIONS,
            tcp_keepalive=True,
        ),
    )


def _looked_in(profile: str | None, found: str | None = None) -> str:
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    text = (
        "looked in AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, then in profile "
        f"'{profile or os.environ.get('AWS_PROFILE', 'default')}' (AWS_PROFILE) of {file}, then in "
        "the roles of pod and machine"
    )
    return f"{text}; used those of '{found}'" if found else f"{text}; found none"
