"""The pictures of docs/page.md and of the README: the views that the guide shows.

Run it from the root of the repository: `python docs/pictures/page.py`. It needs Chromium. The
views show a few made-up people, whose pictures are drawn here.
"""

import json
import os
import re
import shutil
import tempfile
import urllib.request
from pathlib import Path

import matplotlib as mpl
import matplotlib.figure
import numpy as np
from matplotlib import patches
from playwright.sync_api import Page, sync_playwright

from linkstream.service.running import background
from linkstream.service.settings import Settings

IMG = Path(__file__).resolve().parent.parent / "img"
SIZE = {"width": 1280, "height": 880}
PEOPLE = {"Ada": 14, "Ben": 11, "Cleo": 9, "Dora": 7, "Emil": 6, None: 5}
STRANGERS = 6  # seen once
AXES = 64
FACE = 160  # pixels
READY = ".skeleton, img.waiting, .view-map canvas:not([data-settled=true])"


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
        media = Path(folder, "media")
        media.mkdir()
        settings = Settings(data=Path(folder, "people"), port=0, images=media)
        with background(settings) as url:
            gather(url.rstrip("/"), media)
            guide = (IMG.parent / "page.md").read_text("utf-8")
            for view in [*views(url.rstrip("/")), "cluster/0"]:
                if picture_of(view) in guide:
                    show(page, url.rstrip("/"), view)
        browser.close()


def views(url: str) -> list[str]:
    """Return the paths of all views, as app.js lists them."""
    with urllib.request.urlopen(f"{url}/page/app.js", timeout=30) as answer:
        table = answer.read().decode().partition("const VIEWS = [")[2].partition("\n];")[0]
    return re.findall(r'\{ path: "([a-z]+)"', table)


def show(page: Page, url: str, view: str) -> None:
    """Take the picture of a view of the made-up people."""
    page.goto("about:blank")
    page.goto(f"{url}/#/{view}?in=people")
    page.locator("main .view h1").first.wait_for()
    page.wait_for_timeout(1_500)
    page.locator(READY).first.wait_for(state="hidden")
    page.screenshot(path=IMG / picture_of(view), animations="disabled")


def picture_of(view: str) -> str:
    """Return the name of the picture of a view."""
    return "page-one.png" if "/" in view else f"page-{view}.png"


def gather(url: str, media: Path) -> None:
    """Add pictures of people, each with its vector; name those who have a name."""
    base = f"{url}/v1/namespaces/people"
    names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
    thresholds = dict(zip(names, (0.72, 0.8, 0.9), strict=True))
    send("PUT", base, {"thresholds": thresholds, "search": True})
    rng = np.random.default_rng(5)
    looks = [*PEOPLE.items(), *((None, 1) for _ in range(STRANGERS))]
    centres = np.linalg.qr(rng.standard_normal((AXES, AXES)))[0]
    centres[5] = 0.72 * centres[2] + 0.69 * centres[5]  # Cleo again, from the side
    shots = [who for who, (_, count) in enumerate(looks) for _ in range(count)]
    for number, who in enumerate(rng.permutation(shots).tolist()):
        draw(media / f"{number:03}.png", 2 if who == 5 else who, rng)
        vector = centres[who] + 0.45 * rng.standard_normal(AXES) / np.sqrt(AXES)
        payload = {"image": f"{number:03}.png", "text": f"Holiday, picture {number}"}
        at = f"2026-07-{1 + number // 8:02}T{9 + number % 8:02}:15:00Z"
        body = {"vector": vector.tolist(), "payload": payload, "at": at}
        found = send("POST", f"{base}/vectors", body)["cluster"]
        name = looks[who][0]
        if name is not None and who not in named:
            named.add(who)
            send("POST", f"{base}/name", {"cluster": found, "name": name})


named: set[int] = set()


def draw(path: Path, who: int, rng: np.random.Generator) -> None:
    """Draw a face: skin, hair and shirt are those of the person, the rest varies."""
    own = np.random.default_rng(100 + who)
    skin = ("#f2c9a8", "#d9a47a", "#a8734a", "#7a4b2d")[own.integers(4)]
    hair = ("#2b1d14", "#6b3f1f", "#c79a4b", "#9a9a9a", "#8c2f1f")[own.integers(5)]
    shirt = mpl.colormaps["tab10"](int(own.integers(10)))
    high, wide = own.uniform(0.24, 0.3), own.uniform(0.19, 0.24)
    long = own.random() < 0.5
    x, y = 0.5 + rng.uniform(-0.05, 0.05), 0.52 + rng.uniform(-0.04, 0.04)
    figure = mpl.figure.Figure(figsize=(1, 1), dpi=FACE)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    axes.add_patch(patches.Rectangle((0, 0), 1, 1, color=mpl.colormaps["Pastel2"](rng.integers(8))))
    if long:
        axes.add_patch(patches.Ellipse((x, y - 0.08), 2.7 * wide, 2.7 * high, color=hair))
    axes.add_patch(patches.Ellipse((x, 0.02), 0.8, 0.42, color=shirt))
    axes.add_patch(patches.Ellipse((x, y + 0.05), 2.3 * wide, 2.25 * high, color=hair))
    axes.add_patch(patches.Ellipse((x, y - 0.03), 2 * wide, 2 * high, color=skin))
    for side in (-1, 1):
        axes.add_patch(patches.Circle((x + side * 0.08, y + 0.02), 0.018, color="#20242c"))
    smile = rng.uniform(0.05, 0.1)
    mouth = patches.Arc((x, y - 0.12), 0.14, smile, theta1=180, theta2=360, color="#702a2a", lw=1.4)
    axes.add_patch(mouth)
    figure.savefig(path)


def send(method: str, url: str, body: object) -> dict:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
