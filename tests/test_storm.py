"""Whole sweeps against a model server that breaks the rules: faults change when, never what."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore import launch
from fault_server import FaultServer, always, storm

AGENTS = {"careful": "one_factor", "quick": "random"}
"""Models of the sweeps by profile name, with the agent that the server answers for them with."""
QUIET = ["tracking=none", "report=false", "dataset.limit=4"]
LARGE = ["+grid=main", "models=[careful,quick]", "settings=[default,evidence_given]", *QUIET]
SMALL = ["+grid=main", "models=[quick]", *QUIET]
STORM = {
    "rate_seconds": 0.06, "rate_milliseconds": 0.03, "rate_duration": 0.03, "rate_told": 0.03,
    "rate_info": 0.02, "rate_minute": 0.02, "rate_plain": 0.006, "rate_date": 0.006,
    "upstream": 0.006, "broken_500": 0.03, "broken_502": 0.02, "busy_503": 0.02, "busy_529": 0.02,
    "late_408": 0.01, "reset": 0.03, "cut": 0.02, "lost": 0.03, "slow": 0.02, "echo": 0.01,
    "stall": 0.004, "truncated_json": 0.02, "wrong_type": 0.02, "no_choice": 0.02,
}  # fmt: skip
HASTE = {"backoff_base_s": 0.002, "attempts": 20}
SILENCE = {**HASTE, "call_timeout_s": 15}
"""Where the server is silent for ever at times: far longer than a good answer takes on a busy machine."""
KEY, HEADER = "canary-k3y/Secret+1", "canary-h3ader-Secret"


def profiles(server, **more):
    """Write the profiles of `AGENTS`, at the address of a server."""
    folder = Path("conf/model")
    folder.mkdir(parents=True, exist_ok=True)
    for name, agent in AGENTS.items():
        document = {
            "kind": "openai_compatible",
            "provider": "acme",
            "model": agent,
            "route": {"base_url": server.url},
            "sampling": {"max_output_tokens": 1024},
            "patience": HASTE,
            **more,
        }
        (folder / f"{name}.yaml").write_text(json.dumps(document))


def sweep(*words, code=0):
    """One launch in this process."""
    assert code == launch.guarded(lambda: launch.launch(words))


def tables():
    (folder,) = Path().glob("runs/sweeps/*/tables")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def accounting():
    """Sums of the accounting table over all rows."""
    (path,) = Path().glob("runs/sweeps/*/accounting.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return lambda *names: sum(int(row[name]) for row in rows for name in names)


def journaled():
    """(replies, failed attempts by kind) of all attempts, each once."""
    replies, failed = 0, []
    for path in Path().glob("runs/cells/*/*/*/journal.jsonl"):
        header, *entries = (json.loads(line) for line in path.read_text().splitlines())
        own = entries[header["carried"] :]
        replies += len(own)
        failed += [attempt["kind"] for entry in own for attempt in entry["meta"]["attempts"]]
    for path in Path().glob("runs/cells/*/*/*/failure.json"):
        failed += [attempt["kind"] for attempt in json.loads(path.read_text())["attempts"]]
    return replies, failed


def undisturbed(folder, words):
    """(tables, calls) of a sweep against a server that does everything right."""
    with pytest.MonkeyPatch.context() as patch, FaultServer() as server:
        patch.chdir(folder)
        profiles(server)
        sweep(*words)
        return tables(), len(server.work)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("large"), LARGE)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("small"), SMALL)


# -- the invariant -----------------------------------------------------------------------------


def test_a_storm_of_recoverable_faults_changes_no_byte_of_the_tables(large):
    with FaultServer(storm(2, STORM)) as server:
        profiles(server, patience=SILENCE)
        sweep(*LARGE)
    replies, failed = journaled()
    good = [fault for fault in server.faults if fault in (None, "slow")]

    assert large == (tables(), len(good))
    assert set(STORM) | {None} == set(server.faults)
    assert (len(good), len(server.work) - len(good)) == (replies, len(failed))
    assert (replies, len(failed)) == (accounting()("calls"), accounting()("failed_attempts"))


def test_what_is_booked_covers_the_work_that_was_done(small):
    with FaultServer(storm(6, {"lost": 0.1, "cut": 0.1, "wrong_type": 0.1})) as server:
        profiles(server)
        sweep(*SMALL)
    done = sum(work.prompt_tokens for work in server.work)
    spent = accounting()

    assert small[0] == tables()
    assert all(work.done for work in server.work)
    assert done <= spent("input_tokens", "lost_tokens") <= 1.5 * done


def test_what_the_governor_did_is_stored_with_the_sweep():
    with FaultServer(storm(7, {"rate_seconds": 0.1})) as server:
        profiles(server)
        sweep(*SMALL)
    (path,) = Path().glob("runs/sweeps/*/governors/0001-*.json")
    history = json.loads(path.read_text())

    assert ["acme (no key) random"] == list(history)
    assert "rate limit" in [entry["why"] for entry in history["acme (no key) random"]]


# -- caps, quotas: drain, and go on ------------------------------------------------------------


def test_a_cap_drains_the_sweep_and_a_higher_one_lets_it_finish(small, capsys):
    cap = 300_000
    with FaultServer() as server:
        profiles(server)
        sweep(*SMALL, f"budget.cap_tokens={cap}", code=3)
        out, work = " ".join(capsys.readouterr().out.split()), len(server.work)
        spent = accounting()("input_tokens", "output_tokens")
        sweep(*SMALL, f"budget.cap_tokens={cap}", code=3)
        again = len(server.work)
        sweep(*SMALL, f"budget.cap_tokens={100 * cap}")

    assert f"of {cap} tokens spent): raise budget.cap_usd or budget.cap_tokens" in out
    assert 0.8 * cap < spent <= cap
    assert work == again
    assert small == (tables(), len(server.work))


def test_a_used_up_quota_is_named_and_the_next_launch_goes_on(small, capsys):
    with FaultServer(lambda number: "quota_day" if number >= 60 else None) as server:
        profiles(server)
        sweep(*SMALL, code=3)
        good, refused = server.faults.count(None), server.faults.count("quota_day")
    out = " ".join(capsys.readouterr().out.split())
    with FaultServer() as server:
        profiles(server)
        sweep(*SMALL)

    assert "the quota of acme (no key) random is used up; it resets in 51 s" in out
    assert 1 <= refused <= 4  # what was under way when the first refusal came, and no more
    assert small == (tables(), good + len(server.work))


def test_a_server_that_dies_fails_episodes_and_the_next_launch_goes_on(small, capsys):
    with FaultServer(lambda number: "reset" if number >= 50 else None) as server:
        profiles(server, patience={**HASTE, "attempts": 2})
        sweep(*SMALL, code=3)
        good = server.faults.count(None)
    out = " ".join(capsys.readouterr().out.split())
    with FaultServer() as server:
        profiles(server)
        sweep(*SMALL)

    assert "gave up after 2 attempts; the last: " in out
    assert "episodes failed and are in no table; launch again to go on with them" in out
    assert small == (tables(), good + len(server.work))


def test_overflow_and_filter_are_unscored_results_that_are_not_asked_again():
    with FaultServer({3: "overflow_code", 9: "filter_policy"}.get) as server:
        profiles(server)
        sweep(*SMALL)
        asked = len(server.work)
        sweep(*SMALL)
    (row,) = csv.DictReader(tables()["protocol.csv"].decode().splitlines())

    assert ("4", "2") == (row["n"], row["unscored"])
    assert asked == len(server.work)


# -- bad input: refused before the first episode ------------------------------------------------


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("no model 'gpt-0'; it has constant, ", ["model=gpt-0"]),
        ("the provider's name of the model is not known", ["model=null"]),
        ("no address; add +profiles.quick.route.base_url=", ["route.base_url=null"]),
        ("does not answer: ", ["route.base_url=http://127.0.0.1:9/v1"]),
        ("the environment variable NO_SUCH_KEY is not set", ["auth.key_env=NO_SUCH_KEY"]),
        ("the key file /no/such/key cannot be read", ["auth.key_file=/no/such/key"]),
        ("do not fit the context of 2000 tokens", ["limits.context_tokens=2000"]),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_before_the_first_episode(told, words, capsys):
    with FaultServer() as server:
        profiles(server)
        changes = [f"+profiles.quick.{word}" for word in words]
        sweep(*SMALL, *changes, code=2)
    error = capsys.readouterr().err

    assert error.startswith("error: model 'quick': ")
    assert told in error
    assert 1 == error.count("\n")
    assert ([], []) == (server.work, list(Path().glob("runs/cells/*")))


def test_a_money_cap_without_a_price_is_refused(capsys):
    with FaultServer() as server:
        profiles(server)
        sweep(*SMALL, "budget.cap_usd=1", code=2)

    assert "model 'quick': budget.cap_usd needs a price" in capsys.readouterr().err


def test_a_wrong_key_is_refused_by_the_name_of_its_variable(capsys, monkeypatch):
    monkeypatch.setenv("ACME_KEY", KEY)
    with FaultServer(key="another") as server:
        profiles(server, auth={"key_env": "ACME_KEY"})
        sweep(*SMALL, code=2)
    error = capsys.readouterr().err

    assert "refuses the key (ACME_KEY): HTTP 401: bad key: Bearer ***" in error
    assert KEY not in error


def test_the_command_of_the_readme_plays_against_any_server():
    """No file: address and name are given on the command line."""
    with FaultServer() as server:
        base = "+profiles.openai_compatible"
        sweep(
            "+grid=smoke", "models=[openai_compatible]", f"{base}.route.base_url={server.url}",
            f"{base}.model=random", "tracking=none",
        )  # fmt: skip

    assert 2 == tables()["main.csv"].count(b"\n")


# -- secrets -----------------------------------------------------------------------------------


def test_no_secret_is_written_anywhere(monkeypatch):
    """A server that repeats all headers in its errors; MLflow, journals, tables and output."""
    monkeypatch.setenv("ACME_KEY", KEY)
    monkeypatch.setenv("ACME_HEADER", HEADER)
    more = {
        "auth": {"key_env": "ACME_KEY"},
        "dialect": {"header_env": {"X-Tenant": "ACME_HEADER"}},
        "patience": {**HASTE, "attempts": 3},
    }
    # The first episode gets through by retries, the second does not.
    with FaultServer(lambda n: "echo" if n % 3 == 1 or n > 45 else None, key=KEY) as server:
        profiles(server, **more)
        words = ["+grid=main", "models=[quick]", "dataset.limit=2", "backend.concurrency=1"]
        done = subprocess.run(
            [sys.executable, "-m", "adaexplore.launch", *words], capture_output=True, check=False
        )
    written = [path for path in Path().rglob("*") if path.is_file()]

    assert {HEADER} == {work.headers["x-tenant"] for work in server.work}
    assert "echo" in server.faults
    assert [] == [
        (path, secret)
        for path in written
        for secret in (KEY, HEADER)
        if secret.encode() in path.read_bytes()
    ]
    assert not any(secret.encode() in done.stdout + done.stderr for secret in (KEY, HEADER))
    assert b"HTTP 500: internal error; request headers: " in b" ".join(done.stdout.split())
    assert (3, b"") == (done.returncode, done.stderr)
    assert any(path.name == "mlflow.db" for path in written)
    assert any(b"request headers" in path.read_bytes() for path in written)


def test_everything_that_is_final_ends_the_episodes_at_once(capsys):
    with FaultServer(always("bad_field")) as server:
        profiles(server)
        sweep(*SMALL, code=3)

    assert 4 == len(server.work)
    assert "HTTP 400: Unknown parameter: top_k" in " ".join(capsys.readouterr().out.split())
