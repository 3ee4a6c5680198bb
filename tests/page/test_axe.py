"""Accessibility by axe-core: no violation in any view, light and dark, wide and on a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from page.served import around, direction, two_alike
from page.views import views

QUIET = "[aria-busy=true], .skeleton"
LOOKS = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 360, "height": 740},
}


@pytest.fixture
def people(served):
    """A namespace with two clusters that are alike, one of them with a name, and three others."""
    served.make()
    first, _ = two_alike(served)
    served.post("name", {"cluster": first, "name": "Ann"})
    for axis in (3, 4):
        middle = direction(*(float(at == axis) for at in range(axis + 1)))
        served.add(around(middle, 4, seed=axis), [{"text": f"far {axis}"}] * 4)
    return served


def violations(page):
    """Return what axe finds in the page, in one line each."""
    page.emulate_media(reduced_motion="reduce")
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['target'][0]} {node['html'][:120]}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_axe_finds_nothing_in_any_view(people, open_page, look):
    page = open_page(people.url, **look)
    found = []
    for view in [*views(), "cluster/0"]:
        page.goto(f"{people.url}/#/{view}")
        expect(page.locator(f".view-{view.split('/')[0]} h1").first).to_be_visible()
        expect(page.locator(QUIET)).to_have_count(0)
        found += [f"{view}: {each}" for each in violations(page)]
    assert found == []


def test_axe_finds_nothing_in_the_shell(people, open_page):
    page = open_page(people.url, dark=True)
    expect(page.locator(".state")).to_have_text("connected")
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("radio", name="Dark")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.route("**/v1/**", lambda route: route.abort())
    page.goto(f"{people.url}/#/map")
    expect(page.locator("main h1")).to_have_text("The service cannot be reached")
    assert violations(page) == []


def test_axe_finds_nothing_without_a_namespace(served, open_page):
    page = open_page(served.url)
    expect(page.locator("main h1, main h2").first).to_be_visible()
    assert violations(page) == []
