"""The replayed endpoint: a model that answers with what a folder of stored attempts holds.

It plays an earlier author run again without a call, and it is the scripted model of the offline
tests. A file `CALL/attempt-K.json` is either an attempt as a run stored it, which answers the very
request it was made with and no other, or one that was written by hand: `{"answer": ...}`, the JSON
object of the reply (or a string, the reply itself), which answers whatever is asked.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adaexplore.authoring import calls
from adaexplore.benchmark.game.protocol import Reply, Request
from adaexplore.models.endpoints import Answer, ModelError

HAND_WRITTEN: Final = {"kind": "replay"}
"""Stands for the model of an answer that no model gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedEndpoint:
    """One attempt of a stored run."""

    folder: Path
    call: str
    number: int

    async def ask(self, request: Request) -> Answer:
        """The stored reply; ModelError if there is none for this request."""
        path = self.folder / calls.key(self.call, self.number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ModelError(f"{path}: no stored answer") from None
        return Answer(reply=_reply(path, data, request), seconds=0.0)


def model(folder: Path, call: str, number: int) -> dict[str, Any]:
    """Semantic part of the profile that made a stored attempt; of a hand-written one, its kind."""
    path = folder / calls.key(call, number)
    stored = calls.unsealed(path.read_bytes()) if path.is_file() else None
    return HAND_WRITTEN if stored is None else dict(stored["model"])


def _reply(path: Path, data: bytes, request: Request) -> Reply:
    stored = calls.unsealed(data)
    if stored is not None:
        if stored["request_sha256"] != calls.request_digest(request):
            raise ModelError(
                f"{path}: expected the answer to this request, got one to another; the idea, the "
                "prompts or an earlier answer changed since it was stored"
            )
        return Reply(**stored["reply"])
    try:
        answer = json.loads(data)["answer"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(
            f"{path}: expected a stored attempt, or an object with 'answer'; got neither"
        ) from None
    return Reply(text=answer if isinstance(answer, str) else json.dumps(answer))
