"""What a serving engine is asked over HTTP: is it up, what does it serve, does it get anywhere.

`/health` answers as long as the HTTP side lives, even when the engine behind it hangs; so a canary
(a tiny completion) and the engine's own counters decide. Counters are summed over their labels.

Source: Prometheus text format 0.0.4; vLLM's OpenAI-compatible server and its metrics.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

MOVING: Final = (
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:iteration_tokens_total_count",
    "vllm:prefix_cache_queries_total",
    "vllm:num_preemptions_total",
    "vllm:kv_cache_usage_perc",
)
"""Numbers of which at least one changes whenever the engine gets on with its work."""
WAITING: Final = ("vllm:num_requests_running", "vllm:num_requests_waiting")
SHORT_S: Final = 10.0
"""Seconds that a question which needs no engine may take on a busy machine."""
_SAMPLE: Final = re.compile(
    r"^([A-Za-z_:][\w:]*)(?:\{.*\})?[ \t]+(-?[\d.]+(?:[eE][-+]?\d+)?)(?:\s|$)", re.MULTILINE
)
"""Name and value of a sample; NaN, which equals nothing, would look like movement."""


class CanaryError(Exception):
    """A completion was refused; the message says with what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The engine's own view of its work."""

    moving: tuple[float, ...]
    requests: int
    """Running and waiting."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A server at an address, without `/v1`."""

    http: aiohttp.ClientSession
    address: str

    async def healthy(self) -> bool:
        """Whether `/health` answers with 200."""
        return await self._get("/health") is not None

    async def models(self) -> list[dict[str, Any]] | None:
        """What `/v1/models` lists; None while it does not answer."""
        body = await self._get("/v1/models")
        if body is None:
            return None
        try:
            return [dict(model) for model in json.loads(body)["data"]]
        except (ValueError, KeyError, TypeError):
            return []

    async def version(self) -> str | None:
        """The engine's version; None if it does not say."""
        try:
            return str(json.loads(await self._get("/version") or "null")["version"])
        except (ValueError, KeyError, TypeError):
            return None

    async def counters(self) -> Counters | None:
        """The engine's counters; None while `/metrics` does not answer."""
        body = await self._get("/metrics")
        if body is None:
            return None
        sums = totals(body)
        return Counters(
            moving=tuple(sums.get(name, 0.0) for name in MOVING),
            requests=int(sum(sums.get(name, 0.0) for name in WAITING)),
        )

    async def canary(self, model: str, *, timeout_s: float) -> None:
        """Have one token generated.

        Raises:
            CanaryError: The engine refused, or answered with something else than a completion.
            TimeoutError: It did not answer in time.
            aiohttp.ClientError: It could not be reached.
        """
        message = {"role": "user", "content": "Reply with the word ready."}
        body = {"model": model, "messages": [message], "max_tokens": 1, "temperature": 0}
        async with asyncio.timeout(timeout_s):
            async with self.http.post(f"{self.address}/v1/chat/completions", json=body) as answer:
                text = await answer.text()
        try:
            complete = answer.status == 200 and bool(json.loads(text)["choices"])
        except (ValueError, KeyError, TypeError):
            complete = False
        if not complete:
            raise CanaryError(f"HTTP {answer.status}: {' '.join(text.split())[:300]}")

    async def _get(self, path: str) -> str | None:
        try:
            async with asyncio.timeout(SHORT_S):
                async with self.http.get(self.address + path) as answer:
                    text = await answer.text()
                    return text if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None


def session(headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """A client for engines on this machine: no proxies, and no connection kept over a restart."""
    return aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(force_close=True),
        timeout=aiohttp.ClientTimeout(total=None),
    )


def totals(text: str) -> dict[str, float]:
    """The samples of a metrics page, each name summed over its labels."""
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums
