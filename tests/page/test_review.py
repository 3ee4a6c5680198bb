from __future__ import annotations

import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import Served, around, direction, two_alike


def clusters_of(served):
    return {cluster["id"]: cluster["size"] for cluster in served.clusters()}


@pytest.fixture
def asked(served):
    served.make()
    two_alike(served)
    return served


def test_an_answer_merges_two_clusters_and_undo_brings_them_back(asked, open_page, shoot):
    before = clusters_of(asked)
    page = open_page(asked.url, "review")
    expect(page.get_by_text("Are these two clusters the same?")).to_be_visible()
    expect(page.locator(".side").nth(0)).to_contain_text("first")
    expect(page.locator(".side").nth(1)).to_contain_text("second")
    shoot(page, "review-text")
    page.get_by_role("button", name="Same").click()
    expect(page.get_by_text("1 answered")).to_be_visible()
    assert len(clusters_of(asked)) == len(before) - 1
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert clusters_of(asked) == before
    expect(page.locator(".side").nth(1)).to_contain_text("second")


def test_keys_alone_answer_put_off_and_undo(asked, open_page):
    before = clusters_of(asked)
    page = open_page(asked.url, "review")
    question = page.locator(".question")
    expect(question).to_be_visible()
    first = question.get_attribute("data-pair")
    for key, words in (("ArrowLeft", "1 answered"), ("d", "2 answered"), ("u", "1 answered")):
        page.keyboard.press(key)
        expect(page.get_by_text(words)).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("0 answered")).to_be_visible()
    expect(page.locator(f'.question[data-pair="{first}"]')).to_be_visible()
    page.keyboard.press("Space")
    expect(page.locator(f'.question:not([data-pair="{first}"])')).to_be_visible()
    expect(page.get_by_text("1 not sure")).to_be_visible()
    page.reload()
    expect(page.locator(f'.question[data-pair="{first}"]')).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text("1 answered")).to_be_visible()
    assert len(clusters_of(asked)) == len(before) - 1


def test_the_tabs_reach_a_review_by_keyboard(asked, open_page):
    page = open_page(asked.url, "cluster")
    expect(page.locator(".person")).to_have_count(3)
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.view") == "review":
            break
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Not sure: ask again after the others")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".question")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".side .chip").nth(1)).to_be_focused()


def test_messages_are_announced_to_screen_readers(asked, open_page):
    page = open_page(asked.url, "review")
    told = page.locator("p[aria-live=polite]")
    expect(told).to_contain_text("the same as")
    page.keyboard.press("s")
    expect(told).to_contain_text("Same: ID 0 and ID 1 are one cluster now")


def test_an_undo_leaves_what_came_after_the_answer(asked, open_page):
    page = open_page(asked.url, "review")
    expect(page.locator(".question")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text("1 answered")).to_be_visible()
    asked.add(around(direction(0, 0, 0, 1.0), 3))
    page.keyboard.press("u")
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert asked.get("stats")["vectors"] == 21
    assert len(asked.clusters()) == 4


def test_any_answer_of_the_sitting_is_taken_back_alone(asked, open_page, shoot):
    page = open_page(asked.url, "review")
    for key, words in (("s", "1 answered"), ("d", "2 answered")):
        expect(page.locator(".question")).to_be_visible()
        page.keyboard.press(key)
        expect(page.get_by_text(words)).to_be_visible()
    listed = page.locator(".answered li")
    expect(listed).to_have_count(2)
    expect(listed.nth(1)).to_contain_text("Same: ID 0 and ID 1 are one cluster now")
    expect(listed.nth(1).locator(".answered-shown")).to_contain_text("first")
    expect(page.get_by_text("1 joined, 1 kept apart, 6 vectors corrected")).to_be_visible()
    shoot(page, "review-sitting")
    listed.nth(1).get_by_role("button", name="Take back").click()
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text("Different")
    assert len(asked.clusters()) == 3
    assert [each["verb"] for each in asked.get("corrections")["corrections"]] == ["different"]


def test_a_question_that_is_put_off_comes_after_the_others_without_a_correction(asked, open_page):
    page = open_page(asked.url, "review")
    question = page.locator(".question")
    expect(question).to_be_visible()
    first = question.get_attribute("data-pair")
    count = len(asked.get("review")["questions"])
    for number in range(count):
        page.get_by_role("button", name="Not sure").click()
        expect(page.get_by_text(f"{number + 1} not sure")).to_be_visible()
    expect(page.locator(f'.question[data-pair="{first}"]')).to_contain_text("you were not sure")
    assert asked.get("corrections")["corrections"] == []


def test_a_question_stays_while_vectors_arrive(asked, open_page):
    page = open_page(asked.url, "review")
    question = page.locator(".question")
    expect(question).to_be_visible()
    question.evaluate("(node) => { node.dataset.seen = 'yes'; }")
    asked.add(around(direction(0.6, 0.8), 30, seed=5))
    page.wait_for_function("async () => (await fetch('/v1/namespaces/people/stats')).ok")
    expect(question).to_have_attribute("data-seen", "yes")
    page.keyboard.press("s")
    expect(page.get_by_text("1 answered")).to_be_visible()
    assert len(asked.clusters()) == 2


def test_an_answer_about_clusters_that_were_joined_elsewhere_does_nothing(asked, open_page):
    page = open_page(asked.url, "review")
    expect(page.locator(".question")).to_contain_text("ID 1")
    asked.post("same", {"a": 2, "b": 1, "of": "clusters"})  # ID 2 is gone, or ID 1
    joined = clusters_of(asked)
    asked.post("same", {"a": min(joined), "b": max(joined), "of": "clusters"})
    page.keyboard.press("d")
    expect(page.locator(".toast.bad")).to_contain_text("changed while you looked")
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert len(clusters_of(asked)) == 1


def test_a_question_whose_clusters_are_gone_is_answered_by_nothing(asked, open_page):
    page = open_page(asked.url, "review")
    expect(page.locator(".question")).to_contain_text("ID 1")
    asked.post("forget", {"cluster": 1})
    before = clusters_of(asked)
    page.keyboard.press("s")
    expect(page.locator(".toast.bad")).to_contain_text("changed while you looked")
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert clusters_of(asked) == before


def test_a_reader_cannot_answer_and_sees_why_before_a_key_is_pressed(tmp_path, open_page):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    reader = create(settings.token_file, {"people": "read"})[1]
    with background(settings) as url:
        people = Served(url.rstrip("/"), token=secret).make()
        two_alike(people)
        page = open_page(people.url, "review")
        page.get_by_label("Token", exact=True).fill(reader)
        page.keyboard.press("Enter")
        expect(page.locator(".notice")).to_contain_text("a token with the scope write")
        expect(page.get_by_role("button", name="Same")).to_be_disabled()
        page.keyboard.press("s")
        expect(page.get_by_text("0 answered")).to_be_visible()
        assert len(people.clusters()) == 3


def test_new_questions_appear_where_nothing_was_asked(served, open_page):
    served.make()
    page = open_page(served.url, "review")
    expect(page.get_by_text("Nothing to review yet")).to_be_visible()
    two_alike(served)
    expect(page.locator(".question")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_the_answers_stay_in_sight_on_a_phone(dark, asked, open_page, shoot):
    page = open_page(asked.url, "review", width=360, height=640, dark=dark)
    expect(page.locator(".question")).to_be_visible()
    for name in ("Same", "Different", "Not sure"):
        expect(page.get_by_role("button", name=name)).to_be_in_viewport()
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"review-phone-{'dark' if dark else 'light'}")


def test_a_contradicting_answer_is_reported_and_changes_nothing(asked, open_page):
    page = open_page(asked.url, "review")
    expect(page.locator(".question")).to_be_visible()
    a, b = map(int, page.locator(".question").get_attribute("data-pair").split("-"))
    asked.post("different", {"a": a, "b": b, "of": "subclusters"})
    page.keyboard.press("s")
    expect(page.locator(".toast.bad")).to_be_visible()
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert len(asked.clusters()) == 3


def test_without_questions_the_page_says_what_to_do(served, open_page):
    served.make()
    page = open_page(served.url, "review")
    expect(page.get_by_text("Nothing to review yet")).to_be_visible()
    expect(page.locator(".command")).to_contain_text("/vectors")
    served.add(around(direction(1.0), 1))
    page.reload()
    expect(page.get_by_role("heading", name="Nothing to ask")).to_be_visible()
