"""The picture of the service's page in the README: the voices of `linkstream serve --demo`.

Run it from the root of the repository: `python docs/pictures/page.py`. It needs Chromium and
takes a minute and a half, because the curves show real time.
"""

import json
import os
import re
import shutil
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from linkstream.data import voice_halves
from linkstream.service.demo import NAMESPACE, THRESHOLDS
from linkstream.service.running import background
from linkstream.service.settings import Settings

IMG = Path(__file__).resolve().parent.parent / "img"
NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil")
TOLD = 420  # windows until the picture is taken
FASTER = 5  # than people spoke
SIZE = {"width": 1280, "height": 880}


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
        with background(Settings(data=Path(folder), port=0)) as url:
            speak(url.rstrip("/"), page)
            page.screenshot(path=IMG / "page.png")
            page.goto("about:blank")
        browser.close()


def speak(url: str, page: Page) -> None:
    """Add the voices while the page is open; name the clusters half-way."""
    heard = voice_halves()[1]
    base = f"{url}/v1/namespaces/{NAMESPACE}"
    names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
    send("PUT", base, {"thresholds": {name: getattr(THRESHOLDS, name) for name in names}})
    page.goto(f"{url}/#/live")
    begin = time.monotonic()
    for place in range(TOLD):
        wait = begin + float(heard.t[place]) / FASTER - time.monotonic()
        page.wait_for_timeout(max(wait, 0) * 1000)
        payload = {"reader": int(heard.y[place]), "t": round(float(heard.t[place]), 1)}
        send("POST", f"{base}/vectors", {"vector": heard.X[place].tolist(), "payload": payload})
        if place == TOLD // 2:
            introduce(base)
    page.locator(".tile dd", has_text=re.compile(f"^{TOLD}$")).wait_for()  # the figures lag behind


def introduce(base: str) -> None:
    biggest = send("GET", f"{base}/clusters?order=size&limit={len(NAMES) - 1}", None)["clusters"]
    for cluster, name in zip(biggest, NAMES, strict=False):
        send("POST", f"{base}/name", {"cluster": cluster["id"], "name": name})


def send(method: str, url: str, body: object) -> dict:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
