"""The page of an episode as a document: well formed, quiet, and deaf to what a model wrote."""

import re
from dataclasses import replace

import pytest

from adaexplore.experiments import turns
from adaexplore.reports.episodes import conversations, figures, pages
from pages_read import Page, cell_of, kept, page_of

HOSTILE = '</pre></details></main><script>document.title = "owned"</script><img src=x onerror=alert(1)> \u202e\u2066 \ud800 \x00'  # noqa: E501


def hostile_replies(played):
    """The replies of a run, each spoilt, and thoughts and errors as bad."""
    long = "x" * 200_000
    return [
        replace(r, text=f"{r.text}{HOSTILE}{long if i == 1 else ''}", reasoning=HOSTILE)
        if i < 6 else r
        for i, r in enumerate(played.replies)
    ]  # fmt: skip


@pytest.fixture
def spoilt(store, world, settings, protocol, played):
    replies = hostile_replies(played)
    followed = turns.follow(world, settings["default"], protocol, replies)
    used = replies[: len(followed.turns)]
    cell = cell_of(settings["default"], protocol, model="some.body-1")
    return kept(store, cell, world, used, followed.record if followed.ended else None)


def test_what_a_model_wrote_stays_text(spoilt):
    data = pages.page_of(spoilt, report=None, others=[HOSTILE])
    page, calm = Page(data), {"script": 1, "img": 0, "main": 1, "iframe": 0}

    assert calm == {tag: len(page.all(tag)) for tag in calm}
    assert not [name for e in page.elements for name in e["attrs"] if name.startswith("on")]
    assert HOSTILE.split(" ", maxsplit=1)[0] in page.section("conversation")
    assert b"<U+202E>" not in data
    assert "<U+202E><U+2066> <U+D800> <U+0000>" in page.section("conversation")
    assert not set("\u202e\u2066\x00") & set(data.decode())


def test_an_endless_reply_is_clipped_and_says_so(spoilt):
    text = page_of(spoilt).section("conversation")
    full = len(spoilt.exchanges[1].reply.text)

    assert f"[... {full - conversations.CLIP} more characters; the journal holds them all]" in text
    assert "x" * (conversations.CLIP + 1) not in text
    assert len(pages.page_of(spoilt, report=None)) < 1_500_000


# -- the page as such --------------------------------------------------------------------------


def test_the_same_run_is_the_same_bytes(run):
    assert pages.page_of(run, report=None) == pages.page_of(run, report=None)


def test_a_page_leads_to_its_report_and_names_the_others(run):
    page = page_of(run, report="../r.html", others=["a/default/0", "b/default/1"])

    assert [("../r.html", "report of sweep mine")] == [
        (e["attrs"]["href"], e["text"]) for e in page.all("a") if "#" not in e["attrs"]["href"]
    ]
    assert "a/default/0, b/default/1" in page.all("dl")[0]["text"]
    key = pages.key("mine", run.cell, "e")
    up = len(pages.UP.split("/")) - 1
    assert pages.report_key("mine").rpartition("/")[0] == "/".join(key.split("/")[: -up - 1])


def test_names_and_references_of_the_page_hold(run):
    page = page_of(run)
    ids = [e["attrs"]["id"] for e in page.elements if "id" in e["attrs"]]
    wanted = [e["attrs"]["href"][1:] for e in page.all("a") if e["attrs"]["href"].startswith("#")]
    wanted += [e["attrs"]["aria-labelledby"] for e in page.all("section")]

    assert len(ids) == len(set(ids))
    assert set(wanted) <= set(ids)
    for figure in page.all("svg"):
        assert figure["attrs"].get("aria-hidden") == "true" or figure["attrs"]["aria-label"]
    for box in page.all("div", "scroll"):
        assert ("0", "region") == (box["attrs"]["tabindex"], box["attrs"]["role"])
        assert box["attrs"]["aria-label"]
    assert ["h1"] == [e["tag"] for e in page.elements if e["tag"] == "h1"]


def test_a_page_asks_nothing_of_anybody(run):
    data = pages.page_of(run, report=None).decode()
    policy = next(
        e["attrs"]["content"] for e in Page(data).all("meta")
        if e["attrs"].get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip

    assert policy.startswith("default-src 'none';")
    assert not re.search(r"https?://|url\(|@import", data)
    assert not {"src", "srcset", "action"} & {
        name for e in Page(data).elements for name in e["attrs"]
    }


def test_labels_at_the_end_of_lines_keep_apart():
    assert [10, 24, 50] == figures.spread([10, 11, 50], 14)
    assert [38, 24, 10] == figures.spread([12, 11, 10], 14)
    assert [] == figures.spread([], 14)
