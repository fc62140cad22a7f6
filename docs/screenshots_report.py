"""Make the README's pictures of a report: `python docs/screenshots_report.py`.

The reference agents play a sweep into a folder of its own, whose launch writes the report, and the
system's Chromium opens it: on a wide screen, on a tablet in the dark, and on a phone.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from adaexplore import launch

CHROMIUM = "/usr/bin/chromium"
IMAGES = Path(__file__).parent / "images"
MOST_BYTES = 150_000
WORDS = (
    "+grid=diagnostics", "models=[random,feedback_only,one_factor,scientist,oracle]",
    "dataset.limit=12", "tracking=none", "name=reference-agents",
)  # fmt: skip
VIEWS = {
    "report-wide": (1400, 1000, "light", "content"),
    "report-dark": (900, 1000, "dark", "curves"),
    "report-phone": (390, 800, "light", "drop_and_recovery"),
}
"""Name of a picture -> width, height, colours, and the place that is at its top."""


def take(page: Page, height: int, place: str) -> bytes:
    """A picture from a place of the page on."""
    top = 0 if place == "content" else page.locator(f"#{place}").evaluate("e => e.offsetTop")
    page.evaluate("y => window.scrollTo({top: y, behavior: 'instant'})", top)
    page.wait_for_timeout(300)
    return page.screenshot(
        clip={"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}
    )


def save(data: bytes, path: Path) -> None:
    """Keep a picture, with fewer colours, within the size."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    method = Image.Quantize.FASTOCTREE  # keeps the few strong colours, which the default dulls
    picture.quantize(256, method=method, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path}: expected at most {MOST_BYTES} bytes, got {path.stat().st_size}")


def main() -> None:
    """Play, and take all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        launch.launch([*WORDS, f"runs_dir={folder}"])
        shoot((Path(folder) / "sweeps/reference-agents/report/report.html").as_uri())


def shoot(address: str) -> None:
    """Take all pictures of a report."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (width, height, scheme, place) in VIEWS.items():
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page.goto(address)
            save(take(page, height, place), IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
