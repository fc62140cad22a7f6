"""A mock model in a process of its own: legal moves after a fixed latency, at little cost.

`python mock_server.py LATENCY_S` prints its port, serves until its standard input closes, and then
prints as JSON how many calls it answered, what they cost it, and when (epoch) the first one came.
Every window is probed, so that histories grow as those of a careful model do.
"""

import asyncio
import json
import re
import sys
import time

import orjson
import uvloop

PENDING = re.compile(r'"batch_id": "(batch_\d+)"')
CASE = re.compile(r'"context_id": "(case_\d+)"')
FIELD = re.compile(r"`(\w+)`, type: \w+, unit: [^\n]*?, minimum: (-?[\d.]+), maximum")


def move(messages):
    """The text of a legal reply to a conversation."""
    last = messages[-1]["content"]
    if "A question aside" in last:
        return '{"relevant_fields":[],"field_directions":[]}'
    card = last[last.rindex("Current state: ") :]
    batch = PENDING.search(card)
    if batch:
        actions = dict.fromkeys(CASE.findall(card), "action_1")
        arguments = {"batch_id": batch[1], "actions": actions}
        return orjson.dumps({"tool": "submit_action_batch", "arguments": arguments}).decode()
    if "probe_001" in last or any("probe_001" in m["content"] for m in messages[2:4]):
        probes = [{"base_context_id": "probe_001", "changes": {}}] * 16
    else:
        values = {name: float(low) for name, low in FIELD.findall(messages[1]["content"])}
        probes = [{"values": values}] * 16
    return orjson.dumps({"tool": "probe_batch", "arguments": {"probes": probes}}).decode()


def completion(body):
    text = move(orjson.loads(body)["messages"])
    message = {"role": "assistant", "content": text}
    document = {
        "id": "mock", "object": "chat.completion", "created": 0, "model": "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": len(body) // 4, "completion_tokens": len(text) // 4, "total_tokens": 0},
    }  # fmt: skip
    return orjson.dumps(document)


class Served:
    """What was answered."""

    calls = 0
    first_at = None

    def one(self):
        self.calls += 1
        self.first_at = self.first_at or time.time()


async def serve(reader, writer, latency_s, served):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if head.startswith(b"get"):  # no list of models is kept
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            length = int(re.search(rb"content-length: *(\d+)", head)[1])
            served.one()
            body = await reader.readexactly(length)
            answer = completion(body)
            await asyncio.sleep(latency_s)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(answer), answer)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    latency_s, served = float(sys.argv[1]), Served()
    server = await asyncio.start_server(
        lambda r, w: serve(r, w, latency_s, served), "127.0.0.1", 0, limit=2**22, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    told = {"calls": served.calls, "cpu_s": time.process_time(), "first_at": served.first_at}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
