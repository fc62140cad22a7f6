"""Calls: what is stored is never asked again, a round has one repair, and a crash loses nothing."""

import asyncio
import json
from dataclasses import replace

import pytest

import greenhouse
from adaexplore.authoring import calls, shapes
from adaexplore.authoring.calls import Call
from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import StageError
from adaexplore.models.endpoints import Answer, ModelError

CALL = Call(
    name="01-number",
    contract="Name an even number.",
    payload={"least": 2},
    schema=shapes.record(number=shapes.integer()),
    check=lambda answer: [f"number: {answer['number']} is odd"] if answer["number"] % 2 else [],
)


class Scripted:
    """A model that gives one reply after another."""

    def __init__(self, *texts):
        """Take the replies; an exception is raised instead."""
        self.texts = list(texts)
        self.requests = []
        self.numbers = []

    def connect(self, _call, number):
        """Always the same model."""
        self.numbers.append(number)
        return self

    async def ask(self, request):
        """The next reply."""
        self.requests.append(request)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return Answer(reply=Reply(text=text), seconds=0.5, served_by={"server": "here"})


def number(value):
    return json.dumps({"number": value})


def answer(model, shelf, **more):
    return asyncio.run(greenhouse.asker(model, shelf, **more).answer(CALL))


def test_a_good_answer_is_asked_once():
    """And the record of the attempt says everything that was sent and came."""
    model, shelf = Scripted(number(4)), greenhouse.Shelf()

    assert {"number": 4} == answer(model, shelf) == answer(model, shelf)
    assert 1 == len(model.requests)
    (stored,) = (calls.unsealed(data) for data in shelf.objects.values())
    assert ["01-number/attempt-1.json"] == list(shelf.objects)
    assert calls.request_digest(model.requests[0]) == stored["request_sha256"]
    assert [list(m) for m in model.requests[0].messages] == [
        [m["role"], m["content"]] for m in stored["messages"]
    ]
    assert {"kind": "test"} == stored["model"]
    assert number(4) == stored["reply"]["text"]
    assert {"seconds": 0.5, "attempts": [], "served_by": {"server": "here"}} == stored["meta"]


def test_a_round_is_an_answer_and_one_repair():
    """Two faulty attempts end the run; the next run begins a new round, without the old one."""
    shelf = greenhouse.Shelf()
    first = Scripted(number(1), number(3), number(2))
    with pytest.raises(StageError, match="01-number: number: 3 is odd"):
        answer(first, shelf)
    second = Scripted(number(5), number(6))

    assert {"number": 6} == answer(second, shelf)
    assert [1, 2] == first.numbers
    assert [3, 4] == second.numbers
    assert CALL.opening() == second.requests[0].messages
    assert "number: 5 is odd" in second.requests[1].messages[-1].content


def test_a_run_may_have_more_rounds():
    """As a replay has: as many as are stored."""
    model = Scripted(number(1), number(3), number(5), number(8))

    assert {"number": 8} == answer(model, greenhouse.Shelf(), rounds=2)


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_an_unreachable_model_loses_nothing(broken):
    """Whenever it fails, the next run goes on at the very attempt; no reply is asked twice."""
    texts = [number(1), number(3), number(5), number(6)]
    shelf = greenhouse.Shelf()
    first = Scripted(*texts[: broken - 1], ModelError("no route"))
    with pytest.raises(StageError, match=r"no route|is odd"):
        answer(first, shelf, rounds=2)
    second = Scripted(*texts[broken - 1 :])

    assert {"number": 6} == answer(second, shelf, rounds=2)
    assert [broken, *range(broken + 1, 5)] == second.numbers


def test_faults_before_a_failure_are_told():
    """What was wrong comes first, then why it could not be mended."""
    with pytest.raises(StageError) as failed:
        answer(Scripted(number(1), ModelError("no route")), greenhouse.Shelf())

    assert ["number: 1 is odd", "attempt 2 could not be made: no route"] == failed.value.faults
    assert 3 == failed.value.exit_code


def test_without_rounds_nothing_is_asked():
    """A stage that may not ask takes stored answers only."""
    model, shelf = Scripted(number(4)), greenhouse.Shelf()

    with pytest.raises(StageError, match="it has no stored answer"):
        answer(model, shelf, rounds=0)
    answer(model, shelf)
    assert {"number": 4} == answer(Scripted(), shelf, rounds=0)


def test_a_stored_answer_to_another_request_does_not_count():
    """The same call with another payload is another question."""
    shelf, other = greenhouse.Shelf(), replace(CALL, payload={"least": 3})
    answer(Scripted(number(2)), shelf)
    asker = greenhouse.asker(Scripted(number(4)), shelf)

    assert {"number": 4} == asyncio.run(asker.answer(other))


def test_any_reply_can_be_stored():
    """Also one that UTF-8 proper has no bytes for, and an empty one."""
    shelf = greenhouse.Shelf()
    odd = Scripted('{"number": "\ud800\x00é"}', "")
    with pytest.raises(StageError):
        answer(odd, shelf)
    first, second = (calls.unsealed(data) for data in shelf.objects.values())

    assert '{"number": "\ud800\x00é"}' == first["reply"]["text"]
    assert second["faults"]


def test_every_cut_of_a_file_is_noticed():
    """A prefix of an attempt is never an attempt."""
    shelf = greenhouse.Shelf()
    answer(Scripted(number(4)), shelf)
    (data,) = shelf.objects.values()

    assert calls.unsealed(data) is not None
    assert all(calls.unsealed(data[:end]) is None for end in range(len(data) - 1))
    assert calls.unsealed(None) is None


def test_a_repair_with_many_faults_quotes_some():
    """And says how many more there are."""
    found = [f"fault {n}" for n in range(calls.MAX_QUOTED + 5)]
    text = calls.after(CALL, CALL.opening(), Reply(text="x"), found).messages[-1].content

    assert f"found {len(found)} faults" in text
    assert f"- fault {calls.MAX_QUOTED - 1}\n- and 5 more" in text
