from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service import rebuild_work
from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import DIMENSION, HOSTILE, Served, around, direction


def stream(n=160):
    """Return vectors of ten directions, so near each other that their order matters."""
    rng = np.random.default_rng(5)
    middles = rng.standard_normal((10, DIMENSION))
    rows = middles[rng.integers(10, size=n)] + 0.75 * rng.standard_normal((n, DIMENSION))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture
def people(served):
    served.make().add(stream())
    found = served.get("rebuild")["flows"]
    joined = next(flow for flow in found if flow["kind"] == "joined")
    served.post("name", {"cluster": joined["cluster"], "name": "Ann"})
    assert {flow["kind"] for flow in served.get("rebuild")["flows"]} >= {"joined", "split"}
    return served


@pytest.fixture
def gate(monkeypatch):
    """Hold up every computation at a share of .5 until `set` is called."""
    opened, prepare = threading.Event(), rebuild_work.prepare

    def held_up(store, request, progress):
        found = prepare(store, request, progress)
        while not opened.wait(0.01):
            progress(0.5)
        return found

    monkeypatch.setattr(rebuild_work, "prepare", held_up)
    yield opened
    opened.set()


def state_of(served):
    return served.call("GET", f"/v1/namespaces/{served.namespace}?hash=true")["state_hash"]


def test_a_preview_shows_what_would_change_and_changes_nothing(people, open_page, shoot):
    before, proposed = state_of(people), people.get("rebuild")
    page = open_page(people.url, "cluster")
    expect(page.locator(".person").first).to_be_visible()
    shoot(page, "clusters-head")
    page.get_by_role("link", name="Rebuild").click()
    expect(page.get_by_role("heading", name="No preview yet")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    rows = page.locator(".rebuild-flows > li")
    expect(rows).to_have_count(min(len(proposed["flows"]), 40))
    for place, flow in enumerate(proposed["flows"][:5]):
        assert rows.nth(place).get_attribute("data-kind") == flow["kind"]
        expect(rows.nth(place)).to_contain_text(f"{flow['vectors']} vector")
        shown = f"{abs(flow['margin']):.3f}"
        expect(rows.nth(place).locator(".margin")).to_contain_text(shown)
    counts = page.locator(".rebuild-counts")
    joined = sum(flow["kind"] == "joined" for flow in proposed["flows"])
    expect(counts).to_contain_text(f"Joined{joined}")
    expect(counts).to_contain_text(" → ".join(map(str, proposed["n_clusters"])))
    expect(page.locator(".rebuild-names")).to_contain_text("Ann")
    expect(page.locator('[data-kind="split"]').first).to_contain_text("a new cluster")
    shoot(page, "rebuild-preview")
    assert state_of(people) == before


def test_applying_rebuilds_and_undo_takes_all_of_it_back(people, open_page, shoot):
    before = state_of(people)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="What has changed")).to_be_visible()
    shoot(page, "rebuild-applied")
    assert people.get("rebuild")["flows"] == []
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Taken back: the rebuild")).to_be_visible()
    assert state_of(people) == before
    expect(page.get_by_role("heading", name="No preview yet")).to_be_visible()


def test_a_rebuild_without_changes_says_so_and_offers_none(people, open_page):
    people.post("rebuild", {"apply": True})
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Every vector stays where it is.")).to_be_visible()
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)


def test_progress_is_shown_and_a_rebuild_can_be_cancelled(people, gate, open_page, shoot):
    before = state_of(people)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    bar = page.get_by_role("progressbar", name="Share of the rebuild")
    expect(bar).to_have_js_property("value", 0.5)
    expect(page.get_by_text(re.compile(r"^50 % · \d+\.\d s$"))).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_be_disabled()
    shoot(page, "rebuild-running")
    page.reload()  # the job goes on, and the page finds it again
    expect(bar).to_have_js_property("value", 0.5)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".toast")).to_contain_text("Cancelled: nothing has changed.")
    expect(page.get_by_role("heading", name="No preview yet")).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_be_enabled()
    assert state_of(people) == before


def test_the_rebuild_that_ended_last_is_shown_again_after_leaving_the_view(people, open_page):
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    page.get_by_role("link", name="Review").click()
    expect(page.locator(".view-review h1")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()


def test_vectors_that_keep_coming_are_held_back_on_request(people, open_page, monkeypatch):
    prepare, seeds, tries = rebuild_work.prepare, iter(range(100)), []

    def overtaken(store, request, progress):
        found = prepare(store, request, progress)
        tries.append(len(tries))
        if len(tries) != 1 + 3 + 3:  # of the preview, and of two jobs: the last holds writes back
            people.add(around(direction(0, 0, 1.0), 1, seed=next(seeds)))
        return found

    monkeypatch.setattr(rebuild_work, "prepare", overtaken)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="That did not work")).to_be_visible()
    assert people.get("rebuild")["flows"]
    page.get_by_role("button", name="Hold changes back and rebuild").click()
    expect(page.get_by_role("heading", name="What has changed")).to_be_visible()
    assert len(tries) == 7
    assert people.get("rebuild")["flows"] == []


def test_an_error_is_shown_with_its_remedy(served, open_page):
    served.make(keep_vectors=False).add(stream(20))
    page = open_page(served.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="That did not work")).to_be_visible()
    expect(page.locator(".problem")).to_contain_text("settle() compares subclusters")


def test_thresholds_may_come_from_the_clusters(people, open_page):
    middles = np.eye(DIMENSION)
    for number in range(12):
        people.add(around(middles[number], 3, seed=number))
    page = open_page(people.url, "rebuild")
    page.get_by_label("Thresholds").select_option("From clusters")
    sent = []
    page.on("request", lambda request: sent.append(request.post_data))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    assert any("from clusters" in (body or "") for body in sent)
    found = people.get("rebuilds")["rebuilds"][0]["job"]
    wanted = people.get(f"rebuilds/{found}")["report"]["thresholds"]
    shown = " · ".join(f"{value:.3f}" for value in wanted.values())
    expect(page.locator(".rebuild-counts")).to_contain_text(shown)
    page.reload()  # the choice is forgotten; what was shown is applied
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="What has changed")).to_be_visible()
    assert people.get("rebuild")["flows"] == []
    told = people.get("thresholds")
    assert {name: told[name] for name in wanted} == wanted


def test_a_preview_in_another_space_is_shown_but_not_applied_here(people, open_page):
    job = people.post("rebuilds", {"space": {"model": "encoder-2"}})["job"]
    people.get(f"rebuilds/{job}?wait=30")
    page = open_page(people.url, "rebuild")
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_be_enabled()
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)


def test_a_reader_sees_the_last_rebuild_and_can_start_none(tmp_path, open_page):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    reader = create(settings.token_file, {"people": "read"})[1]
    with background(settings) as url:
        served = Served(url.rstrip("/"), token=secret).make()
        served.add(stream())
        job = served.post("rebuilds", {})["job"]
        served.get(f"rebuilds/{job}?wait=30")
        page = open_page(served.url, "rebuild")
        page.get_by_label("Token", exact=True).fill(reader)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="What would change")).to_be_visible()
        expect(page.get_by_text("Your token allows reading only.")).to_be_visible()
        expect(page.get_by_role("button", name="Preview")).to_be_disabled()
        expect(page.get_by_role("button", name="Apply")).to_have_count(0)


def test_hostile_names_are_shown_as_text(people, open_page):
    flow = next(each for each in people.get("rebuild")["flows"] if each["kind"] == "split")
    people.post("rename", {"cluster": flow["cluster"], "name": HOSTILE[0]})
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".rebuild-flows").get_by_text(HOSTILE[0]).first).to_be_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_accessible(dark, people, open_page, shoot):
    page = open_page(people.url, "rebuild", dark=dark)
    page.keyboard.press("Tab")  # the whole is reached by keyboard
    page.get_by_role("button", name="Preview").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    expect(page.locator("p[aria-live=polite]")).to_have_text("The preview is ready.")
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"rebuild-phone-{'dark' if dark else 'light'}")
