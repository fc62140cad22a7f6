"""Golden transcripts: one shipped episode for each setting, played by the steady player.

`python tests/benchmark/rewrite_golden.py` writes `golden/<setting>.json` anew; nothing else does.
Do so only when what an agent is told, or what it is worth, was meant to change; the difference then
belongs into the commit. With `--check` it compares instead and prints what differs.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

import yaml  # noqa: E402 (the line above finds the modules beside it)

from adaexplore.authoring import datasets  # noqa: E402
from adaexplore.benchmark.game.settings import Setting  # noqa: E402
from adaexplore.benchmark.scores import metrics  # noqa: E402
from players import drive, points_of, steady  # noqa: E402

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = TESTS.parent / "conf" / "setting"


def documents():
    """The golden document of each setting by name, made now."""
    worlds = datasets.load("first").worlds
    made = {}
    for number, path in enumerate(sorted(SETTINGS.glob("*.yaml"))):
        setting = Setting(name=path.stem, **yaml.safe_load(path.read_text(encoding="utf-8")))
        made[path.stem] = document(worlds[3 + 4 * number], setting)
    return made


def document(world, setting):
    """Everything of one episode that has to stay: what was asked, and what the play was worth."""
    transcript = drive(world, setting, steady(points_of(world)))
    record = transcript.record
    values = {m.name: metrics.value(m, [record]) for m in (*metrics.MAIN, *metrics.BESIDE)}
    return {
        "episode_id": record.episode_id,
        "family": record.family,
        "requests": [
            digest([[list(message) for message in messages], schema])
            for messages, schema in zip(transcript.requests, transcript.schemas, strict=True)
        ],
        "replies": [digest(reply.text) for reply in transcript.replies],
        "record": digest(record.to_document()),
        "counts": record.to_document()["counts"],
        "faults": [[f.batch_number, f.decision, f.kind] for f in record.faults],
        "metrics": {name: None if math.isnan(value) else value for name, value in values.items()},
    }


def digest(value):
    """Digest of plain data, to sixteen places."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def stored():
    """The golden documents as they stand in the folder."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))}


def differences(name, kept, made):
    """What differs in the golden document of a setting, one line each."""
    before, after = kept.get(name, {}), made.get(name, {})
    for key in sorted({**before, **after}):
        old, new = before.get(key), after.get(key)
        if old != new and key in ("requests", "replies") and old and new:
            pairs = list(zip(old, new, strict=False))
            at = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
            yield f"{name}: {key}: differ from number {at} of {len(old)} on, now {len(new)}"
        elif old != new:
            yield f"{name}: {key}: expected {old}, got {new}"


def main():
    """Write or check; the exit code says whether a check found a difference."""
    made = documents()
    if "--check" in sys.argv[1:]:
        kept = stored()
        found = [
            line for name in sorted({**kept, **made}) for line in differences(name, kept, made)
        ]
        print("\n".join(found) if found else f"equal: {', '.join(made)}")
        return int(bool(found))
    for name, content in made.items():
        (GOLDEN / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
