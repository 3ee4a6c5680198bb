from __future__ import annotations

import pytest
from playwright.sync_api import expect

from page.served import around, direction, two_alike


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


def test_keys_alone_answer_skip_and_undo(asked, open_page):
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
    for _ in range(6):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Review")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator(".keys")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".side .chip").nth(1)).to_be_focused()


def test_messages_are_announced_to_screen_readers(asked, open_page):
    page = open_page(asked.url, "review")
    told = page.locator("p[aria-live=polite]")
    expect(told).to_contain_text("the same as")
    page.keyboard.press("s")
    expect(told).to_contain_text("Same: they are one cluster now")


def test_an_undo_asks_before_it_reverts_newer_vectors(asked, open_page, shoot):
    page = open_page(asked.url, "review")
    expect(page.locator(".question")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text("1 answered")).to_be_visible()
    asked.add(around(direction(0, 0, 0, 1.0), 3))
    page.keyboard.press("u")
    expect(page.get_by_role("dialog")).to_contain_text("3 events followed this correction")
    shoot(page, "review-more-came")
    page.get_by_role("button", name="Leave it").click()
    expect(page.get_by_text("1 answered")).to_be_visible()
    assert asked.get("stats")["vectors"] == 21
    page.keyboard.press("u")
    page.get_by_role("button", name="Undo all").click()
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert asked.get("stats")["vectors"] == 18


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
