"""The map in a browser: drawing, stable positions, mouse, touch and keyboard."""

from __future__ import annotations

import re
import urllib.request
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.served import HOSTILE, Served, around, direction, png

CANVAS = "canvas.map-canvas"
MANY = 20_000
# How much of the canvas is painted, in how many colours.
PAINTED = """(canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const colours = new Map();
  let painted = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 40) continue;
    painted += 1;
    const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    colours.set(colour, (colours.get(colour) ?? 0) + 1);
  }
  const many = [...colours.values()].filter((count) => count > 50);
  return { painted: painted / (width * height), colours: many.length };
}"""
# Which share of the width and of the height the painted pixels span.
SPREAD = """(canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const [xs, ys] = [[], []];
  for (let at = 0; at < width * height; at += 1) {
    if (data[4 * at + 3] < 40) continue;
    xs.push(at % width);
    ys.push(Math.floor(at / width));
  }
  const span = (all) => all.reduce((m, v) => Math.max(m, v), 0) -
    all.reduce((m, v) => Math.min(m, v), 1e9);
  return [span(xs) / width, span(ys) / height];
}"""
# How many pixels have the red of a picture.
RED = """(canvas) => {
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, width, height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] > 240 && data[at + 1] < 40 && data[at + 2] < 50) found += 1;
  }
  return found;
}"""
# Milliseconds of each of forty frames while the wheel turns.
FRAMES = """async (canvas) => {
  const box = canvas.getBoundingClientRect();
  const spot = { clientX: box.left + 300, clientY: box.top + 250, cancelable: true };
  const frames = [];
  for (let turn = 0; turn < 40; turn += 1) {
    const start = performance.now();
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: turn < 20 ? -40 : 40, ...spot }));
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - start);
  }
  return frames.sort((one, other) => one - other);
}"""


def add_many(served, X):
    """Add vectors as raw numbers, which is fast."""
    request = urllib.request.Request(
        f"{served.url}/v1/namespaces/{served.namespace}/vectors?dimension={X.shape[1]}",
        data=X.astype("<f4").tobytes(),
        headers={"Content-Type": "application/octet-stream"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def settled(page):
    """Return the canvas after all movement has ended."""
    canvas = page.locator(CANVAS)
    expect(canvas).to_have_attribute("data-settled", "true")
    return canvas


def spot(page, served, subcluster):
    """Return the position of a subcluster on the screen."""
    nodes = served.get("map")["nodes"]
    place = nodes["subcluster"].index(subcluster)
    canvas = settled(page)
    box = canvas.bounding_box()
    x, y, scale = (float(canvas.get_attribute(f"data-{name}")) for name in ("x", "y", "scale"))
    east, north = nodes["x"][place], nodes["y"][place]
    if canvas.get_attribute("data-turned") == "true":
        east, north = north, east
    right = (east - x) * scale + box["width"] / 2
    down = (-north - y) * scale + box["height"] / 2
    return box["x"] + right, box["y"] + down


def some(served):
    """Add three clusters with a payload for each vector; return their IDs."""
    served.make()
    ids = []
    for axis in range(3):
        middle = direction(*(1.0 if axis == at else 0.0 for at in range(3)))
        payloads = [{"text": HOSTILE[axis]} for _ in range(4)]
        ids.append(served.add(around(middle, 4, seed=axis), payloads)[0])
    return ids


@pytest.fixture
def many(served):
    """A namespace of 20,000 subclusters."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((2_000, 24))
    shares = rng.pareto(1.6, 2_000) + 0.05
    of = rng.choice(2_000, MANY, p=shares / shares.sum())
    X = centres[of] / np.linalg.norm(centres[of], axis=1, keepdims=True)
    X = X + 0.12 * rng.standard_normal((MANY, 24))
    crowd = replace(served, namespace="crowd")
    thresholds = {
        "cluster_similarity": 0.87,
        "subcluster_similarity": 0.99,
        "pair_similarity_max": 0.8,
    }
    crowd.call("PUT", "/v1/namespaces/crowd", {"thresholds": thresholds})
    add_many(crowd, X)
    assert crowd.get("stats")["subclusters"] == MANY
    return crowd


@pytest.mark.parametrize("dark", [False, True])
def test_the_map_draws_twenty_thousand_subclusters(many, open_page, shoot, dark):
    page = open_page(many.url, "map?in=crowd", dark=dark)
    canvas = settled(page)
    expect(canvas).to_have_attribute("data-nodes", str(MANY))
    expect(canvas).to_have_attribute("data-drawn", str(MANY))
    expect(page.locator(".map-summary")).to_contain_text("20,000 subclusters")
    shoot(page, "map-20000-dark" if dark else "map-20000")
    shown = canvas.evaluate(PAINTED)
    assert shown["painted"] > 0.05
    assert shown["colours"] >= 10


def test_twenty_thousand_are_smooth_to_zoom(many, open_page, shoot):
    page = open_page(many.url, "map?in=crowd")
    frames = settled(page).evaluate(FRAMES)
    assert frames[len(frames) // 2] < 100  # 17 on a quiet machine: sixty a second
    page.locator(CANVAS).focus()
    for _ in range(7):
        page.keyboard.press("+")
    settled(page)
    shoot(page, "map-20000-near")


def test_points_keep_their_positions_when_vectors_arrive(served, open_page):
    first, *_ = some(served)
    page = open_page(served.url, "map")
    canvas = settled(page)
    nodes = served.get("map")["nodes"]
    mine = nodes["subcluster"][nodes["cluster"].index(first)]
    spot(page, served, mine)
    served.add(around(direction(0, 0, 0, 1.0), 3, seed=5))
    expect(canvas).to_have_attribute("data-drawn", str(len(nodes["subcluster"]) + 1))
    after = served.get("map")["nodes"]
    kept = len(nodes["subcluster"])
    assert (after["x"][:kept], after["y"][:kept]) == (nodes["x"], nodes["y"])
    page.mouse.move(*spot(page, served, mine))
    expect(page.locator(".map-tip")).to_have_attribute("data-subcluster", str(mine))


def test_pointing_at_a_subcluster_shows_the_payloads_of_its_vectors(served, open_page, shoot):
    some(served)
    page = open_page(served.url, "map")
    for axis in range(3):
        page.mouse.move(*spot(page, served, axis))
        tip = page.locator(".map-tip")
        expect(tip).to_contain_text(f"subcluster {axis}")
        expect(tip.locator(".map-tip-row").first).to_contain_text(HOSTILE[axis][:3])
        assert tip.locator("img, script").count() == 0
    shoot(page, "map-pointing")
    page.mouse.move(5, 5)
    expect(page.locator(".map-tip")).to_be_hidden()


def test_a_click_opens_the_cluster(served, open_page):
    _, second, _ = some(served)
    page = open_page(served.url, "map")
    page.mouse.click(*spot(page, served, 1))
    expect(page).to_have_url(re.compile(rf"#/cluster/{second}\b"))


def test_dragging_moves_the_map_and_opens_nothing(served, open_page):
    some(served)
    page = open_page(served.url, "map")
    right, down = spot(page, served, 0)
    page.mouse.move(right, down)
    page.mouse.down()
    page.mouse.move(right + 60, down + 30, steps=4)
    page.mouse.up()
    settled(page)
    assert spot(page, served, 0) == pytest.approx((right + 60, down + 30), abs=1.0)
    expect(page).to_have_url(re.compile("#/map"))


def test_the_keyboard_zooms_moves_and_shows_all(served, open_page):
    some(served)
    page = open_page(served.url, "map")
    canvas = settled(page)
    begin = {name: canvas.get_attribute(f"data-{name}") for name in ("x", "y", "scale")}
    canvas.focus()
    page.keyboard.press("+")
    expect(canvas).not_to_have_attribute("data-scale", begin["scale"])
    page.keyboard.press("-")
    expect(canvas).to_have_attribute("data-scale", begin["scale"])
    page.keyboard.press("ArrowRight")
    expect(canvas).not_to_have_attribute("data-x", begin["x"])
    page.keyboard.press("ArrowDown")
    expect(canvas).not_to_have_attribute("data-y", begin["y"])
    page.keyboard.press("0")
    for name, value in begin.items():
        expect(canvas).to_have_attribute(f"data-{name}", value)


def test_tab_moves_from_the_map_to_a_list_of_the_same_clusters(served, open_page):
    first, second, third = some(served)
    served.post("name", {"cluster": second, "name": HOSTILE[0]})
    page = open_page(served.url, "map")
    rows = page.locator(".map-row")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text=HOSTILE[0])).to_have_count(1)
    settled(page).focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.locator(".map-row:focus").count():
            break
    chosen = page.locator(".map-row:focus").get_attribute("data-id")
    assert int(chosen) in (first, second, third)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#/cluster/{chosen}\b"))


def test_a_cluster_with_a_name_is_labelled(served, open_page):
    first, *_ = some(served)
    page = open_page(served.url, "map")
    canvas = settled(page)
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    served.post("name", {"cluster": first, "name": "Ann"})
    expect(page.locator(".map-row").filter(has_text="Ann")).to_be_visible()
    settled(page)
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != before


def test_an_idle_stream_causes_no_requests_of_the_map(served, open_page):
    first, *_ = some(served)
    served.post("remove", {"vector": 0})
    page = open_page(served.url, "map")
    settled(page)
    page.wait_for_timeout(1_500)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2_500)
    assert not asked
    served.post("name", {"cluster": first, "name": "Ann"})
    expect(page.locator(".map-row").filter(has_text="Ann")).to_be_visible()
    assert [url.rsplit("/", 1)[1] for url in asked] == ["map"]


def test_an_empty_map_says_what_to_do_and_fills_by_itself(served, open_page):
    served.make()
    page = open_page(served.url, "map")
    expect(page.get_by_text("Nothing on the map yet")).to_be_visible()
    served.add(around(direction(1.0), 3))
    expect(page.get_by_text("Nothing on the map yet")).to_be_hidden()
    expect(settled(page)).to_have_attribute("data-drawn", "1")


def test_on_a_phone_a_tap_shows_a_subcluster_with_a_link(served, browser):
    first, *_ = some(served)
    context = browser.new_context(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{served.url}/#/map")
    page.touchscreen.tap(*spot(page, served, 0))
    link = page.locator(".map-tip a")
    expect(link).to_have_text(f"ID {first}")
    link.tap()
    expect(page).to_have_url(re.compile(rf"#/cluster/{first}\b"))
    context.close()


def test_five_clusters_use_the_canvas(served, open_page, shoot):
    served.make()
    for axis in range(5):
        served.add(around(direction(*(float(at == axis) for at in range(axis + 1))), 3, seed=axis))
    for size in ({}, {"width": 360, "height": 740}):
        page = open_page(served.url, "map", **size)
        canvas = settled(page)
        expect(canvas).to_have_attribute("data-nodes", "5")
        shown = canvas.evaluate(SPREAD)
        assert max(shown) > 0.6, shown
        assert min(shown) > 0.25, shown
        shoot(page, f"map-five-{size.get('width', 1280)}")


def test_a_search_flies_to_a_cluster_and_is_kept_in_the_address(served, open_page):
    *_, last = some(served)
    served.post("name", {"cluster": last, "name": "Ann"})
    page = open_page(served.url, "map")
    canvas = settled(page)
    before = canvas.get_attribute("data-scale")
    page.get_by_role("searchbox").fill("an")
    expect(page.locator(".map-row")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"find=an"))
    expect(canvas).not_to_have_attribute("data-scale", before)
    settled(page)
    at = [canvas.get_attribute(f"data-{axis}") for axis in "xy"]
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("an")
    for axis, value in zip("xy", at, strict=True):
        expect(settled(page)).to_have_attribute(f"data-{axis}", value)
    page.get_by_role("searchbox").fill("nobody")
    expect(page.get_by_text("No cluster on the map has this ID")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".map-row")).to_have_count(3)
    expect(canvas).to_have_attribute("data-scale", before)


def test_single_vectors_can_be_left_out(served, open_page):
    some(served)
    for axis in (5, 6):
        served.add(around(direction(*(float(at == axis) for at in range(axis + 1))), 1))
    page = open_page(served.url, "map")
    expect(settled(page)).to_have_attribute("data-nodes", "5")
    page.get_by_label("2 single vectors").uncheck()
    expect(settled(page)).to_have_attribute("data-nodes", "3")
    expect(page).to_have_url(re.compile(r"singles=hidden"))
    page.reload()
    expect(settled(page)).to_have_attribute("data-nodes", "3")
    page.get_by_label("2 single vectors").check()
    expect(settled(page)).to_have_attribute("data-nodes", "5")


def test_exemplars_are_drawn_on_their_clusters(tmp_path, open_page, shoot):
    (tmp_path / "red.png").write_bytes(png(60, 60, (250, 10, 20)))
    settings = Settings(data=tmp_path / "data", port=0, threads=1, images=tmp_path)
    with background(settings) as url:
        served = Served(url.rstrip("/")).make()
        first = served.add(around(direction(1.0), 6))[0]
        other = served.add(around(direction(0, 1.0), 5, seed=1))[0]
        page = open_page(served.url, "thresholds")
        payloads = {first: {"image": "red.png"}, other: {"text": "Where is my parcel?"}}

        def answer(route):
            body = served.get("clusters?order=size")
            for each in body["clusters"]:
                each["exemplars"] = [{"vector": 0, "key": None, "payload": payloads[each["id"]]}]
            route.fulfill(json=body)

        page.route("**/clusters?*exemplars=1*", answer)
        page.goto(f"{served.url}/#/map")
        canvas = settled(page)
        for _ in range(200):
            red = canvas.evaluate(RED)
            if red > 200:
                break
            page.wait_for_timeout(50)
        assert red > 200
        shoot(page, "map-exemplars")
