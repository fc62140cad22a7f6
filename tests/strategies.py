"""Hypothesis strategies that the rooms of the tests share; each generates legal values only."""

from itertools import permutations, product

from hypothesis import strategies as st

from adaexplore.benchmark.game.assessment import Assessment
from adaexplore.benchmark.game.records import CaseRecord, Counts, EpisodeRecord, ProbeRecord
from adaexplore.benchmark.world.calibration import Calibration
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.benchmark.world.rules import Rule, Slot
from adaexplore.benchmark.world.utility import utilities

# -- the world: values, rules, calibrations ----------------------------------------------------

FIELD_IDS = ("a", "b", "c", "d", "e")
"""Fields that rules and constraints of the strategies may refer to."""


def dyadic(low=-16, high=16):
    """Multiples of 1/16: sums and products of two are exact in floating point, ties are common."""
    return st.integers(low, high).map(lambda k: k / 16.0)


def points():
    """One normalised case: a value on [-1, 1] for each of `FIELD_IDS`."""
    return st.fixed_dictionaries({name: dyadic() for name in FIELD_IDS})


@st.composite
def rules(draw, families=FAMILIES):
    """A rule of one of the families over three of `FIELD_IDS`, with dyadic parameters."""
    family = draw(st.sampled_from(families))
    additive = family == "additive_aggregation"
    slots = tuple(
        Slot(
            field_id=field_id,
            direction=draw(st.sampled_from((1, -1))),
            weight=draw(dyadic(1, 10)) if additive else 0.0,
            threshold=0.0 if additive else draw(dyadic(-10, 10)),
        )
        for field_id in draw(st.permutations(FIELD_IDS))[:3]
    )
    lexicographic = family == "lexicographic_priority"
    return Rule(family=family, slots=slots, band=draw(dyadic(1, 10)) if lexicographic else 0.0)


@st.composite
def calibrations(draw):
    """Strictly rising quartiles at least 1/16 apart."""
    q25, q50, q75 = sorted(draw(st.sets(dyadic(-32, 32), min_size=3, max_size=3)))
    return Calibration(q25=q25, q50=q50, q75=q75)


# -- the world: constraints --------------------------------------------------------------------

ATOMS = st.sampled_from(FIELD_IDS).map(lambda name: {"field": name})
CONSTANTS = st.one_of(
    st.integers(-1000, 1000), st.sampled_from((0, 0.1, 0.3, -2.5, 1e-07, 1e10)),
).map(lambda value: {"const": value})  # fmt: skip


def _arithmetic(args):
    chains = st.builds(
        lambda op, args: {"op": op, "args": args},
        st.sampled_from(("add", "mul")),
        st.lists(args, min_size=2, max_size=8) | st.lists(args, min_size=2, max_size=3),
    )
    pairs = st.builds(
        lambda op, args: {"op": op, "args": args},
        st.sampled_from(("sub", "div")),
        st.lists(args, min_size=2, max_size=2),
    )
    return chains | pairs


TERMS = ATOMS | CONSTANTS | _arithmetic(ATOMS)
NUMERICS = TERMS | _arithmetic(TERMS)


def _combined(args):
    negations = args.map(lambda arg: {"op": "not", "arg": arg})
    joined = st.builds(
        lambda op, args: {"op": op, "args": args},
        st.sampled_from(("and", "or")),
        st.lists(args, min_size=2, max_size=8) | st.lists(args, min_size=2, max_size=2),
    )
    return negations | joined


COMPARISONS = st.builds(
    lambda op, left, right: {"op": op, "left": left, "right": right},
    st.sampled_from(("le", "lt", "ge", "gt", "eq")),
    NUMERICS,
    NUMERICS,
)
CLAUSES = COMPARISONS | _combined(COMPARISONS)
IMPLICATIONS = st.builds(
    lambda antecedent, consequent: {"op": "implies", "if": antecedent, "then": consequent},
    CLAUSES,
    CLAUSES,
)
EXPRESSIONS = CLAUSES | _combined(CLAUSES) | IMPLICATIONS
"""Every tree that the grammar of constraints allows, over `FIELD_IDS`."""

GRID_ROWS = st.fixed_dictionaries(
    {
        name: st.sampled_from((0, 10, 20, 30, -10, -30, 100, 700)) | st.integers(-999999, 999999)
        for name in FIELD_IDS
    }
)
"""A case in hundredths; small values, so that equality and division by zero are common."""

# -- scores: records of played episodes --------------------------------------------------------

VISIBLE = tuple(f"f{i}" for i in range(8))
"""Visible fields of the generated records."""


_SCORES = [k / 40 for k in range(-40, 41) if k not in (-20, 0, 20)]
"""Scores of cases: none on a boundary, as in every dataset."""


def _case(number):
    """One draw makes a case: drawing each part by itself is slow."""
    number, batch = divmod(number, 12)
    score, action = divmod(number, 5)
    return CaseRecord(
        context_id=f"case_{number:03d}",
        batch_number=batch + 1,
        action=None if action == 4 else action,
        utilities=utilities(_SCORES[score]),
    )


CASE_RECORDS = st.integers(0, 12 * 5 * len(_SCORES) - 1).map(_case)
"""One evaluation case in any batch, at any score, answered or not."""


def _probe(number):
    return ProbeRecord(
        context_id=f"probe_{number:03d}",
        batch_number=number % 12 + 1,
        base_context_id=None,
        row=(number // 12, *range(7)),
        utilities=utilities(0.0),
    )


PROBE_RECORDS = st.integers(0, 12 * 6 - 1).map(_probe)
"""One probe at one of six points, so that points are met again."""


def _assessment(phase, status, directions):
    kept = directions if status == "completed" else {}
    return Assessment(phase=phase, status=status, directions=kept)


DIRECTIONS = st.dictionaries(st.sampled_from(VISIBLE), st.sampled_from((1, -1)), max_size=5)
"""What an assessment may report."""
ASSESSMENTS = {
    phase: st.builds(
        _assessment,
        st.just(phase),
        st.sampled_from(("completed", "completed", "rejected", "truncated")),
        DIRECTIONS,
    )
    for phase in ("pre", "post")
}
"""An assessment of a phase, completed or not."""


def _true_rules(fields, signs):
    first, second, third, incoming = fields
    before = dict(zip((first, second, third), signs, strict=True))
    return before, {incoming: signs[0], second: -signs[1], third: signs[2]}


TRUE_RULES = st.builds(
    _true_rules,
    st.sampled_from(list(permutations(VISIBLE, 4))),
    st.sampled_from(list(product((1, -1), repeat=3))),
)
"""Directions (before, after) a change: one field hands over its slot, another turns."""


def _episode_record(drifts, truth, change_batch, parts, asked):
    cases, probes, pre, post = parts
    phases = ("pre", "post") if drifts else ("post",)
    return EpisodeRecord(
        episode_id="e1",
        domain_id="ward",
        family="additive_aggregation",
        setting="default" if drifts else "stationary",
        drifts=drifts,
        change_batch=change_batch,
        visible_fields=VISIBLE,
        status="completed",
        hidden_digest="",
        observation_digest="",
        truth=dict(zip(("pre", "post"), truth, strict=True)) if drifts else {"post": truth[0]},
        cases=tuple(cases),
        probes=tuple(probes),
        assessments=tuple(a for a in (pre, post) if a.phase in phases and a.phase in asked),
        faults=(),
        counts=Counts(),
    )


_PARTS = st.tuples(
    st.lists(CASE_RECORDS, min_size=1, max_size=8),
    st.lists(PROBE_RECORDS, max_size=8),
    ASSESSMENTS["pre"],
    ASSESSMENTS["post"],
)
_ASKED = st.sampled_from((*[("pre", "post")] * 4, ("pre",), ("post",), ()))


def _records(drifts):
    return st.builds(_episode_record, drifts, TRUE_RULES, st.integers(5, 8), _PARTS, _ASKED)


EPISODE_RECORDS = _records(st.booleans())
"""A record with few cases and probes; the truth as the contract has it."""
DRIFTING_RECORDS = _records(st.just(True))
STATIONARY_RECORDS = _records(st.just(False))
