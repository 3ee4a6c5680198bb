from __future__ import annotations

import pytest
from playwright.sync_api import expect

from page.audits import CONTRAST, NAMELESS
from page.served import HOSTILE, Served, around, direction

ANN, BOB, CAT = direction(1.0), direction(0, 1.0), direction(0, 0, 1.0)
LOOKS = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 360, "height": 740},
}


class Talk:
    """A recording that goes on: a window of one second each second, of the voices given."""

    def __init__(self, served: Served, name: str = "monday") -> None:
        self.served, self.name, self.n = served, name, 0

    def say(self, *voices, seconds=3):
        for voice in voices:
            rows = around(voice, seconds, seed=self.n)
            times = [[self.n + i, self.n + i + 1] for i in range(seconds)]
            self.served.post(f"turns/{self.name}", {"vectors": rows.tolist(), "times": times})
            self.n += seconds
        return self

    def finish(self):
        return self.served.post(f"turns/{self.name}/finish", {})["final"]


@pytest.fixture
def talk(served):
    served.make()
    return Talk(served).say(ANN, BOB, ANN)


def lane(page, name):
    return page.get_by_role("listitem").filter(has=page.get_by_role("link", name=name, exact=True))


def bars(page, kind, place=0):
    return page.locator(f".lane-{kind}").nth(place).get_attribute("d").count("M")


def test_lanes_grow_as_turns_come_and_pending_ones_are_lighter(talk, open_page, shoot):
    page = open_page(talk.served.url, "turns/monday")
    expect(page.get_by_role("heading", name="monday", level=1)).to_be_visible()
    expect(page.locator(".state")).to_have_text("connected")
    expect(page.locator(".lane")).to_have_count(2)
    assert (bars(page, "final"), bars(page, "pending")) == (2, 1)
    picture = page.get_by_role("img", name="ID 0: 2 turns, 6.0 seconds")
    expect(picture).to_be_visible()
    talk.say(CAT, BOB)
    expect(page.locator(".lane")).to_have_count(3)
    expect(page.get_by_role("img", name="ID 0: 2 turns, 6.0 seconds")).to_be_visible()
    expect(page.locator(".turns-newest .tag")).to_have_text(["pending"])
    shoot(page, "turns-live")
    opacity = "node => getComputedStyle(node).opacity"
    assert page.locator(".lane-pending").first.evaluate(opacity) == "0.45"
    talk.finish()
    expect(page.get_by_text("ended", exact=True)).to_be_visible()
    expect(page.locator(".turns-newest .tag")).to_have_count(0)
    expect(page.get_by_text("3 speakers · 5 turns · 0:15.0")).to_be_visible()
    page.reload()
    expect(page.get_by_text("3 speakers · 5 turns · 0:15.0")).to_be_visible()


def test_a_speaker_gets_a_name_in_place_and_it_can_be_taken_back(talk, open_page):
    talk.finish()
    page = open_page(talk.served.url, "turns/monday")
    page.get_by_role("button", name="Name ID 1").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("Bob")
    page.keyboard.press("Enter")
    expect(lane(page, "Bob")).to_have_count(2)  # the lane, and the newest turns
    assert talk.served.clusters()[1]["name"] == "Bob"
    expect(page.get_by_role("button", name="Rename Bob")).to_be_focused()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Name ID 1")).to_be_visible()
    assert talk.served.clusters()[1]["name"] is None


def test_the_form_of_a_name_is_left_with_escape(talk, open_page):
    page = open_page(talk.served.url, "turns/monday")
    page.get_by_role("button", name="Name ID 0").press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".action-form")).to_be_hidden()
    expect(page.get_by_role("button", name="Name ID 0")).to_be_focused()


def test_a_name_given_elsewhere_appears(talk, open_page):
    page = open_page(talk.served.url, "turns/monday")
    expect(page.locator(".lane")).to_have_count(2)
    talk.served.post("name", {"cluster": 1, "name": "Bob"})
    expect(page.get_by_role("button", name="Rename Bob")).to_be_visible()


def test_turns_may_be_estimated_again_and_the_last_minute_be_shown(talk, open_page):
    talk.say(*[BOB, ANN] * 12)
    page = open_page(talk.served.url, "turns/monday")
    expect(page.get_by_text("2 speakers · 27 turns · 1:21.0")).to_be_visible()
    page.get_by_label("Turns", exact=True).select_option("current")
    expect(page.locator(".turns-newest .tag")).to_have_count(0)
    expect(page.get_by_text("2 speakers · 27 turns · 1:21.0")).to_be_visible()
    before = bars(page, "final")
    page.get_by_label("Show", exact=True).select_option("60")
    expect(page.locator(".lane-axis span").first).to_have_text("0:21.0")
    assert bars(page, "final") < before
    talk.say(CAT, seconds=12)
    expect(page.locator(".lane")).to_have_count(3)


def test_recordings_are_listed_and_an_earlier_one_is_opened_by_name(talk, open_page, shoot):
    Talk(talk.served, "tuesday").say(CAT).finish()
    page = open_page(talk.served.url, "turns")
    rows = page.locator(".turns-list li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("tuesday")
    expect(rows.first).to_contain_text("ended")
    expect(rows.last).to_contain_text("0:09.0 · 9 segments")
    shoot(page, "turns-list")
    page.get_by_role("textbox", name="Recording").fill("monday")
    page.keyboard.press("Enter")
    expect(page.locator(".lane")).to_have_count(2)
    page.get_by_role("link", name="All recordings").click()
    page.get_by_role("link", name="tuesday").click()
    expect(page.locator(".lane")).to_have_count(1)


def test_an_unknown_recording_is_a_problem_with_a_remedy(talk, open_page):
    page = open_page(talk.served.url, "turns/%3Cimg%20src%3Dx%3E")
    expect(page.get_by_role("heading", name="That did not work")).to_be_visible()
    expect(page.get_by_text("a recording called '<img src=x>'")).to_be_visible()


def test_without_recordings_the_page_says_how_to_begin_one(served, open_page):
    served.make()
    page = open_page(served.url, "turns")
    expect(page.get_by_text("No recording in memory")).to_be_visible()
    expect(page.locator(".command")).to_contain_text("turns/monday")


def test_hostile_names_are_shown_as_text(served, open_page):
    served.make()
    talk = Talk(served)
    for place, name in enumerate(HOSTILE):
        talk.say(direction(*[0.0] * place, 1.0))
        cluster = served.clusters()[place]["id"]
        served.post("name", {"cluster": cluster, "name": name})
    page = open_page(served.url, "turns/monday")
    expect(page.locator(".lane")).to_have_count(len(HOSTILE))
    expect(page.locator(".lane .chip").first).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".lane img, .lane script").count() == 0
    assert "\u202e" not in page.locator(".lanes").inner_text()


@pytest.mark.parametrize("look", LOOKS)
def test_the_view_can_be_read_and_used_by_all(talk, open_page, shoot, look):
    talk.say(CAT, BOB, ANN, BOB)
    talk.served.post("name", {"cluster": 0, "name": "Ann Lee"})
    talk.served.post("name", {"cluster": 1, "name": "Bartholomew of a very long name indeed"})
    page = open_page(talk.served.url, "turns/monday", **LOOKS[look])
    expect(page.locator(".lane")).to_have_count(3)
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shoot(page, f"turns-{look}")
