"""A text cannot become markup, whatever stands in it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaexplore.reports.markup import element, join, text, visible
from pages_read import Page


@given(st.text(st.characters(exclude_categories=()), max_size=40))
@example("</p><script>alert(1)</script>")
@example("\u202egnp.exe\u2066 \ud800 \x00 \x1b[0m \u2028")
@example('" onload="x')
def test_any_text_comes_back_as_text(said):
    page = Page(element("p", said, title=said).encode())

    assert ["p"] == [e["tag"] for e in page.elements]
    assert visible(said) == page.elements[0]["text"]
    assert {"title": visible(said)} == page.elements[0]["attrs"]


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("a\u202eb", "a<U+202E>b"),
        ("\u2066\u2069\u200f\u061c", "<U+2066><U+2069><U+200F><U+061C>"),
        ("\x00\x1b\r\x85", "<U+0000><U+001B><U+000D><U+0085>"),
        ("half \ud83d", "half <U+D83D>"),
        ("line\n\ttab, 日本語, 👩\u200d🚀", "line\n\ttab, 日本語, 👩\u200d🚀"),
    ],
)
def test_what_steers_is_shown_by_its_number(said, seen):
    assert seen == visible(said)


def test_elements_nest_and_attributes_have_their_names():
    made = element(
        "label", "a < b", element("br"), None, class_="x", for_="y", stroke_width=2, hidden=True, id=None
    )  # fmt: skip

    assert '<label class="x" for="y" stroke-width="2" hidden>a &lt; b<br></label>' == made
    assert "1<b>2</b>" == join(1, None, element("b", 2))
    assert made is text(made)
