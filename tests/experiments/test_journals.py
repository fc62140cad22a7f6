"""A journal survives being cut anywhere and is never guessed at when it is damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.game.protocol import Reply
from adaexplore.errors import StoreError
from adaexplore.experiments import journals
from adaexplore.models.endpoints import Answer

HEADER = journals.header("cell", "episode", "digest")
replies = st.lists(
    st.builds(
        Reply,
        text=st.text(),
        finish_reason=st.sampled_from(["stop", "length"]),
        input_tokens=st.integers(0, 10**6),
    ),
    max_size=5,
)


def journal(answers):
    lines = [journals.line(HEADER)]
    lines += [journals.line(journals.entry(i, a)) for i, a in enumerate(answers)]
    return lines


def answers(texts):
    return [Answer(reply=Reply(text=text), seconds=0.5) for text in texts]


@given(replies)
def test_what_is_written_is_read(given_replies):
    data = b"".join(journal([Answer(reply=reply, seconds=1.0) for reply in given_replies]))
    found = journals.read(data, "here")

    assert given_replies == found.replies
    assert HEADER == {key: found.header[key] for key in HEADER}
    assert not found.torn


def test_lone_surrogates_survive():
    """A model can send half a character; it must not stop the journal."""
    text = "\ud800 and \udfff"
    found = journals.read(b"".join(journal(answers([text]))), "here")

    assert [text] == [reply.text for reply in found.replies]


def test_cut_at_every_byte_keeps_every_whole_line():
    lines = journal(answers(["one", "two\nlines", "drei ä"]))
    data = b"".join(lines)
    for cut in range(len(data) + 1):
        whole = 0
        while whole < len(lines) and len(b"".join(lines[: whole + 1])) <= cut:
            whole += 1
        found = journals.read(data[:cut], "here")
        if whole == 0:
            assert found is None
        else:
            assert whole - 1 == len(found.entries)
            assert (cut != len(b"".join(lines[:whole]))) == found.torn


def test_no_flipped_byte_ever_gives_a_wrong_reply():
    """At the end it counts as torn; anywhere else the journal is refused."""
    lines = journal(answers(["one", "two", "three"]))
    data = b"".join(lines)
    refused = 0
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1
        try:
            found = journals.read(bytes(flipped), "here")
        except StoreError:
            refused += 1
            continue
        kept = [] if found is None else [reply.text for reply in found.replies]
        assert kept in (["one", "two"], ["one"])
        assert found.torn

    assert refused >= len(data) - len(lines[-1]) - 1


def test_zeros_at_the_end_are_torn():
    """What a lost power can leave behind."""
    data = b"".join(journal(answers(["one"]))) + b"\x00" * 100

    assert ["one"] == [reply.text for reply in journals.read(data, "here").replies]


def test_a_newer_version_is_named():
    data = journals.line({**HEADER, "journal": 2})

    with pytest.raises(StoreError, match="expected journal version 1, got 2"):
        journals.read(data, "here")
