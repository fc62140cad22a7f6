"""Players for tests: they read an episode as a model does, from the messages, in code of their own.

`steady` does a little of everything, the same way each time. `restless` does anything, legal or not.
Both depend on nothing but the messages (and a seed), unless `restless` is told to count its turns.
"""

import hashlib
import json
import random
import re
from typing import NamedTuple

from adaexplore.benchmark.game.play import play
from adaexplore.benchmark.game.protocol import Message, Protocol, Reply
from adaexplore.benchmark.game.records import EpisodeRecord

QUESTION = '{"relevant_fields":["<field_id>"]'
"""Stands in the assessment's question and nowhere else."""
CARD = "Current state: "
WINDOWS = 12


class Transcript(NamedTuple):
    """Everything that passed between the game and a player."""

    requests: list[tuple[Message, ...]]
    replies: list[Reply]
    record: EpisodeRecord
    schemas: list[dict]

    @property
    def turns(self):
        """(messages, reply) of the main conversation, forks left out."""
        pairs = zip(self.requests, self.replies, strict=True)
        return [(messages, reply) for messages, reply in pairs if not is_fork(messages)]

    @property
    def forks(self):
        """(messages, reply) of the assessments."""
        pairs = zip(self.requests, self.replies, strict=True)
        return [(messages, reply) for messages, reply in pairs if is_fork(messages)]


def drive(world, setting, player, protocol=None, *, recorded=(), most=400):
    """Play one episode; `recorded` replies come before the player's own."""
    playing = play(world, setting, protocol or Protocol())
    requests, replies, schemas, request = [], [], [], next(playing)
    while len(requests) < most:
        requests.append(request.messages)
        schemas.append(request.schema)
        index = len(replies)
        reply = recorded[index] if index < len(recorded) else player(request.messages)
        replies.append(reply if isinstance(reply, Reply) else Reply(text=reply))
        try:
            request = playing.send(replies[-1])
        except StopIteration as stop:
            return Transcript(requests, replies, stop.value, schemas)
    raise AssertionError(f"the episode did not end within {most} turns")


def is_fork(messages):
    return any(m.role == "user" and QUESTION in m.content for m in messages)


def card_of(content):
    """The state card of a user message; None where there is none."""
    start = content.rfind(CARD)
    return json.JSONDecoder().raw_decode(content, start + len(CARD))[0] if start >= 0 else None


class View:
    """What a player may know at one moment."""

    def __init__(self, messages):
        last = messages[-1].content
        self.fields = re.findall(
            r"^- \*\*.*?\*\* \(`(\w+)`, type: ", messages[1].content, re.MULTILINE
        )
        self.forked = is_fork(messages)
        self.rejected = last.startswith('Environment result: {"accepted": false')
        self.card = card_of(last)
        if self.card is None:
            return
        self.pending = self.card["pending_action_batch"]
        self.window = WINDOWS + 1 - self.card["remaining_action_batches"]
        self.probes = [f"probe_{i + 1:03d}" for i in range(self.card["cumulative_probes"])]
        self.available = {t["tool"]: t["available"] for t in self.card["tool_usability"]}


def points_of(world):
    """Legal probe points of an episode: its cases of the other kind, by field id."""
    return [world.numbers(row) for batch in world.episode.iid_cases for row in batch]


def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


def belief(**directions):
    entries = [{"field_id": name, "direction": word} for name, word in directions.items()]
    return json.dumps({"relevant_fields": list(directions), "field_directions": entries})


def submit(view, choose):
    """Answer the pending cases with `choose(case)`, an action index or None."""
    chosen = {case["context_id"]: choose(case) for case in view.pending["cases"]}
    actions = {name: f"action_{k}" for name, k in chosen.items() if k is not None}
    return call("submit_action_batch", batch_id=view.pending["batch_id"], actions=actions)


def by_values(case):
    """An action that depends on a case in an arbitrary way."""
    return round(100 * sum(case["raw_values"].values())) % 4


# -- a little of everything ----------------------------------------------------------------------


def steady(points):
    """Probes, requests, calculates, errs, abstains and is cut off, each in certain windows."""

    def player(messages):
        view = View(messages)
        if view.forked:
            text = _steady_belief(view, len(messages))
        else:
            text = _steady_act(view) if view.pending else _steady_explore(view, points)
        cut = not view.forked and view.window == 10 and not view.pending
        return Reply(
            text=text,
            finish_reason="length" if cut else "stop",
            reasoning="a thought that is never sent back",
            input_tokens=sum(len(m.content) for m in messages),
            cached_tokens=len(messages),
            output_tokens=len(text),
            reasoning_tokens=7,
        )

    return player


def _steady_belief(view, length):
    words = ("positive", "negative")
    return belief(**{name: words[(length + i) % 2] for i, name in enumerate(view.fields[:3])})


def _steady_explore(view, points):
    window = view.window
    if window == 2 and view.available["calculator"]:
        return call("calculator", expressions=["b = a * 2", "a = 1.5", "sqrt(-1)"])
    if window == 4 and not view.rejected:
        return call("probe_batch", probes=[{"values": {"no_such_field": 1}}])
    if window % 3 == 0 and view.available["request_next_batch"]:
        return call("request_next_batch")
    probes = [{"values": points[window]}, {"values": points[window + WINDOWS]}]
    if view.probes:
        probes.append({"base_context_id": view.probes[0], "changes": {}})
        probes.append({"base_context_id": view.probes[-1], "changes": points[-window]})
    return call("probe_batch", probes=probes)


def _steady_act(view):
    window = view.window
    if window == 5 and not view.rejected:
        return "I would rather explain."
    if window == 7 and view.available["calculator"]:
        return call("calculator", expressions=["mean(1, 2)"])
    if window == 9:
        return call("submit_action_batch", batch_id="batch_01", actions={})
    if window == 11 and not view.rejected:
        return f"```json\n{submit(view, by_values)}\n```"
    if window == 5:
        return submit(view, lambda case: None if by_values(case) < 2 else by_values(case))
    return submit(view, by_values)


# -- anything ------------------------------------------------------------------------------------


def restless(seed, points, *, faults=0.3, counting=False, endings=0.0):
    """Any legal or illegal reply.

    Args:
        seed: Of the choices.
        points: Legal probe points.
        faults: Share of replies that are at fault.
        counting: Whether the turn counts too, so that the same messages get different replies.
        endings: Share of replies that the provider ends the episode with.
    """
    turn = 0

    def player(messages):
        nonlocal turn
        turn += counting
        text = "\0".join([str(seed), str(turn), str(len(messages)), messages[-1].content])
        rng = random.Random(hashlib.sha256(text.encode()).hexdigest())
        if rng.random() < endings:
            return Reply(text="", finish_reason=rng.choice(("overflow", "content_filter")))
        view = View(messages)
        if rng.random() < faults:
            return _at_fault(view, rng, points)
        return _legal_belief(view, rng) if view.forked else _legal(view, rng, points)

    return player


def _legal_belief(view, rng):
    fields = rng.sample(view.fields, rng.randint(0, len(view.fields)))
    return belief(**{name: rng.choice(("positive", "negative")) for name in fields})


def _legal(view, rng, points):
    if view.available["calculator"] and rng.random() < 0.2:
        return call("calculator", expressions=rng.choice((["1 + 1"], ["x = y", "y = 2", "1 / 0"])))
    if view.pending:
        return submit(view, lambda case: None if rng.random() < 0.2 else by_values(case))
    if view.available["request_next_batch"] and rng.random() < 0.4:
        return call("request_next_batch")
    return call(
        "probe_batch", probes=[_legal_probe(view, rng, points) for _ in range(rng.randint(1, 16))]
    )


def _legal_probe(view, rng, points):
    if not view.probes or rng.random() < 0.5:
        return {"values": rng.choice(points)}
    changes = rng.choice((rng.choice(points), {}))
    return {"base_context_id": rng.choice(view.probes), "changes": changes}


def bad_probes(point):
    """Probes that are refused, whatever the episode: (probe, part of the reason)."""
    name = next(iter(point))
    return [
        ({"values": {k: v for k, v in point.items() if k != name}}, f"'{name}' is missing"),
        ({"values": {**point, "no_such_field": 1}}, "unknown field 'no_such_field'"),
        ({"values": {**point, name: 10**9}}, "outside the range"),
        ({"values": {**point, name: -(10**9)}}, "outside the range"),
        ({"values": {**point, name: str(point[name])}}, "expected a"),
        ({"values": {**point, name: None}}, "expected a"),
        ({"values": {**point, name: True}}, "expected a"),
        ({"values": {**point, name: [point[name]]}}, "expected a"),
        ({"values": {**point, name: int(point[name]) + 0.001}}, ""),
        ({"values": [point]}, "expected an object of numbers"),
        ({"values": point, "changes": {}}, "expected 'values', or 'base_context_id'"),
        ({"changes": {}}, "expected 'values', or 'base_context_id'"),
        ({}, "expected 'values', or 'base_context_id'"),
        (point, "expected 'values', or 'base_context_id'"),
        ("probe_001", "expected 'values', or 'base_context_id'"),
        ({"base_context_id": "case_001", "changes": {}}, "not the id of an earlier probe result"),
        ({"base_context_id": "probe_999", "changes": {}}, "not the id of an earlier probe result"),
        ({"base_context_id": None, "changes": {}}, "not the id of an earlier probe result"),
        ({"base_context_id": ["\ud800"], "changes": {}}, "not the id of an earlier probe result"),
    ]


def _at_fault(view, rng, points):
    probe = {"values": points[0]}
    bad = rng.choice(bad_probes(points[0]))[0]
    actions = {"case_001": "action_0"}
    return rng.choice(
        (
            "",
            " \n",
            "Let me think.",
            "{",
            '{"tool":"calculator"}',
            "\ud800",
            "word " * 2000,
            "```json\n" + call("request_next_batch") + "\n```",
            belief(),
            belief(no_such_field="positive"),
            call("finish"),
            call("calculator", expressions=["1"]),
            call("calculator", expressions=[]),
            call("request_next_batch"),
            call("request_next_batch", reason="to go on"),
            call("probe_batch", probes=[]),
            call("probe_batch", probes=[probe] * 17),
            call("probe_batch", probes=[probe, bad]),
            call("submit_action_batch", batch_id="batch_99", actions={}),
            call("submit_action_batch", batch_id=view.card and "batch_01", actions=actions),
            call("submit_action_batch", batch_id="batch_01", actions={"\ud800": "\ud800"}),
            Reply(text='{"tool":"probe_', finish_reason="length"),
            Reply(text="", finish_reason="length"),
        )
    )
