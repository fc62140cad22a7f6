"""Sweeps on a Ray that runs already: whatever dies, the tables are those of one process."""

import math
import random

import pytest

import rays
from fault_server import FaultServer

pytestmark = pytest.mark.ray
EPISODES = 84
LARGE = [
    "+grid=main", "models=[random,constant,quick]", "settings=[default,stationary]", "dataset=v1",
    f"dataset.limit={EPISODES}", "protocol.batches=2",
]  # fmt: skip
SMALL = ["+grid=main", "models=[quick]", "dataset=first", "protocol.batches=3"]


def kill(sweep, head, kind, calls, count=1):
    """Kill an actor after so many calls more; go on when another has taken its place.

    The model is held meanwhile, so the sweep cannot have ended; and an actor that replaces a lost one is
    started after that has been told.
    """
    launch, server = sweep
    server.let(calls)
    rays.until(lambda: server.held, of=launch)
    rays.until(lambda: len(head.actors(kind)) == count, of=launch)
    victim = random.Random(calls).choice(head.actors(kind))
    rays.procfs.kill([victim])
    rays.until(
        lambda: not rays.procfs.remaining([victim]) and len(head.actors(kind)) == count, of=launch
    )


def test_500_episodes_survive_the_death_of_workers_governor_and_driver(head, server):
    rays.profile(server)
    rays.until(lambda: not head.actors("Worker") + head.actors("Desk"))
    words = [*LARGE, *head.backend("backend.concurrency=16", "backend.ray.num_workers=2")]
    # Of the model's 840 replies at most 660 are given before the last death: what is let, and the 32
    # episodes at once that are held each time.
    server.let(0)
    first = rays.begun(*words, head=head)
    kill((first, server), head, "Worker", 80, count=2)
    kill((first, server), head, "Desk", 90)
    kill((first, server), head, "Worker", 100, count=2)
    server.let(100)
    rays.until(lambda: server.held, of=first)
    code, output = rays.killed(first)
    before = rays.finished()
    rays.until(lambda: not head.actors("Worker") + head.actors("Desk"))
    server.let(0)
    second = rays.begun(*words, head=head)
    kill((second, server), head, "Worker", 100, count=2)
    kill((second, server), head, "Worker", 60, count=2)
    server.allowed = math.inf
    told, _ = second.communicate(timeout=rays.DEADLINE_S)
    with FaultServer() as calm:
        rays.profile(calm)
        local = rays.launch(*LARGE, "runs_dir=local")

    assert (-9, 0, 0) == (code, second.returncode, local.returncode), output + told + local.stderr
    assert 0 < before < 6 * EPISODES
    assert 6 * EPISODES == rays.finished() == rays.finished("local")
    assert rays.tables("local") == rays.tables()
    assert rays.asked("local") == rays.asked()
    assert 2 == output.count("a worker was lost; another takes its episodes")
    assert 1 == output.count("the governor was lost; another reads what was spent")
    assert 2 == told.count("a worker was lost; another takes its episodes")
    rays.until(lambda: not head.actors("Worker") + head.actors("Desk"))


def test_a_cap_holds_across_workers_and_a_raised_one_lets_the_sweep_end(head, server):
    rays.profile(server)
    # 32 episodes of about 20,000 tokens each: the 8 that play at once end before the cap, all do not.
    cap = 450_000
    pace = ["backend.concurrency=4", "backend.ray.num_workers=2", "backend.ray.batch=1"]
    words = [*SMALL, *head.backend(*pace)]
    capped = rays.launch(*words, f"budget.cap_tokens={cap}", head=head)
    spent = sum(work.prompt_tokens + work.completion_tokens for work in server.work)
    played = rays.finished()
    raised = rays.launch(*words, "budget.cap_tokens=100000000", head=head)
    local = rays.launch(*SMALL, "runs_dir=local")

    assert (3, 0, 0) == (capped.returncode, raised.returncode, local.returncode), raised.stderr
    assert "the budget is used up" in capped.stdout
    assert cap / 2 < spent <= cap
    assert 0 < played < rays.finished()
    assert rays.tables("local") == rays.tables()
    assert rays.asked("local") == rays.asked()


def test_a_new_governor_knows_what_was_spent(head, server):
    rays.profile(server)
    rays.until(lambda: not head.actors("Worker") + head.actors("Desk"))
    cap, most, running = 500_000, 12_000, 8
    server.let(0)
    sweep = rays.begun(
        *SMALL,
        *head.backend("backend.concurrency=4", "backend.ray.num_workers=2"),
        f"budget.cap_tokens={cap}",
        head=head,
    )
    for calls in (20, 30):
        kill((sweep, server), head, "Desk", calls)
    server.allowed = math.inf
    output, _ = sweep.communicate(timeout=rays.DEADLINE_S)
    spent = sum(work.prompt_tokens + work.completion_tokens for work in server.work)

    assert 3 == sweep.returncode, output
    assert cap / 2 < spent <= cap + running * most
    assert "the governor was lost" in output
