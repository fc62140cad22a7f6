"""Make the README's picture of one episode: `python docs/make_images.py`.

Two reference agents play the same episode of the packaged dataset; probes and calibrated accuracy
are drawn by batch, with the drift in the middle.
"""

from pathlib import Path

from matplotlib.figure import Figure

from adaexplore import configure
from adaexplore.authoring import datasets
from adaexplore.benchmark.game import agents
from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Protocol, Reply
from adaexplore.benchmark.game.records import EpisodeRecord
from adaexplore.benchmark.scores import metrics
from adaexplore.benchmark.world.episodes import World

AGENTS = {"one_factor": "#efb118", "scientist": "#4269d0"}
EPISODE = 0
TARGET = Path(__file__).parent / "images" / "episode.png"


def played(world: World, agent: str) -> EpisodeRecord:
    """Record of one agent on one episode under default."""
    (setting,) = configure.sweep(["+grid=smoke", "settings=[default]"]).settings
    playing = play(world, setting, Protocol())
    request = next(playing)
    while True:
        try:
            request = playing.send(Reply(text=agents.AGENTS[agent].reply(request.messages, 0)))
        except StopIteration as stop:
            record: EpisodeRecord = stop.value
            return record


def accuracies(record: EpisodeRecord) -> list[float]:
    """Calibrated accuracy by batch."""
    sums = [
        metrics.accuracy_sums(c for c in record.cases if c.batch_number == n) for n in range(1, 13)
    ]
    return [float(metrics.calibrated_accuracy_value(s)) for s in sums]


def main() -> None:
    """Draw and save the picture."""
    world = datasets.load("first").worlds[EPISODE]
    change = world.episode.change_batch
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    for shift, (agent, colour) in enumerate(AGENTS.items()):
        record = played(world, agent)
        batches = range(1, 13)
        probes = [sum(p.batch_number == n for p in record.probes) for n in batches]
        top.bar([n + 0.36 * (shift - 0.5) for n in batches], probes, width=0.34, color=colour)
        bottom.plot(batches, accuracies(record), color=colour, marker="o", label=agent)
    for ax in (top, bottom):
        ax.axvline(change + 0.5, color="#666666", linestyle="--", linewidth=1)
        ax.spines[["top", "right"]].set_visible(False)
    top.set_ylabel("probes")
    bottom.axhline(0, color="#999999", linestyle=":", linewidth=1)
    bottom.axhline(1, color="#999999", linestyle=":", linewidth=1)
    bottom.annotate("oracle", (12.15, 1), va="center", fontsize=8, annotation_clip=False)
    bottom.annotate("chance", (12.15, 0), va="center", fontsize=8, annotation_clip=False)
    bottom.annotate("the rule drifts,\nunannounced", (change + 0.65, 0.76), fontsize=8)
    bottom.set_ylabel("calibrated accuracy")
    bottom.set_xlabel("batch")
    bottom.set_xticks(range(1, 13))
    bottom.legend(frameon=False, loc="lower left")
    figure.savefig(TARGET, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
