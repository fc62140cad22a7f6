"""A model server on loopback that answers well, or breaks any rule it is told to break.

It speaks the OpenAI protocol over real sockets. A good answer is computed from the request by a
reference agent (the `model` field names it), so a whole benchmark can be played against it, and two
servers give the same scores whatever happens between them and the client. A plan says for each
request, by its number, what goes wrong. The server counts what came in and what work it did, also
the work whose answer never arrived.

    with FaultServer(storm(7, {"reset": 0.1, "rate_seconds": 0.2})) as server:
        ...server.url...
"""

import asyncio
import contextlib
import hashlib
import json
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

import refusals
from adaexplore.benchmark.game.agents import AGENTS
from adaexplore.benchmark.game.protocol import Message

WAIT_S = 0.02
"""Wait that refusals ask for: tests that look at longer ones use virtual time."""
SLOW_S = 0.05

# -- plans: what goes wrong with a request, by its number from 0; None is a good answer ----------


def calm():
    """Nothing goes wrong."""
    return lambda _: None


def always(fault):
    """The same thing goes wrong every time."""
    return lambda _: fault


def script(*faults):
    """One entry a request, then good answers."""
    return lambda number: faults[number] if number < len(faults) else None


def storm(seed, chances):
    """Each request meets at most one fault, with its probability, the same ones for a seed."""
    names = [*chances, None]
    weights = [*chances.values(), 1.0 - sum(chances.values())]
    return lambda number: random.Random(f"{seed}/{number}").choices(names, weights)[0]


@dataclass
class Work:
    """One chat request as the server saw it."""

    fault: str | None
    body: dict
    headers: dict
    done: bool = False
    """Whether the answer was computed, and so would be charged for."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass
class FaultServer:
    """The server, in a thread of its own for as long as the context lasts."""

    plan: object = field(default_factory=calm)
    key: str | None = None
    """Key that every request must bring; a wrong one is echoed in the refusal, as some do."""
    work: list[Work] = field(default_factory=list)
    """All chat requests, in order of arrival."""

    def __enter__(self):
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def faults(self):
        """Names of the faults so far, in order; None for good answers."""
        return [work.fault for work in self.work]

    def _run(self):
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self):
        self._stop, self._open = asyncio.Event(), set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=2**24)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connection(self, reader, writer):
        task = asyncio.current_task()
        self._open.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    await writer.drain()
        except asyncio.CancelledError:
            pass  # the server stops; a stalled connection is simply dropped
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader, writer):
        """One request and its answer; whether the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().strip().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split()
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            given = headers.get("authorization")
            writer.write(response(401, {"error": {"message": f"bad key: {given}"}}))
        elif (method, path) == ("GET", "/v1/models"):
            models = [{"id": name, "object": "model"} for name in AGENTS]
            writer.write(response(200, {"object": "list", "data": models}))
        elif (method, path.partition("?")[0]) == ("POST", "/v1/chat/completions"):
            work = Work(fault=self.plan(len(self.work)), body=json.loads(body), headers=headers)
            self.work.append(work)
            return await self._misbehave(work, reader, writer)
        else:
            writer.write(response(404, {"error": {"message": "no such page"}}))
        return True

    async def _misbehave(self, work, reader, writer):
        """Answer well or as the fault wants; whether the connection goes on."""
        fault = work.fault
        if work.body["model"] not in AGENTS:
            fault = "bad_model"
        refusal = refusals.at(time.time(), WAIT_S).get(fault)
        if refusal is not None:
            writer.write(raw(refusal.status, refusal.body, refusal.headers))
        elif fault == "reset":
            _reset(writer)
        elif fault in ("stall", "lost"):
            if fault == "lost":
                completion(work)  # the work is done and its answer thrown away
                return False
            writer.write(raw(200, b'{"choices": [{"mess', {}, length=4000))
            await reader.read()  # until the client gives up
        elif fault == "cut":
            writer.write(raw(200, json.dumps(completion(work)).encode()[:99], {}, length=4000))
            await writer.drain()
            return False
        else:
            if fault == "slow":
                await asyncio.sleep(SLOW_S)
            writer.write(BODIES.get(fault, _good)(work))
        return fault not in ("reset", "stall")


# -- answers -------------------------------------------------------------------------------------

_TEXTS = {}
"""Replies by digest of what was asked: two servers of a test need not think twice."""


def completion(work, **changes):
    """The chat completion for a request; counts the work."""
    body = work.body
    messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
    asked = json.dumps([body["model"], body.get("seed", 0), messages]).encode()
    digest = hashlib.sha256(asked).digest()
    if digest not in _TEXTS:
        _TEXTS[digest] = AGENTS[body["model"]].reply(messages, body.get("seed", 0))
    text = _TEXTS[digest]
    work.done = True
    work.prompt_tokens = sum(len(m.content) for m in messages) // 4
    work.completion_tokens = changes.pop("completion_tokens", len(text) // 4 + 1)
    return {
        "object": "chat.completion",
        "model": body["model"],
        "system_fingerprint": "fs-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, **changes},
            }
        ],
        "usage": {
            "prompt_tokens": work.prompt_tokens,
            "completion_tokens": work.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": work.prompt_tokens // 2},
        },
    }


def raw(status, body, headers, length=None):
    """An HTTP answer; a `length` longer than the body is a lie that stalls or breaks the reader."""
    fields = {"Content-Type": "application/json", "Content-Length": length or len(body), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body


def response(status, document):
    """An HTTP answer with a JSON body."""
    return raw(status, json.dumps(document).encode(), {})


def _good(work):
    return response(200, completion(work))


def _truncated(work):
    whole = json.dumps(completion(work)).encode()
    return raw(200, whole[: len(whole) // 2], {})


def _page(work):
    completion(work)
    return raw(200, b"<html>Please sign in to the network</html>", {"Content-Type": "text/html"})


def _endless(work):
    completion(work)
    return raw(200, b" " * (5 << 20), {})


def _empty(work):
    return response(200, {**completion(work), "choices": []})


def _capped(work):
    limit = work.body["max_tokens"]
    return response(200, completion(work, content='{"tool": "pro', completion_tokens=limit))


def _thoughts_cut(work):
    return response(200, completion(work, content="<think>so if the first field {"))


def _think_block(work):
    text = completion(work)["choices"][0]["message"]["content"]
    return response(200, completion(work, content=f"<think>let me see</think>\n{text}"))


def _apart(work):
    return response(200, completion(work, reasoning_content="let me see"))


def _echo(work):
    told = {"message": f"internal error; request headers: {work.headers}"}
    return response(500, {"error": told})


def _upstream(_):
    return response(200, {"error": {"code": 429, "message": "the provider behind is busy"}})


BODIES = {
    "truncated_json": _truncated, "wrong_type": _page, "endless": _endless, "no_choice": _empty,
    "capped_as_stop": _capped, "thoughts_cut": _thoughts_cut, "think_block": _think_block,
    "reasoning_apart": _apart, "echo": _echo, "upstream": _upstream,
}  # fmt: skip
"""Answers whose fault, if any, is in the body."""


def _reset(writer):
    """Break the connection so hard that the other side sees a reset."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
