from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import Served, around, direction, two_alike

VIEWS = ("live", "map", "cluster", "cluster/0", "turns", "review", "thresholds", "begin", "rebuild")


@pytest.fixture
def people(served):
    served.make()
    two_alike(served)
    return served


def each_view(page, url):
    """Open each view and yield its name when it is visible."""
    for view in VIEWS:
        page.goto(f"{url}/#/{view}")
        expect(page.locator(f".view-{view.split('/')[0]} h1")).to_be_visible()
        yield view


def test_a_phone_shows_every_view_without_scrolling_sideways(people, open_page):
    page = open_page(people.url, width=360, height=740)
    for _ in each_view(page, people.url):
        for width in (360, 320):
            page.set_viewport_size({"width": width, "height": 640})
            for _ in range(100):  # some parts are drawn again after a measurement
                if (wide := page.evaluate("document.documentElement.scrollWidth")) <= width:
                    break
                page.wait_for_timeout(50)
            assert wide <= width


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_in_light_and_dark(dark, people, open_page):
    page = open_page(people.url, dark=dark)
    page.emulate_media(reduced_motion="reduce")  # new rows do not fade
    expect(page.locator(".decision").first).to_be_visible()
    for _ in each_view(page, people.url):
        assert page.evaluate(CONTRAST) == []
        ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ground == ("rgb(16, 20, 27)" if dark else "rgb(245, 246, 248)")


def test_every_control_has_a_name_and_every_view_its_landmarks(people, open_page):
    page = open_page(people.url)
    for _ in each_view(page, people.url):
        expect(page.locator("main h1")).to_have_count(1)
        assert page.evaluate(NAMELESS) == []
        for landmark in ("banner", "navigation", "main"):
            expect(page.get_by_role(landmark).first).to_be_visible()
        expect(page.locator(".tabs [aria-current=page]")).to_have_count(1)
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
        assert len(ids) == len(set(ids))


def test_without_a_namespace_the_page_begins_with_a_file(served, open_page, shoot):
    page = open_page(served.url)
    expect(page.get_by_role("heading", name="Begin here")).to_be_visible()
    expect(page.get_by_label("Its name")).to_be_visible()
    expect(page.locator(".command")).to_have_count(0)
    shoot(page, "no-namespace")
    served.make().add(around(direction(1.0), 2))
    expect(page.locator(".decision")).to_have_count(2)


def test_a_token_is_asked_for_kept_in_the_tab_and_sent(tmp_path, open_page, shoot):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    reader = create(settings.token_file, {"people": "read"})[1]
    with background(settings) as url:
        served = Served(url.rstrip("/"), token=secret).make()
        two_alike(served)
        page = open_page(served.url, "cluster/0")
        field = page.get_by_label("Token", exact=True)
        expect(field).to_be_focused()
        shoot(page, "token")
        field.fill("lsk_wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".bad-words")).to_be_visible()
        field.fill(secret)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Cluster 0")
        expect(page.get_by_role("button", name="Forget")).to_be_enabled()
        page.reload()
        expect(page.locator("h1")).to_have_text("Cluster 0")
        assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]
        other = open_page(served.url, "cluster/0")
        other.get_by_label("Token", exact=True).fill(reader)
        other.keyboard.press("Enter")
        expect(other.get_by_role("button", name="Forget")).to_be_disabled()


def test_an_unknown_view_shows_the_live_view(people, open_page):
    page = open_page(people.url, "nowhere/<b>")
    expect(page.locator(".view-live h1")).to_have_text("Live")
    expect(page).to_have_title(re.compile("Live · people"))


def test_the_page_loads_nothing_from_elsewhere(people, open_page):
    page = open_page(people.url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert len(list(each_view(page, people.url))) == len(VIEWS)
    page.reload()
    expect(page.locator("h1")).to_be_visible()
    assert asked
    assert all(url.startswith((people.url, "blob:")) for url in asked)


def test_leaving_a_view_ends_its_stream(people, open_page):
    page = open_page(people.url)
    expect(page.locator(".state")).to_have_text("connected")
    ended: list[str] = []
    page.on("requestfailed", lambda request: ended.append(request.url))
    page.get_by_role("link", name="Clusters", exact=True).click()
    expect(page.locator(".cluster-row")).to_have_count(3)
    people.add(around(direction(1.0), 1))
    assert any(url.endswith("/live") for url in ended)
