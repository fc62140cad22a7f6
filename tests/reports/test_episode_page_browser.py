"""The page of an episode in a real browser: quiet, still, readable at every width, and by keyboard."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from adaexplore.backends.folder import FolderStore
from adaexplore.experiments import turns
from adaexplore.reports.episodes import pages
from browsing import Opened, chromium
from pages_read import cell_of, kept
from players import drive, points_of, steady

pytestmark = pytest.mark.pages
ATTACK = (
    "</pre></details><script>document.title = 'owned'</script>"
    "<img src=http://127.0.0.1:9/x onerror=\"document.title = 'owned'\"><meta http-equiv=refresh content=0>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """The system's Chromium."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def calm(tmp_path_factory, worlds, settings, protocol):
    """A whole run's page, as a file."""
    return written(tmp_path_factory.mktemp("calm"), worlds[0], settings, protocol, "")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, worlds, settings, protocol):
    """The page of a run whose every text is an attack."""
    return written(tmp_path_factory.mktemp("hostile"), worlds[0], settings, protocol, ATTACK)


def written(folder, world, settings, protocol, attack):
    setting = settings["default"]
    played = drive(world, setting, steady(points_of(world)))
    said = [replace(r, text=r.text + (attack if i < 4 else ""), reasoning=f"thought {attack}")
            for i, r in enumerate(played.replies)]  # fmt: skip
    followed = turns.follow(world, setting, protocol, said)
    replies = said[: len(followed.turns)]
    record = followed.record if followed.ended else None
    run = kept(FolderStore(folder / "runs"), cell_of(setting, protocol), world, replies, record)
    (folder / "page.html").write_bytes(pages.page_of(run, report=None))
    return (folder / "page.html").as_uri()


@pytest.mark.parametrize("width", [390, 900, 1400])
def test_the_page_is_quiet_and_fits_at_any_width(browser, calm, width):
    with Opened(browser, calm, width=width) as opened:
        opened.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        inner = opened.page.evaluate("document.documentElement.scrollWidth")

        assert width == inner
        assert [] == opened.said
        assert [calm] == opened.asked


def test_an_attack_does_nothing(browser, hostile):
    with Opened(browser, hostile) as opened:
        opened.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        opened.page.wait_for_load_state("networkidle")
        shown = opened.page.locator("#conversation").inner_text()

        assert "owned" not in opened.page.title()
        assert "<script>document.title = 'owned'</script>" in shown
        assert 0 == opened.page.locator("img").count()
        assert [] == opened.said
        assert [hostile] == opened.asked


def test_a_script_that_got_in_would_not_run(browser, calm):
    """The policy stands behind the escaping."""
    with Opened(browser, calm) as opened:
        opened.page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'document.title = 1';"
            " document.body.append(s); const i = document.createElement('img');"
            " i.src = 'http://127.0.0.1:9/x'; document.body.append(i); }"
        )

        opened.until(lambda: opened.failed and len(opened.said) >= 2)  # they are told afterwards

        assert "1" != opened.page.title()
        assert 2 == sum("Content Security Policy" in line for line in opened.said)
        assert [("http://127.0.0.1:9/x", "csp")] == opened.failed


def test_everything_is_reached_by_keyboard(browser, calm):
    with Opened(browser, calm) as opened:
        page = opened.page
        page.keyboard.press("Tab")
        assert "to the content" == page.evaluate("document.activeElement.textContent")
        page.locator("#conversation .tool").focus()
        page.keyboard.press("Enter")
        assert 0 == page.locator("#conversation details:not([open])").count()
        page.keyboard.press("Enter")
        assert 0 == page.locator("#conversation details[open]").count()
        page.locator("#conversation summary").first.focus()
        page.keyboard.press("Enter")
        assert 1 == page.locator("#conversation details[open]").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(browser, calm, scheme):
    ground = "getComputedStyle(document.body).backgroundColor"
    with Opened(browser, calm, color_scheme=scheme) as opened:
        first = opened.page.evaluate(ground)
        opened.page.locator("#theme").click()
        second = opened.page.evaluate(ground)
        opened.page.locator("#theme").click()

        light, dark = (first, second) if scheme == "light" else (second, first)
        assert "rgb(251, 250, 248)" == light
        assert "rgb(21, 24, 28)" == dark
        assert first == opened.page.evaluate(ground)


def test_paper_is_white_whatever_the_screen(browser, calm):
    with Opened(browser, calm, color_scheme="dark") as opened:
        opened.page.locator("#theme").click()
        opened.page.locator("#theme").click()
        opened.page.emulate_media(media="print", color_scheme="dark")

        ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert "rgb(255, 255, 255)" == ground
        assert not opened.page.locator("#theme").is_visible()


def test_without_a_script_everything_is_there(browser, calm):
    with Opened(browser, calm, java_script_enabled=False) as opened:
        assert opened.page.locator("#cases table").is_visible()
        assert not opened.page.locator("#theme").is_visible()
        opened.page.locator("#conversation summary").first.click()
        assert opened.page.locator("#conversation pre").first.is_visible()


def test_names_of_figures_and_tables_reach_a_screen_reader(browser, calm):
    with Opened(browser, calm) as opened:
        for role, name in (
            ("img", "Cumulative utility by window"),
            ("img", "The course of the episode by window"),
            ("table", "Chosen against best, window by window"),
            ("region", "The hidden rule"),
            ("navigation", "Sections"),
        ):
            assert 1 == opened.page.get_by_role(role, name=name, exact=True).count(), name
