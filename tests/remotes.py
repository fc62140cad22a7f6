"""Remote models for tests: profiles with short waits, accounts on any transport and clock."""

import asyncio
import random
import time
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from adaexplore.benchmark.game.protocol import Message, Request
from adaexplore.models.activity import Activity
from adaexplore.models.budget import Budget
from adaexplore.models.client import Account, HttpEndpoint
from adaexplore.models.governor import Governor
from adaexplore.models.profiles import HttpProfile
from adaexplore.models.transport import HttpAnswer

REQUEST = Request((Message("system", "You play."), Message("user", "Your move.")))
BASE_URL = "http://model.invalid/v1"


def profile(**sections) -> HttpProfile:
    """A profile of an endpoint; sections (`sampling`, `patience`, ...) are given as mappings."""
    document = {"kind": "openai_compatible", "provider": "test", "model": "m", **sections}
    return TypeAdapter(HttpProfile).validate_python(document)


def account(own, transport, *, clock=time.monotonic, secrets=(), **parts) -> Account:
    """An account for a profile; its key, if any, is the first of the secrets."""
    headers = {"Content-Type": "application/json"}
    if secrets:
        headers["Authorization"] = f"Bearer {secrets[0]}"
    defaults = {
        "governor": Governor("test (KEY) m", own.limits, clock),
        "budget": Budget(),
        "activity": Activity(clock),
        "headers": headers,
        "secrets": list(secrets),
        "sleep": asyncio.sleep,
        "clock": clock,
        "rng": random.Random(0),
    }
    return Account(profile=own, transport=transport, **{**defaults, **parts})


def endpoint(shared, *, url=BASE_URL, seed=0, key="run") -> HttpEndpoint:
    """An endpoint of an account for one episode run."""
    return HttpEndpoint(shared, base_url=url, seed=seed, key=key)


@dataclass
class Scripted:
    """A transport that answers from a list: answers are returned, errors raised, seconds waited.

    An entry may be a list of such steps. The last entry is repeated for ever.
    """

    entries: list
    calls: list = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    async def send(self, call):
        entry = self.entries[min(len(self.calls), len(self.entries) - 1)]
        self.calls.append(call)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for step in entry if isinstance(entry, list) else [entry]:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, HttpAnswer):
                    return step
                await asyncio.sleep(step)
        finally:
            self.in_flight -= 1
        raise AssertionError("the script has an entry without an answer")


def refused(refusal) -> HttpAnswer:
    """The HTTP answer of one of `refusals.at`."""
    return HttpAnswer(status=refusal.status, headers=refusal.headers, body=refusal.body)
