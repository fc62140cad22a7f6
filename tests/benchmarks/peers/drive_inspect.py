"""The conversations as an evaluation of inspect-ai: one sample each, a plain loop of `generate`.

`python drive_inspect.py PORT CONVERSATIONS EPISODES`. Its log is written, as it always is (and as our
side writes its journals), without its terminal display. Messages that stay keep their objects.
"""

import tempfile

import conversations
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    get_model,
)
from inspect_ai.solver import solver

KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@solver
def converse(held):
    async def solve(state, generate):
        messages = []
        for kept, new in held[state.sample_id]:
            added = [KINDS[message["role"]](content=message["content"]) for message in new]
            messages = [*messages[:kept], *added]
            state.messages = list(messages)
            state = await generate(state)
            assert state.output.completion
        return state

    return solve


def main():
    port, held = conversations.read()
    samples = [Sample(id=i, input="-") for i in range(len(held))]
    config = GenerateConfig(
        **conversations.PARAMETERS, max_connections=len(held), max_retries=0, timeout=600
    )
    model = get_model(
        "openai/mock", base_url=f"http://127.0.0.1:{port}/v1", api_key="none", config=config,
        responses_api=False,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        meter = conversations.Meter()
        (log,) = evaluate(
            Task(dataset=samples, solver=converse(held)), model=model, log_dir=folder,
            display="none", max_samples=len(held),
        )  # fmt: skip
        assert log.status == "success", log.error
        meter.tell(sum(map(len, held)))


main()
