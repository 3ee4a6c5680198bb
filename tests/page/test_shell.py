from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import Served, around, direction, two_alike

VIEWS = (
    *("cluster", "cluster/0", "review", "live", "activity", "map", "turns", "thresholds"),
    *("begin", "rebuild"),
)
BUSY = {
    "error": {
        "kind": "busy",
        "seen": "many questions",
        "expected": "fewer",
        "remedy": "Send the request again after the seconds of Retry-After.",
    }
}


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
    page = open_page(people.url, "live", dark=dark)
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
    page.goto(f"{served.url}/#/live")
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


def test_an_unknown_view_shows_the_clusters(people, open_page):
    page = open_page(people.url, "nowhere/<b>")
    expect(page.locator(".view-cluster h1")).to_be_visible()
    expect(page).to_have_title(re.compile("People · people"))
    expect(page).to_have_url(re.compile(r"#/cluster\?in=people$"))


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
    page.get_by_role("link", name="Thresholds", exact=True).click()
    expect(page.locator(".view-thresholds h1")).to_be_visible()
    people.add(around(direction(1.0), 1))
    assert any(url.endswith("/live") for url in ended)


def test_a_chosen_theme_is_kept_and_is_there_before_anything_is_drawn(people, open_page):
    page = open_page(people.url, dark=False)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("radio", name="Dark").check()
    root = page.locator("html")
    expect(root).to_have_css("background-color", "rgb(16, 20, 27)")
    page.route("**/page/app.js", lambda route: route.abort())
    page.reload()
    expect(root).to_have_css("background-color", "rgb(16, 20, 27)")
    page.unroute("**/page/app.js")
    page.reload()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    page.get_by_role("radio", name="System").check()
    expect(root).to_have_css("background-color", "rgb(245, 246, 248)")
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_css("background-color", "rgb(16, 20, 27)")


def test_signing_out_forgets_the_token(tmp_path, open_page):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    with background(settings) as url:
        served = Served(url.rstrip("/"), token=secret).make()
        page = open_page(served.url)
        page.get_by_label("Token", exact=True).fill(secret)
        page.keyboard.press("Enter")
        expect(page.locator("main h1")).to_have_text("Live")
        page.get_by_role("button", name="Settings").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token", exact=True)).to_be_focused()
        assert page.evaluate("sessionStorage.length") == 0
        expect(page.locator("#namespace option")).to_have_count(0)
        page.reload()
        expect(page.get_by_label("Token", exact=True)).to_be_visible()


def test_a_slow_read_is_shown_with_its_seconds_and_can_be_cancelled(people, open_page):
    page = open_page(people.url)
    held = []
    page.route("**/map", lambda route: held.append(route))
    page.goto(f"{people.url}/#/map")
    expect(page.locator(".skeleton")).to_be_visible()
    expect(page.locator("#working")).to_contain_text("Computing…")
    expect(page.locator("#working .figures")).to_have_text(re.compile(r"[1-9]\d* s"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main h1")).to_have_text("Cancelled")
    expect(page.locator("#working")).to_be_hidden()
    page.unroute("**/map")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("main h1")).to_have_text("Map")
    expect(page.locator(".skeleton")).to_have_count(0)


def test_a_service_that_is_busy_is_asked_again_by_itself(people, open_page):
    page = open_page(people.url)
    told = []

    def busy(route):
        told.append(route.request.url)
        headers = {"Retry-After": "1"}
        route.fulfill(status=503, json=BUSY, headers=headers)

    page.route("**/map", busy, times=1)
    page.goto(f"{people.url}/#/map")
    expect(page.locator("main h1")).to_have_text("The service is busy")
    expect(page.get_by_text("tries again by itself in")).to_be_visible()
    expect(page.locator("main h1")).to_have_text("Map")
    assert len(told) == 1


def test_a_lost_connection_is_tried_again_by_itself_and_at_once_on_request(people, open_page):
    page = open_page(people.url)
    expect(page.locator(".state")).to_have_text("connected")
    page.route("**/v1/**", lambda route: route.abort())
    page.goto(f"{people.url}/#/review")
    expect(page.locator("main h1")).to_have_text("The service cannot be reached")
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".view-review h1")).to_be_visible()


def test_a_request_that_is_wrong_is_not_tried_again(people, open_page):
    page = open_page(people.url, "cluster/99999")
    expect(page.locator("main h1").first).to_be_visible()
    expect(page.get_by_text("tries again by itself in")).to_have_count(0)


def test_a_phone_shows_the_current_tab(people, open_page):
    page = open_page(people.url, width=320, height=640)
    for view in ("thresholds", "cluster"):
        page.goto(f"{people.url}/#/{view}")
        expect(page.locator(f".tabs [aria-current=page][data-view={view}]")).to_be_in_viewport()


def test_the_picker_shows_the_sizes_and_asks_again_after_a_pause(people, open_page):
    page = open_page(people.url, "thresholds")
    expect(page.locator("#namespace option:checked")).to_have_text("people · 18")
    expect(page.locator(".view-thresholds h1")).to_be_visible()
    people.add(around(direction(1.0), 2))
    page.evaluate(
        """() => {
          const now = performance.now.bind(performance);
          performance.now = () => now() + 120_000;  // as after a sleep
          globalThis.dispatchEvent(new Event("focus"));
        }"""
    )
    expect(page.locator("#namespace option:checked")).to_have_text("people · 20")
