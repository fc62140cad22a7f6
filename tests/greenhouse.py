"""The eleventh domain for tests: a scripted model that authors it, and runs of the pipeline on it."""

import contextlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore import author, launch
from adaexplore.authoring import ideas, pipeline, stages
from adaexplore.authoring.calls import Asker
from adaexplore.authoring.replayed import ReplayedEndpoint

FOLDER = Path(__file__).parent / "authoring"
IDEA = FOLDER / "greenhouse.yaml"
ANSWERS = FOLDER / "answers"
DATE = "2026-11-30"
DOMAIN = "greenhouse_climate"
CALLS = sorted(path.name for path in ANSWERS.iterdir())


def run(folder, *words, answers=ANSWERS, idea=IDEA, code=0):
    """The folder of an author run below `folder`, made with stored answers."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        words = [str(idea), "--replay", str(answers), "--date", DATE, *words]
        assert code == launch.guarded(lambda: author.main(words))
    return folder / "runs" / "author" / DOMAIN


def dataset_bytes(folder):
    """Every file of a run's dataset by name."""
    root = folder / "dataset"
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def attempts(folder):
    """(call, number) of every stored attempt, with when it was written."""
    return {
        (path.parent.name, int(path.stem.removeprefix("attempt-"))): path.stat().st_mtime_ns
        for path in folder.glob("*/attempt-*.json")
    }


def stored(call, number=1, folder=ANSWERS):
    """The answer in a hand-written file."""
    return json.loads((folder / call / f"attempt-{number}.json").read_text())["answer"]


def copied(folder):
    """A copy of the answers that a test may change."""
    return Path(shutil.copytree(ANSWERS, folder))


def write(folder, call, number, answer):
    """Put a hand-written answer into a folder."""
    path = folder / call / f"attempt-{number}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"answer": answer}))


@dataclass
class Shelf:
    """A shelf in memory."""

    objects: dict = field(default_factory=dict)

    def put(self, key, data):
        """Keep an object."""
        self.objects[key] = data

    def get(self, key):
        """The object, or None."""
        return self.objects.get(key)


@dataclass
class Model:
    """The scripted model, which remembers what it was asked."""

    folder: Path = ANSWERS
    asked: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    def connect(self, call, number):
        """An endpoint for one attempt."""
        self.asked.append((call, number))
        endpoint = ReplayedEndpoint(folder=self.folder, call=call, number=number)
        return Watched(endpoint, self.requests)


@dataclass
class Watched:
    """An endpoint whose requests are kept."""

    endpoint: ReplayedEndpoint
    requests: list

    async def ask(self, request):
        """Pass the request on."""
        self.requests.append(request)
        return await self.endpoint.ask(request)


def asker(model, shelf, **more):
    """An asker for the scripted model."""
    return Asker(
        shelf=shelf, connect=model.connect, model=lambda *_: {"kind": "test"},
        prompts=stages.DIGEST, **more,
    )  # fmt: skip


def idea():
    """The scenario idea."""
    return ideas.read(IDEA)


async def grown(source, last=7):
    """The document after some stages, and the documents before each stage."""
    before = [idea().scenario]
    async for _, draft in pipeline.growth(idea(), source, first=1, last=last):
        before.append(draft)
    return before
