"""A page in the system's Chromium, with all that it said and asked for."""

import shutil
from contextlib import contextmanager


@contextmanager
def chromium():
    """The browser."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page that is open."""

    def __init__(self, browser, address, *, width=900, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
