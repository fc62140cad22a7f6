"""Golden transcripts: the same bytes were asked, and the same play is worth the same.

Rewritten only by `python tests/benchmark/rewrite_golden.py`, with the change that is meant.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from players import drive, points_of, steady

BENCHMARK = Path(__file__).parent.parent
SCRIPT = BENCHMARK / "rewrite_golden.py"
GOLDEN = BENCHMARK / "golden"
NAMES = ("default", "evidence_given", "forced_probe", "stationary", "stationary_iid")


def check(**environment):
    """(exit code, what it printed, whether numpy found any feature to use) of a fresh process."""
    probe = (
        "import runpy, sys, numpy; sys.argv = sys.argv[1:] + ['--check'];"
        "print(numpy.show_config('dicts')['SIMD Extensions'].get('found', []), flush=True);"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(SCRIPT)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    found, _, printed = done.stdout.partition("\n")
    return done.returncode, printed, found, done.stderr


EQUAL = f"equal: {', '.join(NAMES)}\n"


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_golden_transcripts_are_equal_under_another_hash_seed(hash_seed):
    """Two fixed seeds, at least one of which is not this process's: no order comes from hashes."""
    code, printed, _, errors = check(PYTHONHASHSEED=hash_seed)

    assert (0, EQUAL) == (code, printed), errors


def test_golden_transcripts_are_equal_on_a_lesser_processor():
    """With every instruction set switched off that numpy chooses at run time.

    The names differ between releases of numpy (2.4 knows levels such as X86_V4 and passes over the
    single features), so both kinds are named, and the child has to say that it found none.
    """
    single = ["AVX512F", "AVX512CD", "AVX512_SKX", "AVX2", "FMA3"]
    found = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    already = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split()
    features = " ".join(dict.fromkeys([*single, *found, *already]))
    code, printed, left, errors = check(NPY_DISABLE_CPU_FEATURES=features)

    assert "[]" == left
    assert (0, EQUAL) == (code, printed), errors


@pytest.mark.parametrize("name", NAMES)
def test_golden_transcripts_hold_what_they_should(stage, name):
    """Probes, requests, calculations, a repair, an abstention and a fallback: all is in them."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    world = next(w for w in stage.worlds if w.episode.episode_id == golden["episode_id"])
    record = drive(world, stage.settings[name], steady(points_of(world))).record

    assert golden["counts"] == record.to_document()["counts"]
    assert all(
        golden["counts"][k] for k in ("repairs", "fallbacks", "truncations", "calculator_calls")
    )
    assert golden["metrics"]["unanswered"] > 0
    assert golden["metrics"]["unique_probes"] > 0
    assert len(golden["requests"]) == golden["counts"]["turns"]
    assert ["rejected", "truncated"] == sorted({kind for *_, kind in golden["faults"]})
