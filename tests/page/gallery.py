"""Take pictures of every view with 0, 5, 800 and 50,000 clusters, and measure the first view.

Not a test; run it by hand, from the root of the repository:

    python tests/page/gallery.py FOLDER

It takes a few minutes. Each view is taken light and dark, on a wide screen (1280) and on a phone
(360). The end tells for the largest namespace how long each view takes from navigation to content:
once after the service has started, and once again.
"""

# ruff: noqa: T201
from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.served import Served, png
from page.views import views

SIZES = {"none": 0, "five": 5, "hundreds": 800, "many": 50_000}
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
    "phone-dark": {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
}
DIMENSION = 64
BATCH = 8_192
PICTURES = 12
NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil")
THRESHOLDS = {
    "cluster_similarity": 0.75,
    "subcluster_similarity": 0.85,
    "pair_similarity_max": 0.92,
}
PATIENCE = 60_000  # milliseconds
# A view has content once it has a heading and neither a skeleton nor an unpainted map.
CONTENT = "main .view h1"
READY = ".skeleton, .view-map canvas:not([data-settled=true])"


def main(folder: Path) -> None:
    """Fill a service, then take the pictures and the times."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as kept:
        images = Path(kept, "images")
        images.mkdir()
        for number in range(PICTURES):
            rgb = np.random.default_rng(number).integers(30, 220, 3).tolist()
            (images / f"{number}.png").write_bytes(png(120, 120, tuple(rgb)))
        settings = Settings(data=Path(kept, "data"), port=0, images=images)
        with background(settings) as url:
            for name, count in SIZES.items():
                fill(replace(Served(url.rstrip("/")), namespace=name), count)
        with background(settings) as url, sync_playwright() as playwright:
            path = os.environ.get("CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            measure(browser, url.rstrip("/"))
            for look, options in LOOKS.items():
                take(browser, url.rstrip("/"), look, options, folder)
            browser.close()


def fill(served: Served, count: int) -> None:
    """Add `count` clusters: a few large ones, many small ones; name some."""
    served.make()
    rng = np.random.default_rng(count)
    centres = rng.standard_normal((count, DIMENSION))
    sizes = np.minimum(rng.pareto(1.2, count).astype(int) + (rng.random(count) < 0.6), 60)
    of = rng.permutation(np.repeat(np.arange(count), 1 + sizes)) if count else np.arange(0)
    noise = 0.35 * rng.standard_normal((len(of), DIMENSION))
    x = centres[of] / np.linalg.norm(centres[of], axis=1, keepdims=True)
    x = x + noise / np.sqrt(DIMENSION)
    if count <= SIZES["hundreds"]:
        for first in range(0, len(of), 500):
            payloads = [payload(int(i)) for i in of[first : first + 500]]
            served.add(x[first : first + 500], payloads)
    else:
        add_raw(served, x)
    biggest = served.get("clusters?order=size&limit=5")["clusters"]
    for cluster, name in zip(biggest, NAMES, strict=False):
        served.post("name", {"cluster": cluster["id"], "name": name})
    print(f"{served.namespace}: {len(of):,} vectors, {served.get('stats')['clusters']:,} clusters")


def payload(number: int) -> dict[str, str]:
    """Return a picture or a text."""
    if number % 3 == 2:
        return {"text": f"Ticket {number}: where is my parcel?"}
    return {"image": f"{number % PICTURES}.png"}


def add_raw(served: Served, x: np.ndarray) -> None:
    """Add vectors as bytes, which is fast."""
    for first in range(0, len(x), BATCH):
        request = urllib.request.Request(
            f"{served.url}/v1/namespaces/{served.namespace}/vectors?dimension={DIMENSION}",
            data=x[first : first + BATCH].astype("<f4").tobytes(),
            headers={"Content-Type": "application/octet-stream"},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=600):
            pass


def shown(page: Page, url: str, view: str, namespace: str) -> float:
    """Open a view in a new document; return the seconds from navigation to content."""
    page.goto("about:blank")
    begin = time.perf_counter()
    page.goto(f"{url}/#/{view}?in={namespace}", wait_until="commit")
    page.locator(CONTENT).first.wait_for(timeout=PATIENCE)
    page.locator(READY).first.wait_for(state="hidden", timeout=PATIENCE)
    return time.perf_counter() - begin


def measure(browser: Browser, url: str) -> None:
    """Print the seconds of the first view of the largest namespace, and of later ones."""
    page = browser.new_context(**LOOKS["light"]).new_page()
    page.set_default_timeout(PATIENCE)
    print("seconds from navigation to content, 50,000 clusters:")
    for view in views():
        first = shown(page, url, view, "many")
        later = statistics.median(shown(page, url, view, "many") for _ in range(3))
        print(f"  {view:12} first {first:6.2f}   later {later:6.2f}")
    page.context.close()


def take(browser: Browser, url: str, look: str, options: dict, folder: Path) -> None:
    """Take the pictures of one look."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(PATIENCE)
    for namespace, view in pairs():
        shown(page, url, view, namespace)
        page.wait_for_timeout(700)  # pictures of payloads, figures of the stream
        name = f"{namespace}-{view.replace('/', '-')}-{look}.png"
        page.screenshot(path=folder / name, animations="disabled")
        width = page.viewport_size["width"]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            print(f"  wider than {width}: {name}")
    page.context.close()


def pairs() -> Iterator[tuple[str, str]]:
    """Yield every namespace with every view."""
    for namespace, count in SIZES.items():
        yield from ((namespace, view) for view in views())
        if count:
            yield namespace, "cluster/0"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
