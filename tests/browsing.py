"""A page in the system's Chromium, with all that it said and asked for."""

import shutil
import time
from contextlib import contextmanager

PATIENT_S = 180
"""Of a machine that may be busy: for a start of the browser, and for each thing that is asked of it."""


@contextmanager
def chromium():
    """The browser."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"], timeout=PATIENT_S * 1000
        )
        yield browser
        browser.close()


class Opened:
    """A page that is open."""

    def __init__(self, browser, address, *, width=900, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.context.set_default_timeout(PATIENT_S * 1000)
        self.page = self.context.new_page()
        self.said, self.asked, self.failed = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfailed", lambda r: self.failed.append((r.url, r.failure)))
        self.page.goto(address)

    def until(self, true):
        """Wait for what the browser tells by itself."""
        deadline = time.monotonic() + PATIENT_S
        while not true():
            assert time.monotonic() < deadline, (self.said, self.asked, self.failed)
            self.page.wait_for_timeout(50)  # what it tells is heard only while it is asked

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
