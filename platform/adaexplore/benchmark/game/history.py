"""The conversation, and how a finished batch is taken out of it.

When a batch completes, everything from the message that revealed it is replaced by its outcome:
that message is cut where its card begins, and the outcome with the new card is appended to what is
left, so that roles keep alternating. Whatever precedes the reveal stays byte for byte, so a serving
engine's prefix cache hits on it. Source: paper, appendix on history; the cut is a decision of ours.
"""

import hashlib
from collections.abc import Iterable

from adaexplore.benchmark.game.protocol import Message


class History:
    """Messages of one episode, with the place where the pending batch was revealed."""

    def __init__(self, opening: Iterable[Message], *, rewrites: bool) -> None:
        """Start with the system message and the first user message."""
        self._messages = list(opening)
        self._rewrites = rewrites
        self._reveal = 0
        self._kept = ""
        self._digest = hashlib.sha256()
        for message in self._messages:
            self._observe(message.content)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as it stands."""
        return tuple(self._messages)

    @property
    def digest(self) -> str:
        """Digest of everything the environment has said so far, in order."""
        return self._digest.hexdigest()

    def exchange(self, reply: str, head: str, card: str) -> None:
        """Append a reply and the environment's answer to it."""
        self._append(reply, head + card)

    def reveal(self, reply: str, head: str, card: str, *, forced: bool) -> None:
        """As `exchange`, for the answer that reveals a batch.

        After a forced reveal nothing of the message is kept when the batch completes.
        """
        self._reveal = len(self._messages) + 1
        self._kept = "" if forced else head
        self._append(reply, head + card)

    def complete(self, reply: str, outcome: str, card: str) -> None:
        """Put the outcome in the place of the finished batch, or append it where nothing is taken out."""
        if not self._rewrites:
            self._append(reply, outcome + card)
            return
        del self._messages[self._reveal :]
        self._messages.append(Message("user", self._kept + outcome + card))
        self._observe(outcome + card)

    def fork(self, question: str) -> tuple[Message, ...]:
        """The conversation with a question appended to its last message; nothing returns from it."""
        *before, last = self._messages
        return (*before, Message(last.role, last.content + question))

    def _append(self, reply: str, answer: str) -> None:
        self._messages += [Message("assistant", reply), Message("user", answer)]
        self._observe(answer)

    def _observe(self, text: str) -> None:
        self._digest.update(f"{text}\0".encode())
