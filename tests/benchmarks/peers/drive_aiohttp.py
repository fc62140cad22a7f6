"""The floor: the conversations over plain aiohttp, with bodies made and read by orjson.

`python drive_aiohttp.py PORT CONVERSATIONS EPISODES`. Each turn serialises its whole history again.
"""

import asyncio

import aiohttp
import conversations
import orjson


async def converse(session, url, turns):
    messages = []
    for kept, new in turns:
        messages = [*messages[:kept], *new]
        body = {"model": "mock", "messages": messages, **conversations.PARAMETERS}
        async with session.post(url, data=orjson.dumps(body)) as answer:
            document = orjson.loads(await answer.read())
        assert document["choices"][0]["message"]["content"]
    return len(turns)


async def main():
    port, held = conversations.read()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        meter = conversations.Meter()
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        meter.tell(sum(await asyncio.gather(*(converse(session, url, turns) for turns in held))))


asyncio.run(main())
