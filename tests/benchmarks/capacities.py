"""How many episodes one core drives, from what a call costs.

A client that spends C seconds of processor time on a call and waits L seconds for its answer keeps
L / C calls under way before one core is full. A core that is full makes every call wait for it, so
we count on 70 % of that.
"""

from tests.benchmarks.rows import number

LATENCIES_S = (0.5, 2.0, 10.0)
FULL = 0.7
"""Share of a core that is used at most."""
TURNS = 26
"""Of a whole episode."""
COST = "calls.cpu.400x500"
MEMORY = "memory.active"


def episodes(latency_s, cpu_ms):
    """Concurrent episodes that one core drives."""
    return FULL * latency_s / (cpu_ms / 1000)


def table(rows):
    """The capacity table in Markdown; None if what it needs was not measured."""
    found = {row.key: row.middle for row in rows if row.found}
    if COST not in found:
        return None
    cost = found[COST]
    lines = [
        f"One core at {FULL:.0%}, at {number(cost)} ms a call (400 at once, 500 ms a call):",
        "",
        "| seconds per call | episodes at once | calls per second | their memory |",
        "|---|---|---|---|",
    ]
    for latency_s in LATENCIES_S:
        many = episodes(latency_s, cost)
        memory = f"{_round(many * found[MEMORY] / 1000)} MB" if MEMORY in found else ""
        lines.append(f"| {latency_s:g} | {_round(many)} | {_round(many / latency_s)} | {memory} |")
    return "\n".join([*lines, "", _finished(cost, found)])


def _finished(cost, found):
    """How many episodes end in a second, beside what MLflow takes."""
    told = f"So one core ends {_round(episodes(1.0, cost) / TURNS)} whole episodes of {TURNS} turns a second"
    rates = [
        f"{_round(found[f'mlflow.{key}.ours'])} on {shown}"
        for key, shown in (("sqlite", "SQLite"), ("postgresql", "a server over PostgreSQL"))
        if f"mlflow.{key}.ours" in found
    ]
    return f"{told}; MLflow, beside it, takes {' or '.join(rates)}." if rates else f"{told}."


def _round(value):
    return f"{float(f'{value:.2g}'):,.0f}"
