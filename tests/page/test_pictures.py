"""Screenshots of every view with the voices of the package, for a person to look at."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from linkstream.data import voice_halves
from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.served import Served, around, direction, png

# View → elements that the view shows once its data have come.
VIEWS = {
    "live": (".sizes li", ".decision"),
    "map": (".map-row", "canvas[data-settled=true]"),
    "cluster": (".person",),
    "cluster/0": (".member", ".tree .tree-edge"),
    "review": (".question",),
    "thresholds": ("#strictness", ".strictness-words"),
    "begin": (".drop", ".begin-try", ".begin-export"),
}
LOOKS = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 360, "height": 740},
}
NAMES = ("Ada", "Ben", "Cleo")


@pytest.fixture
def voices(served):
    """Add the held-out voices with smaller subclusters than the demo, to get trees."""
    heard = voice_halves()[1]
    voices = Served(served.url, namespace="voices")
    body = {
        "cluster_similarity": 0.766,
        "subcluster_similarity": 0.8,
        "pair_similarity_max": 0.9,
    }
    voices.call("PUT", "/v1/namespaces/voices", {"thresholds": body})
    payloads = [
        {"reader": reader, "t": round(t, 1)}
        for reader, t in zip(heard.y.tolist(), heard.t.tolist(), strict=True)
    ]
    for first in range(0, 480, 120):
        voices.add(heard.X[first : first + 120], payloads[first : first + 120])
    biggest = voices.get("clusters?order=size&limit=3")["clusters"]
    for cluster, name in zip(biggest, NAMES, strict=True):
        voices.post("name", {"cluster": cluster["id"], "name": name})
    return voices


@pytest.mark.parametrize(
    "looks", [("light", "phone"), pytest.param(("dark",), marks=pytest.mark.long)], ids=", ".join
)
def test_every_view_has_its_picture(voices, open_page, shoot, looks):
    for look in looks:
        picture_all(open_page(voices.url, **LOOKS[look]), voices.url, look, shoot)


def picture_all(page, url, look, shoot):
    for view, content in VIEWS.items():
        page.goto(f"{url}/#/{view}?in=voices")
        expect(page.locator(f".view-{view.split('/')[0]} h1")).to_be_visible()
        for part in content:
            expect(page.locator(part).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        shoot(page, f"{look}-{view.replace('/', '-')}")


def test_photos_are_shown_side_by_side(tmp_path, open_page, shoot):
    middles = {"beach": direction(1.0), "party": direction(0.6, 0.8)}
    colours = {"beach": (0, 114, 178), "party": (213, 94, 0)}
    for name, colour in colours.items():
        (tmp_path / f"{name}.png").write_bytes(png(120, 90, colour))
    settings = Settings(data=tmp_path / "data", port=0, threads=1, images=tmp_path)
    with background(settings) as url:
        served = Served(url.rstrip("/")).make()
        for seed, (name, middle) in enumerate(middles.items()):
            said = {"image": f"{name}.png", "text": f"At the {name}", "taken": "2024-07-01"}
            served.add(around(middle, 5, seed=seed), [said] * 5)
        for look in ("light", "phone"):
            page = open_page(served.url, "review", **LOOKS[look])
            page.locator(".side img.picture").last.scroll_into_view_if_needed()
            expect(page.locator(".side img.picture:not(.waiting)")).to_have_count(6)
            shoot(page, f"photos-review-{look}")
            page.goto(f"{served.url}/#/cluster/0")
            page.locator(".member img.picture").last.scroll_into_view_if_needed()
            expect(page.locator(".member img.picture:not(.waiting)")).to_have_count(5)
            shoot(page, f"photos-cluster-{look}")
