"""A sweep through the real command, watched from outside while it plays, and read back afterwards."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import yaml

from adaexplore.authoring import datasets
from adaexplore.backends.vllm import procfs
from adaexplore.benchmark.game.protocol import Message, Protocol, Reply
from adaexplore.benchmark.world.episodes import World
from conftest import read_setting
from players import drive
from serving import played

BATCHES = 2
CONTEXT_TOKENS = 8192
LOOK_S = 0.2
_ADDRESS = re.compile(r"ready after \d+ s at (http://\S+)")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def profile(model, *, words=(), **sections):
    """The file of a profile of the small model, for the folder in which the command runs."""
    document = {
        "kind": "vllm",
        "provider": "local",
        "model": model,
        "weights": {"dtype": played.CPU_DTYPE, "max_model_len": CONTEXT_TOKENS},
        "hosting": {
            "arguments": ["--enforce-eager", *words],
            "environment": played.environment(),
        },
        "limits": {"context_tokens": CONTEXT_TOKENS},
        "patience": {"backoff_cap_s": 5, "attempts": 100},
        **sections,
    }
    path = Path("conf/model/small.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(document))


@dataclass
class Sweep:
    """A launch that runs."""

    process: subprocess.Popen
    output: Path
    metrics: str = ""
    """The server's metrics page as it was last seen."""
    known: int = 0
    """How many replies were journaled before that look, at least."""
    over: Event = field(default_factory=Event)

    def said(self):
        return self.output.read_text()

    def address(self):
        found = _ADDRESS.search(self.said())
        return found and found[1]

    def watch(self):
        """Keep looking at the server's counters."""
        while not self.over.wait(LOOK_S):
            try:
                known = self.replies()
                with _DIRECT.open(f"{self.address()}/metrics", timeout=5) as page:
                    self.metrics, self.known = page.read().decode(), known
            except (urllib.error.URLError, OSError, ValueError):
                pass  # not there yet, or not there any more

    def replies(self):
        """How many are journaled."""
        return sum(len(entries(path)) for path in Path("runs").glob("cells/*/*/*/*.jsonl"))

    def core(self):
        """Process id of the engine's core, which computes."""
        (found,) = [
            found.pid
            for found in procfs.tree(self.process.pid)
            if "EngineCore" in played.words(found.pid)
        ]
        return found

    def wait_until(self, happens):
        deadline = time.monotonic() + 2 * played.PATIENT_S
        while not happens():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(LOOK_S)

    def end(self):
        return self.process.wait(timeout=2 * played.PATIENT_S)


@contextmanager
def launch(python, episodes):
    """A sweep of so many shortened episodes over the small model, ended whatever happens."""
    words = [
        "+grid=smoke", "models=[small]", "settings=[default]", "dataset=lite", "tracking=none",
        f"dataset.limit={episodes}", "backend.concurrency=2",
        f"protocol.batches={BATCHES}", "protocol.regenerations=0",
        "serving=vllm_process", f"serving.python={python}", "serving.gpus=[]",
        "serving.port_start=8500", f"serving.ready_timeout_s={played.PATIENT_S:g}", "name=real",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(played.ROOT / "platform"), "COLUMNS": "300"}
    command = [sys.executable, "-m", "adaexplore.launch", *words]
    output = Path("output")
    with output.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    sweep = Sweep(process=process, output=output)
    watcher = Thread(target=sweep.watch)
    watcher.start()
    try:
        yield sweep
    finally:
        sweep.over.set()
        watcher.join()
        process.terminate()
        process.wait()


# -- what was stored ---------------------------------------------------------------------------


def entries(journal):
    """The whole lines of a journal, its header left out."""
    whole = journal.read_text().rpartition("\n")[0].splitlines()
    return [json.loads(line) for line in whole[1:]]


@dataclass(frozen=True)
class Episode:
    """A finished episode, and what its stored replies make of it when they are played again."""

    world: World
    entries: list[dict]
    stored: dict
    requests: list[tuple[Message, ...]]
    again: dict

    @property
    def replies(self):
        return [Reply(**entry["reply"]) for entry in self.entries]

    @property
    def failures(self):
        """Failed attempts at each reply."""
        return [len(entry["meta"]["attempts"]) for entry in self.entries]


def episodes():
    """Every episode with a result, by the lowest attempt that has one."""
    worlds = {w.episode.episode_id: w for w in datasets.load("adaexplore-v1", "lite").worlds}
    found = {}
    for result in sorted(Path("runs").glob("cells/*/*/attempt-*/result.json")):
        own = entries(result.parent / "journal.jsonl")
        world = worlds[result.parent.parent.name]
        replies = [Reply(**entry["reply"]) for entry in own]
        protocol = Protocol(batches=BATCHES, regenerations=0)
        transcript = drive(world, read_setting("default"), None, protocol, recorded=replies)
        episode = Episode(
            world=world,
            entries=own,
            stored=json.loads(result.read_text())["record"],
            requests=transcript.requests,
            again=json.loads(json.dumps(transcript.record.to_document())),
        )
        found.setdefault(world.episode.episode_id, episode)
    return found


def tokens(python, model, requests):
    """Token ids of each request, by the served model's own tokenizer."""
    script = Path(__file__).parent / "tokens.py"
    asked = [[message._asdict() for message in messages] for messages in requests]
    done = subprocess.run(
        [python, "-W", "ignore", script, model],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
