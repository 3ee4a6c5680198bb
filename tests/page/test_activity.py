"""The activity: what changed, in words, with times, and taken back where that is possible."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import HOSTILE, Served, around, direction, two_alike


@pytest.fixture
def people(served):
    """A namespace with three changes of a person."""
    return changed(served.make())


def changed(served):
    a, b = two_alike(served)
    served.post("name", {"cluster": a, "name": "Ann"})
    served.post("same", {"a": a, "b": b, "of": "clusters"})
    served.post("rename", {"cluster": a, "name": "Bob"})
    return served


def row(page, verb):
    return page.locator(f'.change[data-verb="{verb}"]').first


def names(served):
    return [cluster["name"] for cluster in served.clusters()]


def test_changes_are_told_in_words_newest_first(people, open_page, shoot):
    page = open_page(people.url, "activity")
    rows = page.locator(".change")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("Renamed a cluster to “Bob”")
    expect(rows.nth(1)).to_contain_text("2 clusters became one")
    expect(rows.nth(2)).to_contain_text("Named")
    assert rows.nth(0).locator("time").get_attribute("datetime").startswith("20")
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    shoot(page, "activity")
    rows.nth(1).locator(".chip").click()
    expect(page).to_have_url(f"{people.url}/#/cluster/0?in=people")


def test_a_correction_is_taken_back_alone(people, open_page):
    page = open_page(people.url, "activity")
    before = len(people.clusters())
    row(page, "same").get_by_role("button", name="Take back").click()
    expect(row(page, "retract")).to_contain_text("Took back one correction: 2 clusters became one")
    assert len(people.clusters()) == before + 1
    assert "Bob" in names(people)
    expect(row(page, "same")).to_contain_text("taken back")
    expect(row(page, "same").get_by_role("button", name="Take back")).to_have_count(0)


def test_undo_of_the_newest_change_needs_no_question_and_redo_brings_it_back(people, open_page):
    page = open_page(people.url, "activity")
    row(page, "rename").get_by_role("button", name="Undo").click()
    expect(row(page, "undo")).to_be_visible()
    expect(row(page, "rename")).to_contain_text("taken back")
    assert "Ann" in names(people)
    row(page, "undo").get_by_role("button", name="Redo").click()
    expect(row(page, "redo")).to_be_visible()
    assert "Bob" in names(people)
    expect(row(page, "undo")).to_contain_text("An undo is taken back by redo")


def test_undo_of_an_older_change_says_what_goes_with_it(people, open_page, shoot):
    people.add(around(direction(0, 0, 0, 0, 1.0), 4, seed=9))
    page = open_page(people.url, "activity")
    row(page, "same").get_by_role("button", name="Undo from here").click()
    expect(page.get_by_role("dialog")).to_contain_text("4 vectors came after this change")
    shoot(page, "activity-undo")
    page.get_by_role("button", name="Leave it").click()
    assert people.get("stats")["vectors"] == 22
    row(page, "same").get_by_role("button", name="Undo from here").click()
    page.get_by_role("button", name="Undo all").click()
    expect(row(page, "same")).to_contain_text("taken back")
    assert people.get("stats")["vectors"] == 18


def test_filters_stay_in_the_address(people, open_page):
    page = open_page(people.url, "activity")
    page.get_by_label("Kind of change").select_option("join")
    expect(page.locator(".change")).to_have_count(1)
    page.get_by_role("button", name="People").click()
    page.reload()
    expect(page.get_by_role("button", name="People")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".change")).to_have_count(1)
    page.get_by_label("Kind of change").select_option("remove")
    page.get_by_role("button", name="Show all changes").click()
    expect(page.locator(".change")).to_have_count(3)


def test_changes_of_others_appear_and_older_ones_come_in_pages(people, open_page):
    page = open_page(people.url, "activity")
    expect(page.locator(".change")).to_have_count(3)
    for number in range(35):
        people.post("rename", {"cluster": 0, "name": f"name {number}"})
    expect(page.locator(".change").first).to_contain_text("name 34")
    expect(page.locator(".change")).to_have_count(30)
    page.get_by_role("button", name="Older changes").click()
    expect(page.locator(".change")).to_have_count(38)
    expect(page.get_by_role("button", name="Older changes")).to_be_hidden()


def test_details_show_items_and_why_a_name_is_not_taken_back_alone(people, open_page):
    page = open_page(people.url, "activity")
    row(page, "rename").get_by_role("button", name="Details").click()
    expect(row(page, "rename").locator(".strip li").first).to_contain_text("second")
    expect(row(page, "rename")).to_contain_text("Rename the cluster instead")


def test_keys_go_through_the_changes(people, open_page):
    page = open_page(people.url, "activity")
    expect(page.locator(".change")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(row(page, "same")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row(page, "same").locator(".change-details")).to_be_visible()
    expect(row(page, "same")).to_be_focused()
    page.keyboard.press("t")
    expect(row(page, "retract")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Take back the change")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_reader_sees_changes_without_buttons_to_take_them_back(tmp_path, open_page):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    reader = create(settings.token_file, {"people": "read"})[1]
    with background(settings) as url:
        people = changed(Served(url.rstrip("/"), token=secret).make())
        page = open_page(people.url, "activity")
        page.get_by_label("Token", exact=True).fill(reader)
        page.keyboard.press("Enter")
        expect(page.locator(".change")).to_have_count(3)
        expect(page.locator(".notice")).to_contain_text("reading only")
        expect(page.get_by_role("button", name="Take back")).to_have_count(0)


def test_without_changes_the_view_says_what_will_appear(served, open_page):
    served.make()
    page = open_page(served.url, "activity")
    expect(page.get_by_role("heading", name="Nothing has changed yet")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_accessible_and_shows_hostile_names_as_text(dark, people, open_page, shoot):
    people.post("rename", {"cluster": 0, "name": HOSTILE[0] * 4})
    page = open_page(people.url, "activity", dark=dark)
    expect(page.locator(".change").first).to_contain_text(HOSTILE[0])
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"activity-phone-{'dark' if dark else 'light'}")
