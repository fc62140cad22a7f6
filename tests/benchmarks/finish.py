"""Finish all runs of a sweep but the last, playing each episode once however many runs it is of.

`python -m tests.benchmarks.finish RUNS_DIR WORDS…` plays against the mock model's moves, in this process,
and writes journal, usage and result of each run of the sweep through the functions that a launch writes
them with. It prints how many runs it finished, and the key below which the last one will be.
"""

import json
import sys
from contextlib import closing

from tests.benchmarks import children, mock_server

from adaexplore import configure, preparing, publish
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.experiments import attempts, usages
from adaexplore.models.endpoints import Answer


def main():
    runs_dir, *words = sys.argv[1:]
    words = ["+grid=smoke", *children.remote(1, 1), *words, f"runs_dir={runs_dir}"]
    prepared = preparing.prepare(configure.sweep(words))
    with closing(prepared.store) as store:
        publish.documents(store, prepared.config, prepared.plan, prepared.selection, {})
        *jobs, last = prepared.plan.jobs
        played = {}
        for job in jobs:
            if job.key.episode_id not in played:
                played[job.key.episode_id] = replies(job, prepared.config.protocol)
            write(store, job, *played[job.key.episode_id])
    print(json.dumps({"finished": len(jobs), "left": last.key.prefix}))


def replies(job, protocol):
    """(replies, record) of one episode."""
    given, playing = [], play(job.world, job.cell.setting, protocol)
    request = next(playing)
    while True:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        given.append(Reply(text=mock_server.move(messages), input_tokens=1, output_tokens=1))
        try:
            request = playing.send(given[-1])
        except StopIteration as stop:
            return given, stop.value


def write(store, job, given, record):
    """One run, finished."""
    attempt = attempts.claim(store, job.key)
    for number, reply in enumerate(given):
        attempt.append(number, Answer(reply=reply, seconds=0.0), usages.UNPRICED)
    attempt.finish(record).result()


main()
