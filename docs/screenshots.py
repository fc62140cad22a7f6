"""Take the pictures of docs/tracking.md from a running MLflow: `python docs/screenshots.py ADDRESS`.

They show a sweep of the reference agents with traces, for example

    adaexplore launch +grid=main models=[random,one_factor,scientist]
        settings=[default,stationary] dataset.limit=4 name=first-look tracking.traces=true

behind the `mlflow ui` that the launch prints. The browser is the system's Chromium.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
from PIL import Image
from playwright.sync_api import Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1600, "height": 800}
MOST_BYTES = 150_000
PATIENCE_MS = 120_000
SETTLE_MS = 6_000
CHECKBOX_PX = 20
"""A column's checkbox is so far left of its name."""
AWAITED = {
    "mlflow-cells": "scientist/default/0",
    "mlflow-drop": "batch/ca",
    "mlflow-compare": "Comparing",
    "mlflow-trace": "turn 1",
}
"""A text that is there when a view is."""
PANELS = """
localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");
"""
"""Opens none of the panels that hide a part of the page."""
CELLS = "tags.`adaexplore.level` = 'cell'"
BY_CA = "&orderByKey=metrics.%60ca%60&orderByAsc=false"
"""Sorted by anything but time, runs are not folded into their parents."""
EPISODE = (
    "tags.`adaexplore.level` = 'episode' AND params.setting = 'default' AND params.episode = '{}'"
)


def ask(address: str, path: str, **body: Any) -> dict[str, Any]:
    """One answer of MLflow's REST interface."""
    answer = urllib3.request("POST", f"{address}/api/2.0/mlflow/{path}", json=body)
    found: dict[str, Any] = answer.json()
    return found


def runs(address: str, experiment: str, condition: str) -> list[dict[str, Any]]:
    """Runs that meet a condition."""
    asked = {"experiment_ids": [experiment], "filter": condition, "max_results": 100}
    found: list[dict[str, Any]] = ask(address, "runs/search", **asked).get("runs", [])
    return found


def views(address: str) -> dict[str, str]:
    """Address of each view, by the name of its picture."""
    (experiment,) = [
        found["experiment_id"]
        for found in ask(address, "experiments/search", max_results=100)["experiments"]
        if found["name"] == "adaexplore"
    ]
    cells = runs(address, experiment, CELLS)
    agents = [cell for cell in cells if cell["info"]["run_name"].endswith("/default/0")]
    played = runs(address, experiment, "tags.`adaexplore.trace` LIKE '%'")
    one = next(run for run in played if _param(run, "model") == "scientist")
    start = f"{address}/#/experiments/{experiment}"
    episode = EPISODE.format(_param(one, "episode"))
    compared = quote(json.dumps([cell["info"]["run_id"] for cell in agents]))
    trace = next(tag["value"] for tag in one["data"]["tags"] if tag["key"] == "adaexplore.trace")
    return {
        "mlflow-cells": f"{start}/runs?searchFilter={quote(CELLS)}{BY_CA}",
        "mlflow-drop": f"{start}/runs?searchFilter={quote(episode)}{BY_CA}&compareRunsMode=CHART",
        "mlflow-compare": f"{address}/#/compare-runs?runs={compared}&experiments=%5B%22{experiment}%22%5D",
        "mlflow-trace": f"{start}/traces?selectedEvaluationId=tr-{trace}",
    }


def _param(run: dict[str, Any], key: str) -> str | None:
    params = {param["key"]: param["value"] for param in run["data"].get("params", [])}
    return params.get(key)


def prepare(page: Page, name: str) -> None:
    """Wait for what a picture is about (the page itself is never quiet), and bring it into view."""
    page.get_by_text(AWAITED[name]).first.wait_for(state="visible", timeout=PATIENCE_MS)
    page.wait_for_timeout(SETTLE_MS)
    if name == "mlflow-cells":
        page.get_by_text("Show more columns").click()
        box = page.get_by_text("Metrics (").first.bounding_box(timeout=PATIENCE_MS)
        if box is None:
            raise SystemExit("expected the list of columns to offer metrics, got none")
        page.mouse.click(box["x"] - CHECKBOX_PX, box["y"] + box["height"] / 2)
        page.keyboard.press("Escape")
        page.wait_for_timeout(SETTLE_MS)


def save(data: bytes, path: Path) -> None:
    """Keep a picture, with fewer colours, within the size."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path}: expected at most {MOST_BYTES} bytes, got {path.stat().st_size}")


def main() -> None:
    """Take all pictures."""
    address = sys.argv[1].rstrip("/")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.add_init_script(PANELS)
        for name, url in views(address).items():
            page.goto("about:blank")
            page.goto(url)
            prepare(page, name)
            save(page.screenshot(), IMAGES / f"{name}.png")
            print(IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
