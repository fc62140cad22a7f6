"""The same episodes through the plain openai SDK: no journal, no governor, no record kept.

`python drive_openai.py PORT EPISODES` prints calls, CPU seconds and wall seconds as JSON.
"""

import asyncio
import json
import sys
import time

import openai

from adaexplore import configure
from adaexplore.authoring import datasets
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol, Reply


async def episode(client, world, setting):
    playing, calls = play(world, setting, Protocol()), 0
    request = next(playing)
    while True:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        answer = await client.chat.completions.create(
            model="mock", messages=messages, temperature=0.0, seed=0, max_tokens=8192,
            response_format={"type": "json_object"},
        )  # fmt: skip
        calls += 1
        try:
            request = playing.send(Reply(text=answer.choices[0].message.content))
        except StopIteration:
            return calls


async def run(port, episodes):
    worlds = datasets.load("first").worlds
    (setting,) = configure.sweep(["+grid=smoke"]).settings
    async with openai.AsyncOpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=600.0
    ) as client:
        cpu, wall = time.process_time(), time.perf_counter()
        calls = sum(
            await asyncio.gather(
                *(episode(client, worlds[i % len(worlds)], setting) for i in range(episodes))
            )
        )
        return {
            "calls": calls,
            "cpu_s": time.process_time() - cpu,
            "wall_s": time.perf_counter() - wall,
        }


print(json.dumps(asyncio.run(run(int(sys.argv[1]), int(sys.argv[2])))))
