"""The environment as a state machine: legal and illegal calls in any order, under every setting.

A small model beside it knows what the contract says of windows, tools and totals; after each call the
card has to agree with the model, and after each refusal the environment is what it was.
"""

import json

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from adaexplore.benchmark.game import prompts, replies
from adaexplore.benchmark.game.environment import Environment
from adaexplore.benchmark.game.protocol import Protocol
from adaexplore.benchmark.game.replies import RejectedError
from players import bad_probes, points_of

NAMES = ("default", "evidence_given", "forced_probe", "full", "stationary", "stationary_iid")
ACTIONS = tuple(f"action_{k}" for k in range(4))


class Machine(RuleBasedStateMachine):
    """One episode; `stage` and `setting` are set on a subclass for each setting."""

    stage = setting = None

    @initialize(index=st.integers(0, 31), window=st.integers(1, 12))
    def start(self, index, window):
        """Begin in some window, the ones before it left unanswered without a call."""
        self.world = self.stage.worlds[index % len(self.stage.worlds)]
        self.points = points_of(self.world)
        self.environment = Environment(self.world, self.setting, Protocol(max_probes=4))
        self.window, self.pending, self.done, self.probed = 1, False, False, False
        self.calculated, self.bases, self.answered = False, [], {}
        for _ in range(2 * (window - 1)):
            self.fall_back()

    # -- calls ---------------------------------------------------------------------------------

    def send(self, tool, arguments, *, legal):
        """Apply a call; legal ones are carried out, others refused without a trace."""
        text = json.dumps({"tool": tool, "arguments": arguments})
        call = replies.read_call(text, parsing="strict", max_chars=100_000)
        before = self.snapshot()
        repeated = tool == "calculator" and self.calculated
        if not self.done:
            self.calculated = tool == "calculator"
        if legal and not repeated and not self.done:
            return self.environment.apply(call)
        with pytest.raises(RejectedError) as caught:
            self.environment.apply(call)
        assert caught.value.reasons
        "".join(caught.value.reasons).encode()
        assert before == self.snapshot()
        return None

    def snapshot(self):
        """All there is of the environment but the calculator's availability."""
        parts = {k: v for k, v in vars(self.environment).items() if k != "_after_calculator"}
        state = {
            k: id(v) if k.startswith("_") else list(v) if isinstance(v, list) else v
            for k, v in parts.items()
        }
        card = self.environment.card()
        card["tool_usability"] = [t for t in card["tool_usability"] if t["tool"] != "calculator"]
        return state, card

    @rule(extra=st.sampled_from(({}, {}, {"reason": "to go on"})))
    def request(self, extra):
        hidden = not self.pending and not self.done
        legal = hidden and not extra and self.setting.probing != "forced"
        self.send("request_next_batch", extra, legal=legal)
        self.pending |= legal

    @rule(data=st.data(), count=st.integers(1, 4), spoil=st.sampled_from((False, False, True)))
    def probe(self, data, count, spoil):
        """Fresh and varied probes; spoilt by one bad one, or by a base that is not there yet."""
        fresh = st.sampled_from(self.points[:6]).map(lambda point: {"values": point})
        bases = st.sampled_from([name for name, _ in self.bases] or ["probe_001"])
        varied = st.builds(
            lambda base, changes: {"base_context_id": base, "changes": changes},
            bases,
            st.just({}) | st.sampled_from(self.points[:3]),
        )
        probes = [data.draw(varied if self.bases and i % 2 else fresh) for i in range(count)]
        if spoil:
            bad = data.draw(st.sampled_from([p for p, _ in bad_probes(self.points[0])]))
            ahead = {"base_context_id": f"probe_{len(self.bases) + 1:03d}", "changes": {}}
            probes.insert(
                data.draw(st.integers(0, count)), data.draw(st.sampled_from((bad, ahead)))
            )
        legal = not self.pending and not spoil
        result = self.send("probe_batch", {"probes": probes}, legal=legal)
        if result is not None:
            assert not self.probed
            results = json.loads(result["results"])
            assert count == len(results)
            known = dict(self.bases)
            for asked, got in zip(probes, results, strict=True):
                base = asked.get("base_context_id")
                row = asked.get("values") or {**known[base], **asked["changes"]}
                assert base == got.get("base_context_id")
                self.bases.append((got["context_id"], row))
            self.pending = self.probed = True

    @rule(number=st.sampled_from((0, 5, 17)))
    def probe_too_many_or_too_few(self, number):
        self.send("probe_batch", {"probes": [{"values": self.points[0]}] * number}, legal=False)

    @rule(data=st.data(), spoil=st.sampled_from((None, None, "batch", "case", "action", "keys")))
    def submit(self, data, spoil):
        """Any actions for any of the cases; spoilt in one of four ways."""
        cases = [f"case_{8 * (self.window - 1) + i:03d}" for i in range(1, 9)]
        actions = data.draw(st.dictionaries(st.sampled_from(cases), st.sampled_from(ACTIONS)))
        arguments = {"batch_id": f"batch_{self.window:02d}", "actions": actions}
        if spoil == "batch":
            arguments["batch_id"] = f"batch_{self.window + 1:02d}"
        elif spoil == "case":
            actions[data.draw(st.sampled_from(("case_000", "case_097", "probe_001", "\ud800")))] = (
                "action_0"
            )
        elif spoil == "action":
            actions[cases[0]] = data.draw(st.sampled_from(("action_4", "", None, 0, "\ud800", {})))
        elif spoil == "keys":
            arguments["note"] = "done"
        legal = self.pending and spoil is None
        self.send("submit_action_batch", arguments, legal=legal)
        if legal:
            self.complete({name: ACTIONS.index(action) for name, action in actions.items()})

    @rule(expressions=st.sampled_from((["1 + 1"], ["x = y", "y = 1"], ["1 / 0"], [], [1], "1")))
    def calculate(self, expressions):
        legal = isinstance(expressions, list) and bool(expressions) and expressions != [1]
        result = self.send("calculator", {"expressions": expressions}, legal=legal)
        assert result is None or len(expressions) == len(result["results"])

    @precondition(lambda self: not self.done)
    @rule()
    def skip(self):
        self.fall_back()

    def fall_back(self):
        """Reveal without probing, or end the batch unanswered."""
        self.environment.skip()
        if self.pending:
            self.complete({})
        else:
            self.pending = True

    def complete(self, chosen):
        for i in range(1, 9):
            name = f"case_{8 * (self.window - 1) + i:03d}"
            self.answered[name] = (self.window, chosen.get(name))
        self.done = self.window == 12
        self.window += not self.done
        self.pending = self.probed = False

    # -- what holds after every call -----------------------------------------------------------

    @invariant()
    def card_agrees(self):
        card = self.environment.card()
        pending = card["pending_action_batch"]
        usable = {t["tool"]: t["available"] for t in card["tool_usability"]}
        reasons = {t["tool"]: t["reason"] for t in card["tool_usability"]}

        assert (0 if self.done else 13 - self.window) == card["remaining_action_batches"]
        assert self.pending == (pending is not None)
        assert len(self.bases) == card["cumulative_probes"]
        assert {
            "probe_batch": not self.done and not self.pending,
            "request_next_batch": not self.done
            and not self.pending
            and self.setting.probing != "forced",
            "submit_action_batch": self.pending,
            "calculator": not self.done and not self.calculated,
        } == usable
        assert {tool: reason is None for tool, reason in reasons.items()} == usable

    @invariant()
    def pending_batch_is_the_window_s(self):
        pending = self.environment.card()["pending_action_batch"]
        if pending is not None:
            iid = self.setting.cases == "iid"
            batches = self.world.episode.iid_cases if iid else self.world.episode.cases
            rows = [self.world.numbers(row) for row in batches[self.window - 1]]
            names = [f"case_{8 * (self.window - 1) + i:03d}" for i in range(1, 9)]

            assert (f"batch_{self.window:02d}", self.window) == (
                pending["batch_id"],
                pending["batch_number"],
            )
            assert list(zip(names, rows, strict=True)) == [
                (case["context_id"], case["raw_values"]) for case in pending["cases"]
            ]

    @invariant()
    def card_is_written_as_it_is(self):
        """Also where its text was made before, for another agent."""
        card = self.environment.card()

        assert f"Current state: {json.dumps(card, ensure_ascii=False)}" == prompts.state(card)

    @invariant()
    def cases_are_worth_what_the_rule_says(self):
        for result in self.environment.results[-8:]:
            drifted = self.setting.drifts and result.batch_number > self.world.episode.change_batch
            rule = self.world.episode.post if drifted else self.world.episode.pre
            iid = self.setting.cases == "iid"
            batches = self.world.episode.iid_cases if iid else self.world.episode.cases
            row = batches[result.batch_number - 1][int(result.context_id[5:]) % 8 - 1]

            assert self.world.utilities(rule, [row]) == [result.utilities]

    @invariant()
    def totals_agree(self):
        """Results are the answers in order; the shown total is their rounded sum."""
        results = self.environment.results
        earned = sum(r.utilities[r.action] for r in results if r.action is not None)

        assert [(name, *answer) for name, answer in self.answered.items()] == [
            (r.context_id, r.batch_number, r.action) for r in results
        ]
        assert abs(earned - self.environment.card()["cumulative_utility"]) <= 0.005 + 1e-9
        assert self.environment.cumulative_utility == round(self.environment.cumulative_utility, 2)

    @invariant()
    def probes_agree(self):
        """Ids count on, rows are what was asked for, at most one window's probes came together."""
        probes = self.environment.probes.records()
        windows = [probe.batch_number for probe in probes]

        assert [name for name, _ in self.bases] == [
            f"probe_{i + 1:03d}" for i in range(len(probes))
        ]
        assert [name for name, _ in self.bases] == [probe.context_id for probe in probes]
        assert [row for _, row in self.bases] == [self.world.numbers(probe.row) for probe in probes]
        assert sorted(windows) == windows
        assert all(windows.count(window) <= 4 for window in set(windows))


@pytest.mark.parametrize("name", NAMES)
def test_any_calls_in_any_order(stage, name):
    """A refused call leaves no trace; the card, the totals and the windows are what calls made."""
    machine = type("Machine", (Machine,), {"stage": stage, "setting": stage.settings[name]})
    run_state_machine_as_test(
        machine,
        settings=hypothesis_settings(max_examples=25, stateful_step_count=30),
    )
