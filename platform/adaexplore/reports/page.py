"""The skeleton of a page: one HTML file that needs nothing else, on any screen and on paper.

Style and script are put into the page, and its policy forbids everything else: no request leaves it,
and no script runs but this one, whatever the text in it says. Without a script everything is still
there; it only switches light and dark and opens what is folded.
"""

import base64
import hashlib
from importlib import resources
from typing import Final

from adaexplore.reports.markup import Markup, element, join

REPORT: Final = "report.html"
"""The page of a report, beside its other files."""
_SCRIPT: Final = "page.js"
_STYLE: Final = "page.css"


def page(title: str, head: Markup, body: Markup, *, style: str = "", script: str = "") -> bytes:
    """A page as a file.

    Args:
        title: In the window's bar.
        head: What stands at the top: the heading, and where one may go from here.
        body: Sections.
        style: Rules of this kind of page, beside those of all pages.
        script: What this kind of page does, beside what all pages do.
    """
    script, rules = asset(_SCRIPT) + script, asset(_STYLE) + style
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src '{_hash(script)}'"
    meta = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(rules)),
    )
    main = (
        element("a", "to the content", class_="skip", href="#content"),
        element("header", head, theme_button()),
        element("main", body, id="content"),
        element("script", Markup(script)),
    )
    document = element("html", element("head", *meta), element("body", *main), lang="en")
    return join(Markup("<!DOCTYPE html>\n"), document, Markup("\n")).encode()


def theme_button() -> Markup:
    """Switches between light and dark; hidden where no script runs."""
    return element("button", "light / dark", type="button", id="theme", class_="tool", hidden=True)


def section(name: str, heading: str, *parts: object) -> Markup:
    """A part of the page that can be linked to."""
    title = element("h2", heading, id=f"{name}-title")
    return element("section", title, *parts, id=name, aria_labelledby=f"{name}-title")


def scrolling(what: str, *parts: object) -> Markup:
    """A box that scrolls by itself where its content is wider than the screen, by keyboard too."""
    return element("div", *parts, class_="scroll", tabindex=0, role="region", aria_label=what)


def asset(name: str) -> str:
    """The text of a file of this package."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
