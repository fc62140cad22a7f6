"""The client: a language model as an endpoint, with the one retry layer there is.

A call waits for leave and for money, is sent, and is either answered or a fault of a known kind.
Faults that another attempt can mend are tried again after a capped exponential wait with full
jitter, or after the wait that the provider asks for. Every attempt is recorded. A retried call is
the same call: the episode sees one reply.
"""

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adaexplore.benchmark.game.protocol import Reply, Request
from adaexplore.errors import BudgetError
from adaexplore.models import faults, wire
from adaexplore.models.activity import CALLING, Activity
from adaexplore.models.budget import Cost, cost, cost_of
from adaexplore.models.endpoints import Answer, ModelError
from adaexplore.models.faults import POSSIBLY_CHARGED, RETRIED, CallFaultError, Fault, FaultKind
from adaexplore.models.governor import AccountStoppedError, Permit
from adaexplore.models.pacing import Pace, Purse
from adaexplore.models.profiles import Patience, RemoteProfile
from adaexplore.models.transport import HttpAnswer, HttpCall, Transport, address

CHARS_PER_TOKEN: Final = 3.0
"""Low on purpose: estimates made with it reserve rather too much than too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Everything that all calls to one model share."""

    profile: RemoteProfile
    transport: Transport
    governor: Pace
    budget: Purse
    activity: Activity
    headers: dict[str, str]
    """Headers with the key in them: in memory only, never in a log or a record."""
    secrets: Sequence[str]
    """Values that must not appear in any message."""
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    rng: random.Random = field(default_factory=random.Random)
    """Jitter only: it decides nothing but waiting."""


class HttpEndpoint:
    """A remote model for one episode run."""

    def __init__(
        self, account: Account, *, base_url: str, seed: int, key: str, server: str | None = None
    ) -> None:
        """Bind the account to one run, which keeps to one address.

        `server` is the digest of the fingerprint of a server that we started; kept with every reply.
        """
        self._server = {} if server is None else {"server": server}
        self._account = account
        dialect = account.profile.dialect
        self._url = address(base_url, dialect.path, dialect.query)
        self._body = wire.Body(account.profile, seed)
        self._key = key
        self._worked_s = 0.0

    async def ask(self, request: Request) -> Answer:
        """The reply to one request, retries included.

        Raises:
            ModelError: It cannot be had: refused for good, quota used up, or tried often enough.
            BudgetError: The cap of the sweep is reached.
        """
        body = self._body.of(request)
        patience = self._account.profile.patience
        tried: list[dict[str, Any]] = []
        for number in range(1, patience.attempts + 1):
            self._require_time(tried)
            before_s = self._worked_s
            try:
                received = await self._attempt(body)
            except CallFaultError as caught:
                fault = caught.fault
            except AccountStoppedError as stopped:
                raise ModelError(str(stopped), kind="quota", attempts=tried) from None
            except BudgetError as reached:
                reached.attempts = tried
                raise
            else:
                return Answer(
                    reply=received.reply,
                    seconds=self._worked_s - before_s,
                    attempts=tried,
                    served_by={**received.served_by, **self._server},
                )
            seconds = round(self._worked_s - before_s, 6)
            lost = self._wasted(body).tokens if fault.kind in POSSIBLY_CHARGED else 0
            tried.append(
                faults.as_document(self._scrubbed(fault), seconds=seconds, lost_tokens=lost)
            )
            if fault.kind in (FaultKind.OVERFLOW, FaultKind.FILTERED):
                return Answer(reply=_unscored(fault.kind), seconds=seconds, attempts=tried)
            self._give_up_on(fault, number, tried)
            await self._wait(fault, number)
        raise AssertionError("the last attempt gives up")  # pragma: no cover

    # -- one attempt ---------------------------------------------------------------------------

    async def _attempt(self, body: wire.Content) -> wire.Received:
        account = self._account
        estimated = self._estimate(body)
        permit = await self._permit(estimated.tokens)
        try:
            await self._reserve(estimated)
            return await self._paid(body, estimated, permit)
        finally:
            account.governor.release()

    async def _permit(self, tokens: int) -> Permit:
        """Leave to call; shown as waiting only if it has to be waited for."""
        governor, activity = self._account.governor, self._account.activity
        if (at_once := governor.permit_at_once(tokens)) is not None:
            return at_once
        with activity.doing(self._key, "queued", governor.ready_in() or None):
            return await governor.permit(tokens)

    async def _reserve(self, most: Cost) -> None:
        """Money for a call; shown as waiting only if it has to be waited for."""
        if not self._account.budget.reserve_at_once(most):
            with self._account.activity.doing(self._key, "waiting for the budget"):
                await self._account.budget.reserve(most)

    async def _paid(self, body: wire.Content, estimated: Cost, permit: Permit) -> wire.Received:
        """The answer to a call whose cost is reserved; settled whatever happens."""
        account = self._account
        actual: Cost | None = None
        start_s = account.clock()
        try:
            with account.activity.doing(self._key, CALLING):
                answer = await account.transport.send(self._call(body))
            received = self._received(answer)
            actual = cost_of(account.profile.prices, received.reply)
            account.governor.succeeded(permit)
        except CallFaultError as caught:
            if caught.fault.kind not in POSSIBLY_CHARGED:
                actual = Cost(usd=estimated.usd and 0.0, tokens=0)
            if caught.fault.kind is FaultKind.RATE:
                account.governor.rate_limited(permit, caught.fault.wait_s)
            raise
        else:
            return received
        finally:
            self._worked_s += account.clock() - start_s
            # Also when this call is cancelled the work may be done.
            account.budget.settle(estimated, actual or self._wasted(body))

    def _call(self, body: wire.Content) -> HttpCall:
        patience = self._account.profile.patience
        timeout_s = patience.call_timeout_s
        if patience.episode_deadline_s is not None:
            timeout_s = max(min(timeout_s, patience.episode_deadline_s - self._worked_s), 0.001)
        return HttpCall(
            method="POST",
            url=self._url,
            headers=self._account.headers,
            body=body,
            timeout_s=timeout_s,
        )

    def _received(self, answer: HttpAnswer) -> wire.Received:
        status = answer.status
        if 200 <= status < 300:
            try:
                return wire.read(answer.body, self._account.profile)
            except CallFaultError:
                upstream = wire.error_status(answer.body)
                if upstream is None:
                    raise
                status = upstream
        now_s = self._account.epoch()
        raise CallFaultError(faults.classify(status, answer.headers, answer.body, now_s=now_s))

    def _estimate(self, body: wire.Content) -> Cost:
        """The most that a call can cost."""
        return cost(
            self._account.profile.prices,
            input_tokens=int(body.size / CHARS_PER_TOKEN),
            cached_tokens=0,
            output_tokens=self._account.profile.sampling.max_output_tokens,
        )

    def _wasted(self, body: wire.Content) -> Cost:
        """What is booked for a call whose answer was lost: its input, as estimated."""
        return cost(
            self._account.profile.prices,
            input_tokens=int(body.size / CHARS_PER_TOKEN),
            cached_tokens=0,
            output_tokens=0,
        )

    # -- after a fault -------------------------------------------------------------------------

    def _give_up_on(self, fault: Fault, number: int, tried: list[dict[str, Any]]) -> None:
        """Raise ModelError if no further attempt is due."""
        patience, name = self._account.profile.patience, self._account.governor.name
        told = self._scrubbed(fault).message
        asked_s = fault.wait_s or 0.0
        if fault.kind is FaultKind.QUOTA or (
            fault.kind is FaultKind.RATE and asked_s > patience.retry_after_cap_s
        ):
            resets = f"; it resets in {asked_s:.0f} s" if asked_s else ""
            reason = f"the quota of {name} is used up{resets}: {told}"
            self._account.governor.stop(reason)
            raise ModelError(reason, kind="quota", attempts=tried)
        if fault.kind not in RETRIED:
            raise ModelError(f"{name}: {told}", kind=str(fault.kind), attempts=tried)
        self._require_time(tried)
        if number >= patience.attempts:
            message = f"{name}: gave up after {number} attempts; the last: {told}"
            raise ModelError(message, kind=str(fault.kind), attempts=tried)

    def _require_time(self, tried: list[dict[str, Any]]) -> None:
        """Raise ModelError if the episode has worked as long as it may."""
        deadline_s = self._account.profile.patience.episode_deadline_s
        if deadline_s is not None and self._worked_s >= deadline_s:
            name = self._account.governor.name
            message = f"{name}: the episode's deadline of {deadline_s:g} s of work has passed"
            raise ModelError(message, kind="deadline", attempts=tried)

    async def _wait(self, fault: Fault, number: int) -> None:
        """Wait before the next attempt, visibly, and never less than the provider asks."""
        wait_s = backoff_s(number, self._account.profile.patience, self._account.rng)
        # After a rate limit the governor holds the whole account for as long as was asked; the
        # backoff beside it keeps a provider that asks for 0 s from using up all attempts at once.
        if fault.kind is not FaultKind.RATE:
            wait_s = max(wait_s, fault.wait_s or 0.0)
        with self._account.activity.doing(self._key, f"retrying ({fault.kind})", wait_s):
            await self._account.sleep(wait_s)

    def _scrubbed(self, fault: Fault) -> Fault:
        message = faults.scrubbed(fault.message, list(self._account.secrets))
        return Fault(kind=fault.kind, message=message, status=fault.status, wait_s=fault.wait_s)


def backoff_s(attempt: int, patience: Patience, rng: random.Random) -> float:
    """Wait before the attempt after number `attempt`: full jitter below a capped doubling.

    Source: M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015.
    """
    ceiling = min(patience.backoff_cap_s, patience.backoff_base_s * 2.0 ** min(attempt - 1, 60))
    return rng.uniform(0.0, ceiling)


def _unscored(kind: FaultKind) -> Reply:
    overflow = kind is FaultKind.OVERFLOW
    return Reply(text="", finish_reason="overflow" if overflow else "content_filter")
