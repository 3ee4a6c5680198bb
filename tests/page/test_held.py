"""Vectors that wait for a decision, on the page: what they would get, answers, undo."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from confidence.sure import STREAM
from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import HOSTILE, Served
from page.test_confidence import sure

FIRST = 60  # vectors that are decided on at once


@pytest.fixture
def people(served):
    """A namespace with some vectors that are held."""
    return waiting(served)


def waiting(served, words="item"):
    sure(served, n=FIRST)
    served.post("accept", {"probability": 0.85, "unsure": "hold"})
    payloads = [{"text": f"{words} {number}"} for number in range(FIRST, len(STREAM.vectors))]
    served.add(STREAM.vectors[FIRST:], payloads)
    assert len(served.get("held")["held"]) > 3
    return served


def state_of(served):
    return served.call("GET", f"/v1/namespaces/{served.namespace}?hash=true")["state_hash"]


def held_in(served, kind=None):
    """Return the held vectors, the first one asked about first."""
    found = served.get("held?limit=50")["held"]
    return [each for each in found if kind is None or (each["cluster"] == -1) == (kind == "new")]


def shown(page, vector):
    box = page.locator(f'.question[data-vector="{vector}"]')
    expect(box).to_be_visible()
    return box


def test_a_held_vector_is_put_where_it_would_go_and_undo_holds_it_again(people, open_page, shoot):
    before, first = state_of(people), held_in(people)[0]
    page = open_page(people.url, "review")
    page.get_by_role("link", name="Held vectors").click()
    box = shown(page, first["vector"])
    expect(box).to_contain_text(f"item {first['vector']}")
    expect(box.locator(".same-identity")).to_contain_text("Probability that this is right")
    shoot(page, "held")
    page.keyboard.press("ArrowRight")
    expect(page.locator("p[aria-live=polite]")).to_contain_text("Decided: it is in")
    second = held_in(people)[0]
    assert second["vector"] != first["vector"]
    shown(page, second["vector"])
    page.keyboard.press("u")
    shown(page, first["vector"])
    assert state_of(people) == before


def test_a_vector_that_would_be_given_a_cluster_may_begin_a_new_one(people, open_page):
    clusters = len(people.clusters())
    page = open_page(people.url, "held")
    for each in held_in(people):
        shown(page, each["vector"])
        if each["cluster"] != -1:
            break
        page.keyboard.press("n")
    page.get_by_role("button", name="A new cluster").click()
    expect(page.locator("p[aria-live=polite]")).to_contain_text("is in a new cluster")
    assert len(people.clusters()) == clusters + 1


def test_an_undo_after_newer_vectors_asks_first(people, open_page):
    first = held_in(people)[0]
    page = open_page(people.url, "held")
    shown(page, first["vector"])
    page.keyboard.press("a")
    expect(page.locator("p[aria-live=polite]")).to_contain_text("is in")
    people.add(STREAM.vectors[:1])
    page.keyboard.press("u")
    expect(page.get_by_role("dialog")).to_contain_text("Newer changes exist")
    page.get_by_role("button", name="Leave it").click()
    about = people.call("GET", f"/v1/namespaces/{people.namespace}")
    assert about["vectors"] == len(STREAM.vectors) + 1


def test_items_that_are_put_off_come_again_after_the_others(people, open_page):
    page = open_page(people.url, "held")
    for each in held_in(people):
        shown(page, each["vector"])
        page.keyboard.press("Space")
    box = shown(page, held_in(people)[0]["vector"])
    expect(box).to_contain_text("you were not sure")
    assert len(held_in(people)) == len(people.get("held?limit=50")["held"])


def test_the_answers_of_the_sitting_are_listed_and_taken_back(people, open_page):
    before, first = state_of(people), held_in(people)[0]
    page = open_page(people.url, "held")
    shown(page, first["vector"])
    page.keyboard.press("a")
    expect(page.locator(".answered li")).to_have_count(1)
    shown(page, held_in(people)[0]["vector"])
    page.keyboard.press("a")
    expect(page.locator(".answered li")).to_have_count(2)
    page.locator(".answered li").nth(1).get_by_role("button", name="Take back").click()
    expect(page.get_by_role("dialog")).to_contain_text("Newer changes exist")
    page.get_by_role("button", name="Undo all").click()
    expect(page.locator(".answered li")).to_have_count(0)
    assert state_of(people) == before


def test_without_held_items_a_form_holds_unsure_ones(served, open_page, shoot):
    sure(served, n=20)
    page = open_page(served.url, "held")
    expect(page.get_by_role("heading", name="No vector waits")).to_be_visible()
    shoot(page, "held-none")
    page.get_by_label("Hold vectors below").fill("90")
    page.get_by_role("button", name="Hold unsure vectors").click()
    expect(page.locator(".stage")).to_contain_text("less than 90 %")
    assert served.get("policy")["probability"] == 0.9
    page.get_by_role("button", name="Hold no more").click()
    expect(page.locator(".stage")).to_contain_text("decided on at once")


def test_a_reader_sees_held_vectors_and_changes_nothing(tmp_path, open_page):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    reader = create(settings.token_file, {"people": "read"})[1]
    with background(settings) as url:
        people = waiting(Served(url.rstrip("/"), token=secret))
        before, first = state_of(people), held_in(people)[0]
        page = open_page(people.url, "held")
        page.get_by_label("Token", exact=True).fill(reader)
        page.keyboard.press("Enter")
        shown(page, first["vector"])
        expect(page.locator(".notice")).to_contain_text("Your token allows reading only")
        expect(page.locator('.answer[data-action="accept"]')).to_be_disabled()
        page.keyboard.press("ArrowRight")
        expect(page.locator("p[aria-live=polite]")).to_contain_text("reading only")
        assert state_of(people) == before


def test_hostile_payloads_are_shown_as_text(served, open_page):
    people = waiting(served, HOSTILE[0])
    page = open_page(people.url, "held")
    expect(page.locator(".question")).to_contain_text(HOSTILE[0])


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_accessible(dark, people, open_page, shoot):
    page = open_page(people.url, "held", dark=dark)
    shown(page, held_in(people)[0]["vector"])
    expect(page.locator(".question")).to_be_focused()
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"held-phone-{'dark' if dark else 'light'}")
