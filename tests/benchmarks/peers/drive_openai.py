"""The conversations through the plain openai SDK, with its own retries off.

`python drive_openai.py PORT CONVERSATIONS EPISODES`
"""

import asyncio

import conversations
import openai


async def converse(client, turns):
    messages = []
    for kept, new in turns:
        messages = [*messages[:kept], *new]
        answer = await client.chat.completions.create(
            model="mock", messages=messages, **conversations.PARAMETERS
        )
        assert answer.choices[0].message.content
    return len(turns)


async def main():
    port, held = conversations.read()
    async with openai.AsyncOpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=600.0
    ) as client:
        meter = conversations.Meter()
        meter.tell(sum(await asyncio.gather(*(converse(client, turns) for turns in held))))


asyncio.run(main())
