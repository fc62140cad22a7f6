"""Calibration: raw evidence of any family onto the common score scale.

The quartiles of the pre-change population land on -0.5, 0 and 0.5, so the four actions are about
equally often best before the change whatever the family. The mapping is fitted once and stays fixed
after the change. Source: paper, calibration; the form is a decision of ours (see `score`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from adaexplore.benchmark.world.fields import Floats

QUANTILE_METHOD: Final = "linear"
"""numpy's name of the quantile method (Hyndman and Fan type 7), stated with every dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Evidence quartiles of the pre-change population, strictly rising."""

    q25: float
    q50: float
    q75: float

    def __post_init__(self) -> None:
        """Refuse quartiles that do not rise strictly (ValueError)."""
        if not self.q25 < self.q50 < self.q75:
            raise ValueError(
                f"expected strictly rising quartiles, got {self.q25}, {self.q50}, {self.q75}"
            )


def fit(evidence: Floats) -> Calibration:
    """Calibration of an evidence sample, shape (n,); ValueError if its quartiles coincide."""
    q25, q50, q75 = (
        round(float(q), 12)
        for q in np.quantile(evidence, (0.25, 0.5, 0.75), method=QUANTILE_METHOD)
    )
    return Calibration(q25=q25, q50=q50, q75=q75)


def score(calibration: Calibration, evidence: Floats) -> Floats:
    """Intervention scores in [-1, 1], same shape as `evidence`.

    Decision: one line below the median and one above it, each through its quartile, clipped;
    the paper says piecewise linear and leaves the pieces open.
    """
    centred = evidence - calibration.q50
    width = np.where(
        centred < 0.0, calibration.q50 - calibration.q25, calibration.q75 - calibration.q50
    )
    return np.minimum(np.maximum(0.5 * centred / width, -1.0), 1.0)
