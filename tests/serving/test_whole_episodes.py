"""Whole episodes on the real engine, by the command that users run: `make test-vllm`.

A model this small mostly sends rejected or cut-off replies. That is a record like any other, and what
is tested here: that every episode ends in one, whatever befalls the server, and what the engine had to
read for it.
"""

import os
import re
import signal
from itertools import takewhile
from pathlib import Path

import pytest

from adaexplore.models.engines import asking
from serving import launched, played

pytestmark = pytest.mark.vllm

PYTHON = played.ROOT / ".venv-vllm" / "bin" / "python"
KEY = "canary-51c8e0"
COMPACT = ("--structured-outputs-config", '{"backend":"guidance","disable_any_whitespace":true}')
"""A schema lets a model fill its reply with spaces, and a small one does."""
CALL = re.compile(
    r'\{"(tool":"(probe_batch|request_next_batch|submit_act|calc)|relevant_fields":\[)'
)
SERVED = 0.98
"""Share of what a cache could give that has to come from it."""


@pytest.fixture(scope="module")
def model():
    assert PYTHON.exists(), "expected the engine's environment; run make vllm-env"
    return played.model_folder(PYTHON)


def complete(count):
    """The episodes; each has a record of all that is played, which its replies make again."""
    found = launched.episodes()

    assert [f"v1-{number + 1:03d}" for number in range(count)] == sorted(found)
    for episode in found.values():
        assert "completed" == episode.stored["status"]
        assert 8 * launched.BATCHES == len(episode.stored["cases"])
        assert not episode.stored["drifts"]
        assert ["post"] == [asked["phase"] for asked in episode.stored["assessments"]]
        assert episode.stored == episode.again
    return list(found.values())


def test_episodes_are_completed_though_their_engine_is_killed(model):
    """Killed while replies are written, in free form; what was answered is not asked again."""
    launched.profile(model, sampling={"max_output_tokens": 24, "reply_format": "text"})
    with launched.launch(PYTHON, 2) as sweep:
        sweep.wait_until(lambda: sweep.replies() >= 2 and busy(sweep))
        before = sweep.replies()
        os.kill(sweep.core(), signal.SIGKILL)
        code = sweep.end()

    assert 0 == code, sweep.said()
    assert "restart 1 of 3" in sweep.said()
    failures = [count for episode in complete(2) for count in episode.failures]
    assert len(failures) > before
    assert 1 <= sum(count > 0 for count in failures) <= 2  # no more than were in flight


def busy(sweep):
    return asking.totals(sweep.metrics).get(asking.WAITING[0], 0) > 0


def test_replies_keep_to_the_schema_and_histories_are_read_from_the_cache(model, monkeypatch):
    """Behind a key, which is written nowhere."""
    monkeypatch.setenv("SMALL_KEY", KEY)
    launched.profile(
        model,
        words=COMPACT,
        sampling={"max_output_tokens": 128, "reply_format": "json_schema"},
        auth={"key_env": "SMALL_KEY"},
    )
    with launched.launch(PYTHON, 1) as sweep:
        code = sweep.end()

    assert 0 == code, sweep.said()
    (episode,) = complete(1)
    assert all(CALL.match(reply.text) for reply in episode.replies)
    cached = [reply.cached_tokens for reply in episode.replies]
    assert sweep.known > 0
    told = {sum(cached[:count]) for count in range(sweep.known, len(cached) + 1)}
    assert hits(sweep) in told  # after the last look some may have been answered yet
    assert served_from_cache(sweep, model, episode) >= SERVED
    assert KEY not in sweep.said()
    assert not [path for path in Path().rglob("*") if path.is_file() and holds_key(path)]


def holds_key(path):
    return KEY.encode() in path.read_bytes()


def hits(sweep):
    """Prompt tokens from the cache, as the engine itself counts them."""
    return asking.totals(sweep.metrics)["vllm:prefix_cache_hits_total"]


def served_from_cache(sweep, model, episode):
    """Of the tokens that an ideal cache would have given, the share that came from the cache.

    The ideal knows every earlier prompt of the episode and gives whole blocks, as the engine does, but
    never all of a prompt: its last token has to be computed.
    """
    size = int(re.search(r'[{,]block_size="(\d+)"', sweep.metrics)[1])
    prompts = launched.tokens(PYTHON, model, episode.requests)
    assert [reply.input_tokens for reply in episode.replies] == [len(p) for p in prompts]
    ideal = served = 0
    for number, (prompt, reply) in enumerate(zip(prompts, episode.replies, strict=True)):
        known = max((common(prompt, earlier) for earlier in prompts[:number]), default=0)
        blocks = min(known, len(prompt) - 1) // size * size
        ideal += blocks
        served += min(reply.cached_tokens, blocks)
    print(
        f"\nprefix cache: {served} of {ideal} tokens that it could give were given "
        f"({served / ideal:.4f}), of {sum(map(len, prompts))} in all, in blocks of {size}"
    )
    return served / ideal


def common(one, other):
    """Length of the common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
