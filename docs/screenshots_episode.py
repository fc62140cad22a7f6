"""Make the README's picture of an episode page: `python docs/screenshots_episode.py`.

A reference agent plays a small sweep into a folder of its own, `adaexplore show` writes the page, and
the system's Chromium opens it. The picture ends where the cases begin.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from adaexplore import launch, sweep_verbs

CHROMIUM = "/usr/bin/chromium"
TARGET = Path(__file__).parent / "images" / "episode-page.png"
MOST_BYTES = 150_000
WIDTH = 1000
EPISODE = "v1-002"
WORDS = ("+grid=main", "models=[one_factor]", "settings=[default]", "dataset.limit=2",
         "tracking=none", "backend.processes=0", "name=shown")  # fmt: skip


def page(folder: Path) -> Path:
    """The page of one episode, played anew."""
    out = folder / "page.html"
    launch.launch([*WORDS, f"runs_dir={folder / 'runs'}"])
    sweep_verbs.show(["shown", EPISODE, f"--out={out}", f"runs_dir={folder / 'runs'}"])
    return out


def picture(path: Path) -> bytes:
    """PNG of the page down to its cases."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": WIDTH, "height": 900})
        opened.goto(path.as_uri())
        end = opened.locator("#cases").bounding_box()
        height = 0 if end is None else end["y"]
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
        taken = opened.screenshot(full_page=True, clip=clip)
        browser.close()
    return taken


def main() -> None:
    """Take and save the picture, with few colours so that it stays small, rare ones among them."""
    with tempfile.TemporaryDirectory() as folder:
        taken = picture(page(Path(folder)))
    buffer = io.BytesIO()
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(96, Image.Quantize.MAXCOVERAGE).save(
        buffer, "PNG", optimize=True
    )
    if len(buffer.getvalue()) > MOST_BYTES:
        raise SystemExit(f"expected at most {MOST_BYTES} bytes, got {len(buffer.getvalue())}")
    TARGET.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main()
