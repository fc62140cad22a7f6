"""How fast runs appear in MLflow, beside bare `MlflowClient` calls that write the same.

On SQLite with one thread, as a launch uses it; on an MLflow server over PostgreSQL with as many threads
for the bare client as our projection has. Both sides are warm, and taken in turns.
"""

import tempfile
from pathlib import Path

from tests.benchmarks import projection, stacks
from tests.benchmarks.children import HERE, ROOT, told
from tests.benchmarks.rows import Row, measured

RUNS = 240
EPISODES_OF_SEED = 120
THREADS = 8
SHARE = 0.8
SWEPT = 640
"""Episodes of the sweep that is played with and without MLflow: half a minute each."""
SLOWER_PERCENT = 5


def rows(bench):
    """The rows of the group."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "dataset=v1", f"dataset.limit={EPISODES_OF_SEED}", "protocol.batches=4",
            f"seeds={list(range(RUNS // EPISODES_OF_SEED))}",
        ]  # fmt: skip
        runs = Path(folder) / "runs"
        bench.say(f"finishing a sweep of {RUNS} runs")
        told(
            ["-m", "tests.benchmarks.finish", runs, *words, "tracking=none", "name=shown"],
            paths=[ROOT],
        )
        words += ["models=[openai_compatible]", "+profiles.openai_compatible.model=mock"]
        yield from _compared(bench, "sqlite", "SQLite", 1, [*words, "tracking=sqlite"], runs)
        try:
            with stacks.started(bench) as stack:
                place = ["tracking=server", f"tracking.uri={stack.tracking_uri}"]
                yield from _compared(
                    bench, "postgresql", "a server on PostgreSQL", THREADS, [*words, *place], runs
                )
                yield _slowdown(bench, stack)
        except stacks.NoStackError as error:
            yield Row(key="mlflow.postgresql", what="MLflow on PostgreSQL", note=str(error))


def _compared(bench, key, shown, threads, words, runs):
    found = {"ours": [], "bare": []}
    for i in range(bench.repeats):
        for side, rates in found.items():
            bench.say(f"{shown}: {side}")
            place = [f"runs_dir={runs}", f"tracking.experiment=bench-{i}"]
            one = told([HERE / "drive_projection.py", side, threads, *words, *place])
            rates.append(one["per_s"])
            for database in runs.glob("*.db*"):
                database.unlink()
    ours, bare = tuple(found["ours"]), tuple(found["bare"])
    yield measured(f"mlflow.{key}.ours", f"episode runs shown in MLflow, {shown}", ours, "runs/s")
    many = "one thread" if threads == 1 else f"{threads} threads"
    what = f"the same writes by bare MlflowClient calls, {many}"
    yield measured(f"mlflow.{key}.bare", what, bare, "runs/s")
    shares = [a / b for a, b in zip(ours, bare, strict=True)]
    yield measured(f"mlflow.{key}.share", f"ours over bare, {shown}", shares, "", SHARE, least=True)


def _slowdown(bench, stack):
    bench.say(f"a sweep of {SWEPT} episodes with and without MLflow")
    (alone, _), (shown, _) = projection.compared(stack, SWEPT)
    what = f"a sweep is slower when it is shown, {SWEPT} short episodes, 200 ms a call"
    return measured("mlflow.slower", what, 100 * (shown / alone - 1), "%", SLOWER_PERCENT)
