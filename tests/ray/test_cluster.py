"""Sweeps on a Ray that runs already: whatever dies, the tables are those of one process."""

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


def kill_at(head, kind, results):
    """Kill an actor when so many results are written."""
    rays.until(lambda: rays.finished() >= results)
    rays.until(lambda: head.actors(kind))
    victims = head.actors(kind)
    rays.procfs.kill([random.Random(results).choice(victims)])


def test_500_episodes_survive_the_death_of_workers_governor_and_driver(head, server):
    rays.profile(server)
    words = [*LARGE, *head.backend("backend.concurrency=16", "backend.ray.num_workers=2")]
    first = rays.begun(*words, head=head)
    kill_at(head, "Worker", 60)
    kill_at(head, "Desk", 120)
    kill_at(head, "Worker", 180)
    rays.until(lambda: rays.finished() >= 240)
    code, output = rays.killed(first)
    rays.until(lambda: not head.actors("Worker") + head.actors("Desk"), 30)
    second = rays.begun(*words, head=head)
    kill_at(head, "Worker", 320)
    kill_at(head, "Worker", 400)
    told, _ = second.communicate(timeout=rays.DEADLINE_S)
    with FaultServer() as calm:
        rays.profile(calm)
        local = rays.launch(*LARGE, "runs_dir=local")

    assert (-9, 0, 0) == (code, second.returncode, local.returncode), output + told + local.stderr
    assert 6 * EPISODES == rays.finished() == rays.finished("local")
    assert rays.tables("local") == rays.tables()
    assert rays.asked("local") == rays.asked()
    assert 2 == output.count("a worker was lost; another takes its episodes")
    assert 1 == output.count("the governor was lost; another reads what was spent")
    assert 2 == told.count("a worker was lost; another takes its episodes")
    assert [] == head.actors("Worker") + head.actors("Desk")


def test_a_cap_holds_across_workers_and_a_raised_one_lets_the_sweep_end(head, server):
    rays.profile(server)
    cap = 150_000
    words = [*SMALL, *head.backend("backend.concurrency=4", "backend.ray.batch=1")]
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
    cap, most, running = 200_000, 12_000, 8
    sweep = rays.begun(
        *SMALL,
        *head.backend("backend.concurrency=4", "backend.ray.num_workers=2"),
        f"budget.cap_tokens={cap}",
        head=head,
    )
    for calls in (20, 40):
        rays.until(lambda calls=calls: len(server.work) >= calls)
        rays.until(lambda: head.actors("Desk"))
        rays.procfs.kill(head.actors("Desk"))
    output, _ = sweep.communicate(timeout=rays.DEADLINE_S)
    spent = sum(work.prompt_tokens + work.completion_tokens for work in server.work)

    assert 3 == sweep.returncode, output
    assert cap / 2 < spent <= cap + running * most
    assert "the governor was lost" in output
