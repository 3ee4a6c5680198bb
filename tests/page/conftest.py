"""Fixtures: the service, and the page in Chromium. Without Chromium these tests fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.served import Served

SHOTS = Path(__file__).parents[2] / "artefacts" / "page"
PATIENCE = 20_000  # milliseconds; CI is slow and noisy
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
# Collect the violations of the content security policy of the page.
WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.refused.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for each test file, because its event loop must not outlive the file."""
    found = map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))
    chromium = os.environ.get("CHROMIUM") or next(filter(None, found), None)
    if chromium is None:
        pytest.fail("no Chromium: install the Debian package `chromium`, or set CHROMIUM to a path")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Start a service without tokens and without namespaces."""
    with background(Settings(data=tmp_path / "data", port=0, threads=1)) as url:
        yield Served(url.rstrip("/"))


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open the page; fail at the end if it logged an error or violated its policy."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def opened(
        url: str, route: str = "live", *, width: int = 1280, height: int = 860, dark: bool = False
    ) -> Page:
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog}"), dialog.dismiss()))
        page.on("console", lambda told: _note(troubles, told.type, told.text))
        page.goto(f"{url}/#/{route}")
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            troubles += page.evaluate("window.refused")
        context.close()
    assert not troubles


def _note(troubles: list[str], kind: str, words: str) -> None:
    # Chromium itself logs every answer of 4xx; tests of these look at what the page shows.
    if kind in ("error", "warning") and "Failed to load resource" not in words:
        troubles.append(f"{kind}: {words}")


@pytest.fixture
def shoot() -> Callable[[Page, str], None]:
    """Save a screenshot of the page for a person to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)

    def shot(page: Page, name: str) -> None:
        page.screenshot(path=SHOTS / f"{name}.png", animations="disabled")

    return shot
