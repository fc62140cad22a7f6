"""The report in a real browser: quiet, alone, readable at every width, sortable by hand and by keyboard."""

import pytest

import synthetic
from adaexplore.reports import report
from adaexplore.reports.page import REPORT
from browsing import Opened, chromium

pytestmark = pytest.mark.pages
HOSTILE = (
    "<img src=http://127.0.0.1:9/x onerror=\"document.title='owned'\">"
    "<script>document.title='owned'</script>"
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A report with a model whose name is an attack."""
    models = (*synthetic.MODELS[:4], synthetic.Model(HOSTILE, 0.6, 0.4))
    made = report.build(synthetic.evidence(models, episodes=12))
    folder = tmp_path_factory.mktemp("report")
    for path, data in report.files(made):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(data)
    return (folder / REPORT).as_uri()


@pytest.mark.parametrize("width", [390, 900, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_quiet_alone_and_fits(browser, address, width, scheme):
    with Opened(browser, address, width=width, color_scheme=scheme) as opened:
        opened.page.wait_for_load_state("networkidle")

        assert width == opened.page.evaluate("document.documentElement.scrollWidth")
        assert [] == opened.said
        assert [address] == opened.asked
        assert "owned" not in opened.page.title()


def column(page, number):
    cells = page.locator(f"#main .sortable tbody tr > :nth-child({number})")
    return [cell.get_attribute("data-v") or cell.inner_text() for cell in cells.all()]


def test_a_click_sorts_up_and_another_down(browser, address):
    with Opened(browser, address, width=1400) as opened:
        head = opened.page.locator("#main .sortable thead th").nth(4)
        head.locator("button").click()
        values = [float(v) for v in column(opened.page, 5)]
        assert sorted(values) == values
        assert "ascending" == head.get_attribute("aria-sort")
        head.locator("button").click()
        assert sorted(values, reverse=True) == [float(v) for v in column(opened.page, 5)]
        assert "descending" == head.get_attribute("aria-sort")


def test_undefined_values_stay_at_the_end(browser, address):
    """Re-probes are undefined without a drift."""
    with Opened(browser, address, width=1400) as opened:
        button = opened.page.locator("#main .sortable thead th").nth(6).locator("button")
        for _ in range(2):
            button.click()
            values = column(opened.page, 7)
            defined = [v for v in values if v]
            assert len(defined) == 15
            assert [*defined, *[""] * 10] == values


def test_the_keyboard_sorts_too(browser, address):
    with Opened(browser, address, width=1400) as opened:
        button = opened.page.locator("#main .sortable thead th").nth(1).locator("button")
        button.focus()
        opened.page.keyboard.press("Enter")
        names = column(opened.page, 2)
        assert sorted(names) == names
        opened.page.keyboard.press("Space")
        assert sorted(names, reverse=True) == column(opened.page, 2)
        assert opened.page.evaluate("document.activeElement.tagName") == "BUTTON"
        held = opened.page.locator("th[aria-sort]")
        assert 1 == held.count()


def test_the_first_tab_leads_past_what_is_repeated(browser, address):
    with Opened(browser, address) as opened:
        opened.page.keyboard.press("Tab")
        assert "#content" == opened.page.evaluate("document.activeElement.getAttribute('href')")


def test_tables_scroll_inside_their_box(browser, address):
    with Opened(browser, address, width=390) as opened:
        box = opened.page.locator("#main .box")
        wide, seen = box.evaluate("b => [b.scrollWidth, b.clientWidth]")
        assert wide > seen
        assert seen <= 390
        assert "0" == box.get_attribute("tabindex")


def contrast(page, selector):
    """Ratio of luminances of a text and the ground of the page (WCAG 2)."""
    return page.evaluate(
        """selector => {
      const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const one = light(getComputedStyle(document.querySelector(selector)).color);
      const other = light(getComputedStyle(document.body).backgroundColor);
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05); }""",
        selector,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_the_ground(browser, address, scheme):
    with Opened(browser, address, color_scheme=scheme) as opened:
        for selector in (
            ".reading",
            ".question",
            ".note",
            ".ci",
            "#main th button",
            "figcaption",
            ".files a",
        ):
            assert 4.5 <= contrast(opened.page, selector), selector


def test_the_theme_turns_and_figures_with_it(browser, address):
    ink = "getComputedStyle(document.querySelector('.panels svg text')).fill"
    with Opened(browser, address, color_scheme="light") as opened:
        before = opened.page.evaluate(ink)
        opened.page.locator("#theme").click()
        assert before != opened.page.evaluate(ink)
        assert [] == opened.said


def test_paper_is_white_whatever_the_screen_is(browser, address):
    with Opened(browser, address, color_scheme="dark") as opened:
        opened.page.emulate_media(media="print")
        ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert "rgb(255, 255, 255)" == ground
        assert not opened.page.locator("nav.contents").is_visible()
