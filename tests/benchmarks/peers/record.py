"""Record the conversations that the peers hold: what our client sends when the mock model answers.

`python -m tests.benchmarks.peers.record FILE [WINDOWS]` plays the episodes of `first`, once each,
without any network, and writes for each the turns as `conversations.read` tells them.
"""

import json
import sys
from pathlib import Path

from tests.benchmarks import mock_server

from adaexplore import configure
from adaexplore.authoring import datasets
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol, Reply


def conversation(world, setting, protocol):
    """The turns of one episode."""
    turns, before = [], []
    playing = play(world, setting, protocol)
    request = next(playing)
    while True:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        same = [a == b for a, b in zip(before, messages, strict=False)]
        kept = same.index(False) if False in same else len(same)
        turns.append((kept, messages[kept:]))
        before = messages
        try:
            request = playing.send(Reply(text=mock_server.move(messages)))
        except StopIteration:
            return turns


def write(file, windows=None):
    """Write the conversations of all episodes of `first`."""
    (setting,) = configure.sweep(["+grid=smoke"]).settings
    protocol = Protocol(batches=windows)
    worlds = datasets.load("first").worlds
    file.write_text(json.dumps([conversation(world, setting, protocol) for world in worlds]))


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
