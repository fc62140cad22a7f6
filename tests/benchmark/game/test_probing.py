"""The log of probes says what a plain list of records would, whatever was asked."""

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.game.probing import ProbeLog
from adaexplore.benchmark.game.records import ProbeRecord

VALUES = st.floats(-0.34, 0.98)
ROW = st.tuples(st.integers(-10_000, 10_000), st.integers(0, 100))
PROBE = st.tuples(ROW, st.tuples(VALUES, VALUES, VALUES, VALUES))
CALLS = st.lists(st.lists(PROBE, min_size=1, max_size=5), max_size=6)


@given(CALLS)
def test_its_records_are_those_of_a_list(calls):
    log, plain = ProbeLog(), []
    for window, call in enumerate(calls, start=1):
        bases = [plain[-1].context_id if plain and i % 2 else None for i in range(len(call))]
        rows, utilities = zip(*call, strict=True)
        ids = log.add(window, bases, rows, utilities)
        for name, base, (row, worth) in zip(ids, bases, call, strict=True):
            plain.append(
                ProbeRecord(
                    context_id=name,
                    batch_number=window,
                    base_context_id=base,
                    row=row,
                    utilities=worth,
                )
            )
    assert [f"probe_{i + 1:03d}" for i in range(len(plain))] == [p.context_id for p in plain]
    assert (tuple(plain), len(plain)) == (log.records(), len(log))
    assert [(p.context_id, p.row) for p in plain] == [log.known(p.context_id) for p in plain]


def test_an_episode_knows_its_own_probes_only():
    longer, shorter = ProbeLog(), ProbeLog()
    longer.add(1, [None] * 3, [(1,), (2,), (3,)], [(0.0,) * 4] * 3)
    shorter.add(1, [None], [(9,)], [(0.0,) * 4])
    assert ("probe_003", (3,)) == longer.known("probe_003")
    strange = ("probe_003", "probe_000", "probe_1", "probe_0001", "case_001", "")
    assert [None] * len(strange) == [shorter.known(name) for name in strange]
