"""The page of a dataset's statistics: the same numbers as text, tables and pictures.

Everything is made from summaries of episodes and from records of reference agents, so the page is
remade by the command that it names and never edited. The look of the pictures is that of the sweep's
figures: few inks, direct labels.
"""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from adaexplore.authoring import summaries
from adaexplore.authoring.summaries import EpisodeSummary
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.scores.estimates import Estimate
from adaexplore.benchmark.world.fields import FAMILIES
from adaexplore.experiments import tables
from adaexplore.experiments.figures import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Summaries = Mapping[str, Sequence[EpisodeSummary]]
"""Summaries of episodes by split."""
ACTION_LIMITS: Final = (0.15, 0.35)
"""Share of a phase's cases for which each action is best, over a dataset."""
SHORT: Final[dict[str, str]] = {family: family.split("_")[0] for family in FAMILIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """How reference agents fare: records by model, and what they played."""

    split: str
    records: Mapping[str, Sequence[EpisodeRecord]]


# -- tables ------------------------------------------------------------------------------------


def composition(found: Sequence[EpisodeSummary]) -> list[list[str]]:
    """Rows of episodes by domain and family, with totals; the first row names the columns."""
    families = list(summaries.by_family(found))
    rows = [["domain", *(SHORT[f] for f in families), "all"]]
    for domain, group in summaries.by_domain(found).items():
        counts = [sum(s.family == family for s in group) for family in families]
        rows.append([domain, *map(str, counts), str(len(group))])
    totals = [len(group) for group in summaries.by_family(found).values()]
    return [*rows, ["all", *map(str, totals), str(len(found))]]


def flips(found: Sequence[EpisodeSummary]) -> list[list[str]]:
    """Rows of mean flip rates by family, with the range of the natural one."""
    rows = [["family", "episodes", "natural", "lowest", "highest", "sampled"]]
    for name, group in (*summaries.by_family(found).items(), ("all", list(found))):
        natural = [s.natural_flip_rate for s in group]
        sampled = float(np.mean([s.sampled_flip_rate for s in group]))
        numbers = (float(np.mean(natural)), min(natural), max(natural), sampled)
        rows.append([SHORT.get(name, name), str(len(group)), *map(_percent, numbers)])
    return rows


def actions(found: Sequence[EpisodeSummary]) -> list[list[str]]:
    """Rows of the share of cases for which each action is best, by phase."""
    head = ["phase", *(f"action_{i}" for i in range(summaries.ACTION_COUNT))]
    shares = {phase: summaries.action_shares(found, phase) for phase in summaries.PHASES}
    return [head, *([phase, *map(_percent, found)] for phase, found in shares.items())]


def changes(found: Sequence[EpisodeSummary]) -> list[list[str]]:
    """Rows of episodes by change batch."""
    counts = summaries.change_batches(found)
    return [["change after batch", *map(str, counts)], ["episodes", *map(str, counts.values())]]


def difficulty(found: Difficulty) -> list[list[str]]:
    """Rows of calibrated accuracy by model and family, with 95 % intervals."""
    rows = [["agent", *(SHORT[family] for family in FAMILIES), "all"]]
    for model, records in found.records.items():
        cells = [_estimate(model, records, family) for family in (*FAMILIES, None)]
        rows.append([model, *map(_shown, cells)])
    return rows


def _shown(e: Estimate) -> str:
    """Value with its interval, or alone where too few episodes say nothing of spread."""
    value, low, high = (f"{round(number, 2) + 0.0:.2f}" for number in (e.value, e.low, e.high))
    return value if math.isnan(e.low) else f"{value} ({low} to {high})"


def _estimate(model: str, records: Sequence[EpisodeRecord], family: str | None) -> Estimate:
    ca = next(m for m in metrics.MAIN if m.name == "ca")
    group = [r for r in records if family in (None, r.family)]
    return tables.estimate(ca, group, "dataset page", model, str(family))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


# -- the page ----------------------------------------------------------------------------------


def page(name: str, found: Summaries, played: Difficulty | None) -> str:
    """The page as Markdown; pictures are looked for in `images/` beside it."""
    main = next(iter(found.values()))
    made = _MADE.format(name=name)
    blocks = [f"# Statistics of {name}", made]
    for split, group in found.items():
        blocks += [f"## Split {split}: {len(group)} episodes", _markdown(composition(group))]
        blocks += [_markdown(changes(group)), _markdown(flips(group)), _markdown(actions(group))]
    blocks += [_pictures(next(iter(found)), len(main))]
    if played is not None:
        blocks += [_DIFFICULTY.format(split=played.split), _markdown(difficulty(played))]
        blocks += ["![Difficulty by family](images/dataset-difficulty.png)"]
    return "\n\n".join(blocks) + "\n"


def _pictures(split: str, count: int) -> str:
    return _PICTURES.format(split=split, count=count)


_MADE: Final = """\
Made by `adaexplore dataset stats {name} --page docs`; not edited by hand. What the dataset is and how
it was made is told in the [datasheet](datasheet.md)."""

_PICTURES: Final = """\
## How it looks

All pictures are of split `{split}`, {count} episodes.

A case *flips* when the drift changes its best action. The natural rate is that of a fresh population
of each episode, the sampled rate that of the cases drawn without control of flips; the evaluation
cases hold half by design. The search accepts natural rates from 25 % to 85 %.

![Flip rates by family](images/dataset-flips.png)

Each action is best for about a quarter of the cases, before and after the drift, so no constant
answer pays. The band is what the dataset must keep to as a whole: 15 % to 35 %.

![Action balance by family and phase](images/dataset-actions.png)

Raw evidence has another shape in each family (above); calibration puts its quartiles before the drift
on the boundaries between actions. After the drift the mapping stays, so the score's distribution may
move (below).

![Evidence and scores by family](images/dataset-evidence.png)"""

_DIFFICULTY: Final = """\
## Difficulty, as the reference agents see it

Calibrated accuracy (0 is chance, 1 the oracle) on split `{split}` under `default`, with 95 % intervals
over episodes."""


def _markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


# -- pictures ----------------------------------------------------------------------------------


def pictures(found: Sequence[EpisodeSummary], played: Difficulty | None) -> dict[str, bytes]:
    """PNG files by name."""
    made = {
        "dataset-flips.png": _flip_picture(found),
        "dataset-actions.png": _action_picture(found),
        "dataset-evidence.png": _evidence_picture(found),
    }
    if played is not None:
        made["dataset-difficulty.png"] = _difficulty_picture(played)
    return made


def _flip_picture(found: Sequence[EpisodeSummary]) -> bytes:
    figure, (axes,) = _canvas(6.0, 3.2, 1)
    for (family, group), colour in zip(summaries.by_family(found).items(), PALETTE, strict=False):
        share = np.arange(1, len(group) + 1) / len(group)
        natural = sorted(s.natural_flip_rate for s in group)
        sampled = sorted(s.sampled_flip_rate for s in group)
        axes.step(natural, share, where="post", color=colour, linewidth=1.8, label=SHORT[family])
        axes.step(sampled, share, where="post", color=colour, linewidth=0.9, linestyle=":")
    for limit in (0.25, 0.85):
        axes.axvline(limit, color="#999999", linewidth=0.8, linestyle="--")
    axes.set_xlabel("flip rate of an episode (solid: natural, dotted: sampled)", fontsize=9)
    axes.set_ylabel("share of episodes", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    return _png(figure)


def _action_picture(found: Sequence[EpisodeSummary]) -> bytes:
    figure, panels = _canvas(8.0, 3.0, len(summaries.PHASES))
    groups = summaries.by_family(found)
    for axes, phase in zip(panels, summaries.PHASES, strict=True):
        axes.axhspan(*ACTION_LIMITS, color="#eeeeee", zorder=0)
        for number, (family, group) in enumerate(groups.items()):
            at = np.arange(summaries.ACTION_COUNT) + 0.2 * (number - 1.5)
            shares = summaries.action_shares(group, phase)
            axes.bar(at, shares, width=0.18, color=PALETTE[number], label=SHORT[family])
        axes.set_title(f"{phase} the drift", fontsize=10)
        axes.set_xticks(range(4), [f"action_{i}" for i in range(4)])
    panels[0].set_ylabel("share of cases where it is best", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return _png(figure)


def _evidence_picture(found: Sequence[EpisodeSummary]) -> bytes:
    groups = summaries.by_family(found)
    figure, panels = _canvas(8.0, 3.8, len(groups), rows=2)
    for number, (family, group) in enumerate(groups.items()):
        top, bottom = panels[number], panels[len(groups) + number]
        evidence = np.concatenate([s.evidence for s in group])
        top.hist(evidence, bins=60, density=True, color=PALETTE[number])
        top.set_title(SHORT[family], fontsize=10)
        top.set_xlabel("raw evidence", fontsize=8)
        for phase, style in zip(summaries.PHASES, ("-", ":"), strict=True):
            scores = np.concatenate([s.scores[phase] for s in group])
            bottom.hist(
                scores, bins=40, range=(-1, 1), density=True, histtype="step",
                color=PALETTE[number], linestyle=style,
            )  # fmt: skip
        for boundary in (-0.5, 0.0, 0.5):
            bottom.axvline(boundary, color="#999999", linewidth=0.8, linestyle="--")
        bottom.set_xlabel("score (solid: before, dotted: after)", fontsize=8)
    return _png(figure)


def _difficulty_picture(played: Difficulty) -> bytes:
    figure, panels = _canvas(9.0, 0.9 + 0.35 * len(played.records), len(FAMILIES))
    names = list(played.records)[::-1]
    for axes, family in zip(panels, FAMILIES, strict=True):
        for row, model in enumerate(names):
            e = _estimate(model, played.records[model], family)
            axes.plot([e.low, e.high], [row, row], color=PALETTE[0], linewidth=1.5, alpha=0.5)
            axes.plot([e.value], [row], "o", color=PALETTE[0], markersize=5)
        axes.axvline(0.0, color="#999999", linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.set_xlim(-0.3, 1.05)
        axes.set_title(SHORT[family], fontsize=10)
        axes.set_xlabel("calibrated accuracy", fontsize=8)
    return _png(figure)


def _canvas(
    width: float, height: float, columns: int, *, rows: int = 1
) -> tuple["Figure", list["Axes"]]:
    """A figure and its panels, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (only when drawn)
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100, metadata={"Software": None})
    return buffer.getvalue()


def all_tables(found: Sequence[EpisodeSummary]) -> Iterable[tuple[str, list[list[str]]]]:
    """(title, rows) of every table of a split."""
    yield "episodes by domain and family", composition(found)
    yield "change batch", changes(found)
    yield "flip rates, means over episodes", flips(found)
    yield "share of cases where each action is best", actions(found)
