"""Playing one episode run: replay what is journaled, then ask, journal, and go on.

This is where the pure core meets waiting. Each reply is durable in the journal before the episode
sees it, so a run that is killed anywhere goes on where it was and asks nothing twice.
"""

from collections.abc import Callable
from dataclasses import dataclass

from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.errors import BudgetError
from adaexplore.experiments import acknowledgements, attempts, errands, usages
from adaexplore.experiments.attempts import Attempt
from adaexplore.experiments.stores import Store
from adaexplore.experiments.sweeps import Job
from adaexplore.models.endpoints import Endpoint, ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a job: a record, or the reason why there is none.

    Neither of them means that another launcher is playing the episode: look again later.
    """

    job: Job
    record: EpisodeRecord | None = None
    failure: str | None = None
    calls: int = 0
    """Model calls that this launch made; replayed replies are not among them."""
    replayed: int = 0
    torn: bool = False

    @property
    def elsewhere(self) -> bool:
        """Whether another launcher is playing the episode."""
        return self.record is None and self.failure is None


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
    claimed = await errands.run(store, _claim, store, job)
    if not isinstance(claimed, Attempt):
        return Outcome(job=job, record=claimed)
    return await _play(job, claimed, endpoint, protocol, on_call)


def _claim(store: Store, job: Job) -> Attempt | EpisodeRecord | None:
    """A new attempt; or the record, where another launcher was faster; or None while it plays."""
    claimed = attempts.claim(store, job.key)
    if isinstance(claimed, str):
        return attempts.read_result(store, claimed, hidden_digest=job.key.hidden_digest)
    return claimed


async def _play(
    job: Job,
    attempt: Attempt,
    endpoint: Endpoint,
    protocol: Protocol,
    on_call: Callable[[], None],
) -> Outcome:
    prices = getattr(job.cell.profile, "prices", usages.UNPRICED)
    calls = 0
    try:
        if attempt.carried is not None:
            await acknowledgements.of(attempt.carried)
        playing = play(job.world, job.cell.setting, protocol)
        request = next(playing)
        for reply in attempt.replies:
            request = playing.send(reply)
        while True:
            window = request.batch_number
            answer = await endpoint.ask(request)
            number = len(attempt.replies) + calls
            await acknowledgements.of(attempt.append(number, answer, prices))
            calls += 1
            on_call()
            request = playing.send(answer.reply)
            if request.batch_number != window:
                attempt.cut()
    except StopIteration as stop:
        record: EpisodeRecord = stop.value
        await acknowledgements.of(await errands.run(attempt.store, attempt.finish, record))
        return _outcome(job, attempt, calls, record=record)
    except (ModelError, BudgetError) as error:
        attempt.usage.book_failures(error.attempts, prices)
        failed = attempt.fail, str(error), error.kind, error.attempts
        await acknowledgements.of(await errands.run(attempt.store, *failed))
        return _outcome(job, attempt, calls, failure=str(error))
    finally:
        if not attempt.closed:
            await acknowledgements.of(await errands.run(attempt.store, attempt.close))


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
