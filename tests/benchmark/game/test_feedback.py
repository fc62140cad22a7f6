"""What the agent reads of a utility is what `shown` makes of it, to the last character."""

import json

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.game import feedback
from adaexplore.benchmark.world.utility import ACTIONS

TIES = st.integers(-100, 99).map(lambda k: (k + 0.5) / 100.0)
UTILITY = st.floats(-1.0, 1.0) | TIES | st.sampled_from([0.0, -0.0, -0.004, -0.005, 1.0, -1.0])
PROBE = st.tuples(UTILITY, UTILITY, UTILITY, UTILITY)


@given(st.lists(PROBE, min_size=1, max_size=4))
def test_utilities_are_written_as_shown(utilities):
    ids = [f"probe_{i:03d}" for i in range(len(utilities))]
    bases = [None if i % 2 else "probe_000" for i in range(len(utilities))]
    told = json.dumps(
        [
            {
                "context_id": name,
                "probe_mode": "new_context" if base is None else "existing_context",
                **({} if base is None else {"base_context_id": base}),
                "utilities": dict(zip(ACTIONS, map(feedback.shown, values), strict=True)),
            }
            for name, base, values in zip(ids, bases, utilities, strict=True)
        ]
    )
    assert told == feedback.probes(ids, bases, utilities)
