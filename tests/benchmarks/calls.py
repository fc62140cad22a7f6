"""What a call costs the client: our whole loop, beside other clients in the same minutes.

Ours is everything that playing does for a call: environment, history, governor, request and answer,
a durable journal, the record at the end. The others hold the same conversations and do no more
(`peers/conversations.py`). Figures are CPU time of the client's process over its calls, start-up left
out, and wall time over the ideal, which is the turns of an episode times the latency. Ours is
taken before and after each of theirs, and a ratio is the mean of both over it: a run of ours takes seconds,
and a busy moment of the machine would hit it alone.
"""

import statistics
import tempfile
from pathlib import Path

from tests.benchmarks import installing
from tests.benchmarks.children import HERE, mock, run, told
from tests.benchmarks.rows import Row, measured

POINTS = ((100, 0.0), (100, 0.1), (400, 0.0), (400, 0.1), (400, 0.5))
"""(episodes at once, latency in s) of our loop."""
BESIDE = (100, 0.1)
"""The one of them at which full episodes are compared with other clients."""
MANY = 400
WINDOWS = 4
"""Windows of an episode where all clients have `MANY` under way: some would take many minutes."""
GROWING = (2, 4)
"""Windows of shorter episodes, to tell what an episode costs from what a call does."""
CPU_MS = 0.6
OVER_IDEAL = {(400, 0.5): 1.05, (400, 0.1): 2.0}
RATIOS = {"openai": 1 / 10, "inspect": 1 / 20}
NAMES = {
    "aiohttp": "aiohttp with orjson",
    "litellm": "litellm",
    "openai": "openai SDK",
    "inspect": "inspect-ai, simple loop",
}


def rows(bench):
    """The rows of the group."""
    found = {point: [] for point in POINTS}
    grown = {windows: [] for windows in GROWING}
    full, short, forgetful = {}, {}, []
    peers, skipped = _available(bench)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(bench.repeats):
            bench.say(f"repeat {i + 1} of {bench.repeats}")
            for windows, runs in grown.items():
                runs.append(_ours(POINTS[0], f"protocol.batches={windows}"))
            for point in POINTS:
                bench.say(f"  ours, {_shown(point)}")
                if point == BESIDE:
                    file = _recorded(folder, None)
                    found[point] += _beside(bench, (peers, skipped), file, point, full)
                    forgetful.append(_ours(point, "--keep-nothing"))
                else:
                    found[point].append(_ours(point))
        point, words = (MANY, 0.1), [f"protocol.batches={WINDOWS}"]
        bench.say(f"  ours, {MANY} at once, {WINDOWS} windows")
        file = _recorded(folder, WINDOWS)
        runs = _beside(bench, (peers, skipped), file, point, short, *words)
    yield from _own_rows(found)
    yield from _grown_rows(grown)
    yield from _their_rows(found[BESIDE], full, BESIDE)
    yield from _forgetful_rows(forgetful, full)
    yield from _their_rows(runs, short, point, f", {WINDOWS} windows an episode")
    for peer, why in skipped.items():
        yield Row(key=f"calls.{peer}", what=f"the same through {NAMES[peer]}", note=why)


def _available(bench):
    """(folders of modules by peer that can be driven, reason by peer that cannot)."""
    there, skipped = {}, {}
    for peer in NAMES:
        try:
            bench.say(f"looking for {peer}")
            there[peer] = installing.paths(peer)
        except installing.MissingPeerError as missing:
            skipped[peer] = str(missing)
    return there, skipped


def _ours(point, *words):
    episodes, latency_s = point
    with mock(latency_s) as server:
        found = told([HERE / "drive_ours.py", server.port, episodes, *words])
    return found | {"server_cpu_s": server.told["cpu_s"], "turns": found["calls"] / episodes}


def _recorded(folder, windows):
    """The file of the conversations of episodes with so many windows (None: all)."""
    file = Path(folder) / f"conversations-{windows}.json"
    if not file.exists():
        words = [] if windows is None else [windows]
        run(["-m", "tests.benchmarks.peers.record", file, *words], paths=[HERE.parent.parent])
    return file


def _beside(bench, available, file, point, found, *words):
    """Our runs, between which every peer holds its conversations once.

    Into `found` go pairs (our two runs around it, the peer's); a peer that fails is skipped from then on.
    """
    peers, skipped = available
    ours = [_ours(point, *words)]
    for peer, paths in list(peers.items()):
        bench.say(f"  {peer}, {_shown(point)}")
        try:
            with mock(point[1]) as server:
                script = HERE / "peers" / f"drive_{peer}.py"
                one = told([script, server.port, file, point[0]], paths=paths)
        except RuntimeError as error:
            skipped[peer] = str(error)
            del peers[peer]
            found.pop(peer, None)
        else:
            ours.append(_ours(point, *words))
            found.setdefault(peer, []).append((ours[-2:], one))
    return ours


def _own_rows(found):
    for (episodes, latency_s), runs in found.items():
        point, shown = f"{episodes}x{1000 * latency_s:.0f}", _shown((episodes, latency_s))
        what = f"whole-loop client CPU per call, {shown}"
        yield measured(f"calls.cpu.{point}", what, list(map(cpu_ms, runs)), "ms", CPU_MS)
        if latency_s:
            over = [run["wall_s"] / (run["turns"] * latency_s) for run in runs]
            target = OVER_IDEAL.get((episodes, latency_s))
            yield measured(f"calls.wall.{point}", f"wall over ideal, {shown}", over, "", target)
    costs = [1000 * run["server_cpu_s"] / run["calls"] for run in found[MANY, 0.1]]
    yield measured("calls.server", f"CPU of the mock model per call, {MANY} at once", costs, "ms")


def _grown_rows(grown):
    for windows, runs in grown.items():
        turns = f"{windows} windows ({runs[0]['turns']:g} turns) an episode"
        what = f"whole-loop client CPU per call, {_shown(POINTS[0])}, {turns}"
        yield measured(f"calls.windows.{windows}", what, list(map(cpu_ms, runs)), "ms")


def _forgetful_rows(runs, theirs):
    """What our loop costs without journals: less it cannot cost with them, however cheap they are."""
    shown = _shown(BESIDE)
    what = f"whole-loop client CPU per call, nothing kept, {shown}"
    yield measured("calls.forgetful", what, list(map(cpu_ms, runs)), "ms")
    for peer in RATIOS:
        pairs = zip(runs, theirs.get(peer, ()), strict=False)
        ratios = [cpu_ms(ours) / cpu_ms(one) for ours, (_, one) in pairs]
        if ratios:
            what = f"ours with nothing kept over {NAMES[peer]}, {shown}"
            yield measured(f"calls.forgetful.ratio.{peer}", what, ratios, "")


def _their_rows(ours, theirs, point, further=""):
    shown, few = _shown(point) + further, "short" if further else "full"
    if further:
        what = f"whole-loop client CPU per call, {shown}"
        yield measured(f"calls.{few}.ours", what, list(map(cpu_ms, ours)), "ms")
    for peer, pairs in theirs.items():
        name = f"{NAMES[peer]} {installing.version(peer)}"
        what = f"CPU per call of {name}, conversation alone, {shown}"
        yield measured(f"calls.{few}.{peer}", what, [cpu_ms(one) for _, one in pairs], "ms")
        ratios = [statistics.mean(map(cpu_ms, around)) / cpu_ms(one) for around, one in pairs]
        what = f"ours over {NAMES[peer]}, {shown}"
        yield measured(f"calls.{few}.ratio.{peer}", what, ratios, "", RATIOS.get(peer))


def cpu_ms(run):
    """CPU milliseconds per call of one process."""
    return 1000 * run["cpu_s"] / run["calls"]


def _shown(point):
    episodes, latency_s = point
    return f"{episodes} at once, {1000 * latency_s:.0f} ms"
