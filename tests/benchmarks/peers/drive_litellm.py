"""The conversations through litellm's `acompletion`, as for any server of the protocol.

`python drive_litellm.py PORT CONVERSATIONS EPISODES`
"""

import asyncio
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it fetches one from the network on import

import conversations
import litellm


async def converse(url, turns):
    messages = []
    for kept, new in turns:
        messages = [*messages[:kept], *new]
        answer = await litellm.acompletion(
            model="openai/mock", messages=messages, api_base=url, api_key="none",
            num_retries=0, max_retries=0, timeout=600, **conversations.PARAMETERS,
        )  # fmt: skip
        assert answer.choices[0].message.content
    return len(turns)


async def main():
    port, held = conversations.read()
    meter = conversations.Meter()
    url = f"http://127.0.0.1:{port}/v1"
    meter.tell(sum(await asyncio.gather(*(converse(url, turns) for turns in held))))


litellm.suppress_debug_info = True
asyncio.run(main())
