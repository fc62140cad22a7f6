"""Playing one episode run: replay what is journaled, then ask, journal, and go on.

This is where the pure core meets waiting. Each reply is durable in the journal before the episode
sees it, so a run that is killed anywhere goes on where it was and asks nothing twice.
"""

from collections.abc import Callable
from dataclasses import dataclass

from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.experiments.attempts import Attempt
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.endpoints import Endpoint, ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a job: a record, or the reason why there is none."""

    job: Job
    record: EpisodeRecord | None
    failure: str | None
    calls: int
    """Model calls that this launch made; replayed replies are not among them."""
    replayed: int
    torn: bool


async def play_job(
    job: Job, endpoint: Endpoint, store: Store, protocol: Protocol, *, on_call: Callable[[], None]
) -> Outcome:
    """Play one job to its end.

    Args:
        job: The cell and episode.
        endpoint: The cell's model, bound to this run.
        store: Where the attempt is journaled and its result written.
        protocol: Limits of the environment.
        on_call: Called after each model call.

    Raises:
        StoreError: The store cannot be written; nothing that was acknowledged is lost.
    """
    attempt = Attempt(store, job.key)
    calls = 0
    try:
        playing = play(job.world, job.cell.setting, protocol)
        request = next(playing)
        for reply in attempt.replies:
            request = playing.send(reply)
        while True:
            answer = await endpoint.ask(request)
            attempt.append(len(attempt.replies) + calls, answer)
            calls += 1
            on_call()
            request = playing.send(answer.reply)
    except StopIteration as stop:
        record: EpisodeRecord = stop.value
        attempt.finish(record)
        return _outcome(job, attempt, calls, record=record)
    except ModelError as error:
        attempt.fail(str(error))
        return _outcome(job, attempt, calls, failure=str(error))
    finally:
        attempt.close()


def _outcome(
    job: Job,
    attempt: Attempt,
    calls: int,
    *,
    record: EpisodeRecord | None = None,
    failure: str | None = None,
) -> Outcome:
    return Outcome(
        job=job,
        record=record,
        failure=failure,
        calls=calls,
        replayed=len(attempt.replies),
        torn=attempt.torn,
    )
