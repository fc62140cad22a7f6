"""`author IDEA.yaml`: grow a domain and a dataset from a scenario idea, with a model of your own.

Run again, it resumes: a call whose answer is stored is never made again. Everything of a run is kept
below `runs/author/<domain_id>/`: one folder a call with every attempt, the draft as far as it has
grown, and the state of the run.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from adaexplore import configure, display, loops
from adaexplore.authoring import builds, calls, finished, orders, pipeline, replayed, stages
from adaexplore.authoring.calls import Asker, Attempt, Connect
from adaexplore.authoring.drafts import Draft
from adaexplore.authoring.orders import Order
from adaexplore.authoring.pipeline import Authored
from adaexplore.authoring.replayed import ReplayedEndpoint
from adaexplore.authoring.stages import Stage
from adaexplore.backends.folder import FolderStore
from adaexplore.errors import ConfigError, StageError
from adaexplore.models import preflight, secrets
from adaexplore.models.activity import Activity
from adaexplore.models.budget import Budget
from adaexplore.models.client import Account, HttpEndpoint
from adaexplore.models.governor import Governor
from adaexplore.models.profiles import RemoteProfile, ScriptedProfile
from adaexplore.models.transport import HttpTransport

RUNS: Final = Path("runs") / "author"
HEADER: Final = "run.json"
STATUS: Final = "status.json"
DRAFT: Final = "draft.yaml"
MOST_SHOWN: Final = 20
"""Faults of a failed call that are shown; its attempts hold all."""
EVERY_ROUND: Final = 1000
"""Rounds of a replay: as many as are stored."""

HELP: Final = """\
usage: adaexplore author IDEA.yaml (--model PROFILE | --replay DIR) [OPTION ...]

Grows a domain and its episodes from a scenario idea: field inventory, semantics, numeric priors,
ordered triples, constraints, replacements, events (stages 1 to 7), then audit and quality review of
searched episodes (8 and 9). Every answer is validated, repaired once where it has faults, and kept;
run the same command again at any time to go on.

  IDEA.yaml              domain_id, title, role, question, four actions, and a plan (optional)
  --model PROFILE        a model profile (conf/model/); +profiles.PROFILE.FIELD=VALUE changes a field
  --replay DIR           answer from the stored attempts of another run instead of asking a model
  --stages 1-6           only these stages; earlier ones must be stored (default: 1-9)
  --out DIR              folder of the finished dataset (default: runs/author/DOMAIN_ID/dataset)
  --date YYYY-MM-DD      date in the provenance (default: of the first launch)

exit codes: 0 done, 2 configuration, 3 a stage has no faultless answer yet, 4 infrastructure"""


def main(words: Sequence[str]) -> int:
    """Exit code of an author run."""
    if not words or "--help" in words or "-h" in words:
        print(HELP)
        return 0 if words else 2
    order = orders.read(words, RUNS)
    shelf = FolderStore(RUNS / order.idea.domain_id)
    with shelf.locked("lock"):
        return loops.run(_run(order, shelf, display.console()))


# -- running -----------------------------------------------------------------------------------


async def _run(order: Order, shelf: FolderStore, output: Console) -> int:
    """Exit code of a run, which leaves its state behind whatever happens."""
    header = _header(order, shelf)
    used: list[dict[str, Any]] = []

    def watch(attempt: Attempt) -> None:
        if not attempt.faults and attempt.model not in used:
            used.append(attempt.model)
        _show_attempt(output, attempt)

    try:
        async with _connected(order) as (connect, model):
            asker = Asker(
                shelf=shelf, connect=connect, model=model, prompts=stages.DIGEST,
                rounds=EVERY_ROUND if order.replay else 1, on_attempt=watch,
            )  # fmt: skip
            authored = await _stages_run(order, shelf, asker, output)
    except StageError as error:
        _note(shelf, {"state": "failed", "call": error.call, "faults": error.faults})
        _show_failure(output, shelf, error)
        raise
    if authored is None:
        _note(shelf, {"state": "stages done", "last": order.last})
        return _show_draft(output, shelf, order)
    provenance = finished.Provenance(models=used, date=order.date or header["date"])
    builds.save(order.out, finished.dataset_files(order.idea, authored, provenance))
    _note(shelf, {"state": "done", "dataset": str(order.out)})
    return _show_dataset(output, order)


async def _stages_run(
    order: Order, shelf: FolderStore, asker: Asker, output: Console
) -> Authored | None:
    """What the whole run made; None when the order ends before the last stage."""
    draft = order.idea.scenario
    growing = pipeline.growth(order.idea, asker, first=order.first, last=order.last)
    try:
        async for stage, grown in growing:
            draft = grown
            _show_stage(output, stage, draft)
    finally:
        shelf.put(DRAFT, finished.domain_file(draft))
    if order.last < pipeline.LAST_STAGE:
        return None
    return await pipeline.authored(
        order.idea, draft, asker, told=lambda line: output.print(line, markup=False)
    )


def _header(order: Order, shelf: FolderStore) -> dict[str, Any]:
    """The run's header: new, or the stored one if it is of this idea and these prompts."""
    scenario = json.loads(json.dumps(order.idea.scenario))
    stored = calls.unsealed(shelf.get(HEADER))
    if stored is None:
        date = order.date or _replayed_date(order) or time.strftime("%Y-%m-%d", time.gmtime())
        stored = {"scenario": scenario, "prompts_sha256": stages.DIGEST, "date": date}
        shelf.put(HEADER, calls.sealed(stored))
    for what, key, now in (
        ("another idea", "scenario", scenario), ("other prompts", "prompts_sha256", stages.DIGEST),
    ):  # fmt: skip
        if stored[key] != now:
            raise ConfigError(
                f"{shelf.root}: this run was begun with {what}; move the folder away to begin anew"
            )
    return stored


def _replayed_date(order: Order) -> str | None:
    path = None if order.replay is None else order.replay / HEADER
    found = calls.unsealed(path.read_bytes()) if path is not None and path.is_file() else None
    return None if found is None else str(found["date"])


def _note(shelf: FolderStore, state: dict[str, Any]) -> None:
    shelf.put(STATUS, (json.dumps(state, indent=1, ensure_ascii=False) + "\n").encode())


# -- models ------------------------------------------------------------------------------------

Bound = tuple[Connect, Callable[[str, int], dict[str, Any]]]
"""What binds a model to an attempt, and what says which model that is."""


@asynccontextmanager
async def _connected(order: Order) -> AsyncIterator[Bound]:
    """The model of an order; ConfigError if it cannot be asked."""
    if order.replay is not None:
        folder = order.replay
        yield (
            lambda call, number: ReplayedEndpoint(folder=folder, call=call, number=number),
            lambda call, number: replayed.model(folder, call, number),
        )
        return
    name = str(order.model)
    profile = configure.profile(name, order.overrides)
    if isinstance(profile, ScriptedProfile):
        raise ConfigError(f"model '{name}': expected a language model, got a reference agent")
    preflight.check_profile(name, profile, first_prompt_chars=0)
    base_url = profile.route.base_url
    if base_url is None:
        raise ConfigError(
            f"model '{name}': nothing serves it; add +profiles.{name}.route.base_url=http://.../v1"
        )
    async with HttpTransport(profile.route, profile.patience) as transport:
        account = _account(name, profile, transport)
        await preflight.check_endpoint(name, account, base_url)
        semantic = profile.semantic()
        yield (
            # Another seed for every attempt: the same words may be answered better next time.
            lambda call, number: HttpEndpoint(account, base_url=base_url, seed=number, key=call),
            lambda _call, _number: semantic,
        )


def _account(name: str, profile: RemoteProfile, transport: HttpTransport) -> Account:
    headers, values = secrets.headers(name, profile)
    activity = Activity()
    return Account(
        profile=profile, transport=transport, activity=activity, budget=Budget(),
        governor=Governor(f"{profile.provider} {profile.model}", profile.limits, activity.clock),
        headers=headers, secrets=values, sleep=asyncio.sleep,
    )  # fmt: skip


# -- what is shown -----------------------------------------------------------------------------


def _show_attempt(output: Console, attempt: Attempt) -> None:
    source = "stored" if attempt.stored else "answered"
    outcome = f"faults: {attempt.faults}" if attempt.faults else "good"
    output.print(f"  {attempt.call}  attempt {attempt.number}: {source}, {outcome}", markup=False)


def _show_stage(output: Console, stage: Stage, draft: Draft) -> None:
    counted = f"{len(draft[stage.adds])} {stage.adds.replace('_', ' ')}"
    output.print(f"stage {stage.number} {stage.title}: done, {counted}", markup=False)


def _show_failure(output: Console, shelf: FolderStore, error: StageError) -> None:
    lines = [f"{error.call} failed:", *(f"  {fault}" for fault in error.faults[:MOST_SHOWN])]
    if any(calls.CUT_OFF in fault for fault in error.faults):
        lines.append("longer replies: +profiles.PROFILE.sampling.max_output_tokens=32768")
    display.show_lines(output, [*lines, f"attempts: {shelf.locate(error.call)}"])


def _show_draft(output: Console, shelf: FolderStore, order: Order) -> int:
    display.show_lines(
        output,
        [
            f"draft:     {shelf.locate(DRAFT)}",
            f"go on:     the same command without --stages (next is stage {order.last + 1})",
        ],
    )
    return 0


def _show_dataset(output: Console, order: Order) -> int:
    # A folder is told from a packaged name by its slash.
    named = order.out if order.out.is_absolute() else f"./{order.out}"
    display.show_lines(
        output,
        [
            f"domain:    {order.out / 'domains' / order.idea.domain_id}.yaml",
            f"dataset:   {order.out}",
            f"play it:   adaexplore launch +grid=main models=[scientist] dataset.name={named}",
        ],
    )
    return 0
