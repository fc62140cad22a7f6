"""A driver in a pod: serves models as a sweep's driver does, asks them, and says what it sees.

The variable CASES holds a list: each has a name, a serving configuration, a profile, and how many pods
have to have answered before its context is left. All cases are served side by side, each by a host of
its own unless SHARED is set. The name of a Service is looked up for every call, since on a test bed it
leads to the pod itself and not to an address that stays; with KEPT it is known for ten seconds. Lines
of standard output are JSON: `note`, `served`, `answer`, `over`, `error`.
"""

import asyncio
import functools
import json
import os

import aiohttp
from pydantic import TypeAdapter

from adaexplore.backends.kubernetes import hosts
from adaexplore.errors import AdaExploreError
from adaexplore.experiments import config as configs
from adaexplore.experiments.serving import ServingConfig
from adaexplore.models.engines.asking import session

PAUSE_S = 0.2


def say(case, **what):
    print(json.dumps({"case": case, **what}), flush=True)


def host(case):
    config = TypeAdapter(ServingConfig).validate_python(case["config"])
    notify = lambda line: say(case["name"], note=line)  # noqa: E731
    return hosts.of_this_pod(config, os.environ.get("SWEEP", "sweep"), notify=notify)


async def play(case, shared):
    name = case["name"]
    profile = configs.profile(name, case["profile"])
    try:
        async with (shared or host(case)).serving(name, profile) as served:
            say(name, served=list(served.base_urls), fingerprint=served.fingerprint)
            await answers(name, served.base_urls, case)
        say(name, over=True)
    except AdaExploreError as error:
        say(name, error=str(error), kind=type(error).__name__)


async def answers(name, urls, case):
    """Ask until enough pods have answered; what fails meanwhile is asked again."""
    seen = set()
    message = {"role": "user", "content": "Say yes."}
    body = {"model": case["profile"]["model"], "messages": [message], "max_tokens": 4}
    async with session(case.get("headers")) as http:
        while len(seen) < case["answers"]:
            for url in urls:
                try:
                    async with http.post(
                        f"{url}/chat/completions",
                        json=body,
                        timeout=aiohttp.ClientTimeout(2),
                    ) as answer:
                        found = await answer.json(content_type=None)
                        pod = json.loads(found["choices"][0]["message"]["content"])["host"]
                except (aiohttp.ClientError, TimeoutError, OSError):
                    continue
                finally:
                    await asyncio.sleep(PAUSE_S)
                if pod not in seen:
                    seen.add(pod)
                    say(name, answer=pod, url=url)


async def main():
    if not os.environ.get("KEPT"):
        aiohttp.TCPConnector = functools.partial(aiohttp.TCPConnector, use_dns_cache=False)
    cases = json.loads(os.environ["CASES"])
    shared = host(cases[0]) if os.environ.get("SHARED") else None
    await asyncio.gather(*(play(case, shared) for case in cases))


if __name__ == "__main__":
    asyncio.run(main())
