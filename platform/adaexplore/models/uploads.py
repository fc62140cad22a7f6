"""Request bodies in parts, as aiohttp sends them.

A body repeats the whole conversation, and its parts are kept by the conversation anyway. They are joined
only while they are written: a call that waits for its answer holds no second copy.
"""

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from adaexplore.models.wire import Content


class Upload(Payload):
    """A content on its way; it can be sent again."""

    _autoclose = True  # it holds nothing that has to be closed

    def __init__(self, content: Content) -> None:
        """Say how long it is; nothing is joined."""
        super().__init__(content, content_type="application/json")
        self._content = content
        self._size = content.size

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole body as text."""
        return self._content.whole().decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the whole body at once: it leaves with the headers, in one system call."""
        await writer.write(self._content.whole())
