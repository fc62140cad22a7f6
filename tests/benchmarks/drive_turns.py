"""The environment alone: whole episodes with replies made beforehand, no client, no journal.

`python -m tests.benchmarks.drive_turns REPEATS` prints turns per CPU second of each repeat as JSON.
"""

import json
import sys
import time

from tests.benchmarks import mock_server

from adaexplore import configure
from adaexplore.authoring import datasets
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol, Reply


def answered(world, setting):
    """The replies of one episode."""
    given, playing = [], play(world, setting, Protocol())
    request = next(playing)
    while True:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        given.append(Reply(text=mock_server.move(messages)))
        try:
            request = playing.send(given[-1])
        except StopIteration:
            return given


def played(world, setting, replies):
    """Play one episode with its replies."""
    playing = play(world, setting, Protocol())
    next(playing)
    try:
        for reply in replies:
            playing.send(reply)
    except StopIteration:
        return
    raise AssertionError("expected the replies to end the episode")


def main():
    (setting,) = configure.sweep(["+grid=smoke"]).settings
    worlds = datasets.load("first").worlds
    replies = [answered(world, setting) for world in worlds]
    turns, rates = sum(map(len, replies)), []
    for _ in range(int(sys.argv[1])):
        start = time.process_time()
        for world, given in zip(worlds, replies, strict=True):
            played(world, setting, given)
        rates.append(turns / (time.process_time() - start))
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
