"""People: cards of clusters, names typed in place, several clusters at once, search and filters."""

from __future__ import annotations

import re
import wave

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.audits import CONTRAST, NAMELESS
from page.served import HOSTILE, Served, around, direction, png, two_alike


@pytest.fixture
def people(served):
    served.make(search=True)
    two_alike(served)
    return served


def cards(page):
    return page.locator(".person")


def names(served):
    return {cluster["id"]: cluster["name"] for cluster in served.clusters()}


def test_a_card_shows_vectors_the_size_and_the_most_similar_cluster(people, open_page, shoot):
    page = open_page(people.url, "cluster")
    expect(cards(page)).to_have_count(3)
    first = cards(page).first
    expect(first.locator(".quote")).to_have_count(4)
    expect(first).to_contain_text("6 vectors")
    expect(first.locator(".similar")).to_contain_text("similar: ID 1")
    shoot(page, "people")


def test_pictures_are_cropped_to_squares_and_sounds_are_players(tmp_path, open_page):
    (tmp_path / "a.png").write_bytes(png(40, 90, (0, 114, 178)))
    with wave.open(str(tmp_path / "b.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(1600))
    with background(Settings(data=tmp_path / "data", port=0, threads=1, images=tmp_path)) as url:
        served = Served(url.rstrip("/")).make()
        served.add(around(direction(1.0), 2), [{"image": "a.png"}] * 2)
        served.add(around(direction(0, 1.0), 1), [{"sound": "b.wav"}])
        page = open_page(served.url, "cluster")
        picture = page.locator(".thumbs .picture:not(.waiting)").first
        box = picture.bounding_box()
        assert abs(box["width"] - box["height"]) < 1.5
        page.get_by_role("button", name="Play b.wav").click()
        player = page.locator("audio")
        expect(player).to_have_attribute("src", re.compile("^blob:"))
        expect(player).to_have_js_property("error", None)


def test_a_name_is_typed_in_place_and_the_next_field_is_ready(people, open_page):
    page = open_page(people.url, "cluster")
    page.get_by_label("Name of ID 0").fill("Ann")
    page.keyboard.press("Enter")
    expect(cards(page).first.locator(".person-link")).to_have_text("Ann")
    expect(page.get_by_label("Name of ID 1")).to_be_focused()
    page.keyboard.type("Bob")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name of ID 2")).to_be_focused()
    assert names(people) == {0: "Ann", 1: "Bob", 2: None}
    page.get_by_role("button", name="Undo").last.click()
    expect(page.get_by_label("Name of ID 1")).to_be_visible()
    assert names(people) == {0: "Ann", 1: None, 2: None}


def test_the_name_of_another_cluster_is_completed_and_joins_both(people, open_page):
    people.post("name", {"cluster": 2, "name": "Carla"})
    page = open_page(people.url, "cluster")
    field = page.get_by_label("Name of ID 0")
    field.fill("Car")
    expect(page.locator("datalist option")).to_have_attribute("value", "Carla")
    field.fill("Carla")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Cancel").click()
    assert len(people.clusters()) == 3
    field.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Join both").click()
    expect(cards(page)).to_have_count(2)
    assert sorted(c["size"] for c in people.clusters()) == [6, 12]


def test_several_clusters_are_joined_under_one_name_and_undone_at_once(people, open_page):
    before = people.clusters()
    page = open_page(people.url, "cluster")
    page.get_by_label("Select ID 0").click()
    page.get_by_label("Select ID 2").click(modifiers=["Shift"])
    bar = page.get_by_label("Selected clusters")
    expect(bar).to_contain_text("3 clusters selected")
    bar.get_by_role("button", name="Name").click()
    bar.get_by_label("Name for all").fill("Everyone")
    page.keyboard.press("Enter")
    expect(cards(page)).to_have_count(1)
    expect(cards(page)).to_contain_text("18 vectors")
    assert list(names(people).values()) == ["Everyone"]
    page.get_by_role("button", name="Undo").click()
    expect(cards(page)).to_have_count(3)
    assert people.clusters() == before


def test_selected_clusters_are_ignored_and_forgotten_and_brought_back(people, open_page):
    page = open_page(people.url, "cluster")
    for cluster in (0, 1):
        page.get_by_label(f"Select ID {cluster}").focus()
        page.keyboard.press("Space")
    bar = page.get_by_label("Selected clusters")
    bar.get_by_role("button", name="Ignore").click()
    expect(page.locator(".person .tag")).to_have_count(2)
    expect(bar).to_be_hidden()
    page.get_by_label("Select ID 0").click()
    page.get_by_label("Select ID 1").click()
    bar.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Keep them").click()
    bar.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget them").click()
    expect(cards(page)).to_have_count(1)
    page.get_by_role("button", name="Undo").last.click()
    expect(cards(page)).to_have_count(3)
    assert sum(c["ignored"] for c in people.clusters()) == 2


def test_the_address_keeps_layout_filter_order_and_search(people, open_page):
    people.post("name", {"cluster": 1, "name": "Bob"})
    page = open_page(people.url, "cluster")
    expect(cards(page)).to_have_count(3)
    page.get_by_label("Show", exact=True).select_option("unnamed")
    expect(cards(page)).to_have_count(2)
    page.get_by_label("Order").select_option("id")
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".cluster-row")).to_have_count(2)
    page.reload()
    expect(page.locator(".cluster-row")).to_have_count(2)
    for part in ("filter=unnamed", "order=id", "as=table"):
        assert part in page.evaluate("location.hash")
    expect(page.get_by_label("Order")).to_have_value("id")
    page.get_by_label("Search").fill("far")
    expect(page.locator(".cluster-row")).to_have_count(1)
    page.get_by_label("Search").fill("nobody")
    page.get_by_role("button", name="Show all clusters").click()
    expect(page.locator(".cluster-row")).to_have_count(3)


def test_a_search_says_when_payloads_have_no_index(served, open_page):
    served.make()
    two_alike(served)
    page = open_page(served.url, "cluster?q=far")
    expect(page.get_by_text("payloads have no search index")).to_be_visible()


def test_more_clusters_come_when_the_end_of_the_list_is_seen(served, open_page):
    served.make()
    served.add(np.eye(120))
    page = open_page(served.url, "cluster")
    expect(cards(page).nth(47)).to_be_attached()
    for count in (96, 120):
        page.keyboard.press("End")
        expect(cards(page)).to_have_count(count)


def test_a_reader_sees_names_and_changes_nothing(people, open_page):
    page = open_page(people.url, "cluster")
    expect(cards(page)).to_have_count(3)
    page.route(
        "**/v1/whoami",
        lambda route: route.fulfill(json={"scopes": {"*": "read"}, "tokens": True}),
    )
    page.reload()
    expect(cards(page)).to_have_count(3)
    expect(page.locator(".name-field")).to_have_count(0)
    page.get_by_label("Select ID 0").click()
    expect(page.get_by_role("button", name="Forget")).to_be_disabled()


@pytest.mark.parametrize("dark", [False, True])
def test_cards_and_choices_can_be_read_and_have_names(dark, people, open_page):
    page = open_page(people.url, "cluster", width=320, height=640, dark=dark)
    page.emulate_media(reduced_motion="reduce")
    page.get_by_label("Select ID 0").click()
    expect(page.locator(".similar .chip")).to_have_count(2)
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.goto(f"{people.url}/#/cluster/0")
    page.get_by_role("button", name="Join with").click()
    expect(page.locator(".choice")).to_have_count(2)
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_hostile_payloads_stay_text_on_cards(served, open_page):
    served.make()
    for place, words in enumerate(HOSTILE):
        payload = {"text": words} if place % 2 else {"image": words, "sound": words}
        served.add(around(direction(*[0.0] * place, 1.0), 1, noise=0.0), [payload])
    page = open_page(served.url, "cluster")
    expect(cards(page)).to_have_count(len(HOSTILE))
    assert page.locator("main script, main iframe, main svg[onload]").count() == 0
