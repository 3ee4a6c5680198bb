"""How sure: probabilities of decisions and of pairs of clusters, and whether they hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from confidence.sure import MODEL, STREAM, THRESHOLDS
from linkstream.clusterer.verb_values import plain
from linkstream.confidence.answers import HELD
from page.audits import CONTRAST, NAMELESS
from page.reviewing import skipped_to

N = len(STREAM.vectors)


def answers(*shares):
    """Return 50 answers at each of three margins, of which these shares were right."""
    margins = (-0.2, 0.05, 0.4)  # at which the model tells .35, .80 and .98
    return tuple(
        (HELD, margin, place < 50 * share, 0)
        for margin, share in zip(margins, shares, strict=True)
        for place in range(50)
    )


HOLD, DRIFTED = (0.4, 0.8, 0.98), (0.1, 0.5, 0.7)


def sure(served, model=MODEL, n=N):
    """Make a namespace with a model, and add vectors."""
    served.make(thresholds=plain(THRESHOLDS), confidence=model.to_plain())
    served.add(STREAM.vectors[:n], [{"text": f"item {number}"} for number in range(n)])
    return served


def test_live_decisions_have_their_probability_or_why_it_is_unknown(served, open_page, shoot):
    sure(served)
    page = open_page(served.url)
    cells = page.locator(".decision > .sure")
    expect(cells.first).to_be_visible()
    expect(page.locator('.decision > .sure[title^="Probability that"]').first).to_contain_text("%")
    unknown = page.locator('.decision > .sure[title*="unknown"]')
    for place in range(min(unknown.count(), 3)):
        expect(unknown.nth(place)).to_have_text("–")
    shoot(page, "sure-live")
    page.get_by_role("link", name="How sure?").click()
    expect(page.get_by_role("heading", name="How sure")).to_be_visible()


def test_the_column_says_why_nothing_is_known(served, open_page):
    sure(served, replace(MODEL, identities=5), 40)
    page = open_page(served.url)
    cell = page.locator(".decision > .sure").first
    expect(cell).to_be_visible()
    expect(cell).to_have_attribute(
        "title",
        "Probability unknown: fitted to 5 identities; 20 or "
        "more are needed, or 50 answers, of which there are 0",
    )


def test_without_a_model_decisions_have_no_column_and_the_view_says_why(served, open_page, shoot):
    served.make(thresholds=plain(THRESHOLDS)).add(STREAM.vectors[:40])
    page = open_page(served.url)
    expect(page.locator(".decision").first).to_be_visible()
    expect(page.locator(".decision > .sure").first).to_be_hidden()
    page.goto(f"{served.url}/#/confidence")
    expect(page.locator(".sure-body")).to_contain_text(served.get("confidence")["why"])
    expect(page.get_by_role("heading", name="No model yet")).to_be_visible()
    shoot(page, "sure-none")


def test_a_review_tells_the_probability_that_two_clusters_are_one(served, open_page, shoot):
    sure(served)
    questions = served.get("review?limit=50")["questions"]
    joins = [q for q in questions if q["kind"] == "join" and q["probability"] is not None]
    page = open_page(served.url, "review")
    box = skipped_to(page, questions, joins[0])
    told = f"{round(100 * joins[0]['probability'])} %"
    expect(box).to_contain_text(f"Probability that they are one identity: {told}")
    shoot(page, "sure-review")


def test_a_review_says_why_the_probability_of_a_pair_is_unknown(served, open_page):
    sure(served, replace(MODEL, identities=5))
    page = open_page(served.url, "review")
    questions = served.get("review?limit=50")["questions"]
    skipped_to(page, questions, next(each for each in questions if each["kind"] == "join"))
    expect(page.locator(".same-identity")).to_contain_text("unknown: fitted to 5 identities")


def test_the_diagram_shows_what_was_told_and_what_was_right(served, open_page, shoot):
    sure(served, replace(MODEL, answers=answers(*HOLD)))
    found = served.get("confidence?brief=true")
    assert found["model"] is None
    assert len(found["bins"]) > 1
    assert sum(each["answers"] for each in found["bins"]) == found["check"]["answers"]
    page = open_page(served.url, "confidence")
    box = page.locator(".sure-body")
    expect(box).to_contain_text("Decisions have the probability that they are right.")
    expect(box).to_contain_text("40 identities")
    expect(box).to_contain_text(f"{found['check']['told']:.3f} in the mean of 150 answers")
    expect(page.locator(".sure-point")).to_have_count(len(found["bins"]))
    expect(page.locator(".sure-error")).to_have_count(len(found["bins"]))
    picture = page.get_by_role("img", name="Share that was right")
    for each in found["bins"]:
        words = f"{round(100 * each['told'])} % told, {round(100 * each['right'])} % right"
        assert words in picture.get_attribute("aria-label")
    page.get_by_text("As a table").click()
    expect(page.locator(".sure-table tbody tr")).to_have_count(len(found["bins"]))
    expect(page.locator(".note.warn")).to_have_count(0)
    shoot(page, "sure-diagram")


def test_drift_is_said(served, open_page, shoot):
    sure(served, replace(MODEL, answers=answers(*DRIFTED)), 40)
    assert served.get("confidence")["check"]["has_drifted"]
    page = open_page(served.url, "confidence")
    expect(page.locator(".note.warn")).to_contain_text("The answers contradict the probabilities")
    shoot(page, "sure-drifted")


def test_without_answers_the_view_says_how_to_give_them(served, open_page):
    sure(served, n=40)
    page = open_page(served.url, "confidence")
    expect(page.get_by_role("heading", name="No answers to compare yet")).to_be_visible()
    expect(page.locator(".sure-body")).to_contain_text("/v1/namespaces/people/judge")
    expect(page.locator(".sure-body")).to_contain_text("From 20 answers on")
    for vector in range(1, 13):  # the first had no cluster to be compared with
        served.post("judge", {"vector": vector, "right": True})
    page.reload()
    told = sum(each["answers"] for each in served.get("confidence")["bins"])
    expect(page.get_by_role("img", name=f"of {told} answers")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_accessible(dark, served, open_page, shoot):
    sure(served, replace(MODEL, answers=answers(*DRIFTED)), 40)
    page = open_page(served.url, "confidence", dark=dark)
    page.get_by_text("As a table").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".sure-table")).to_be_visible()
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    shoot(page, f"sure-{'dark' if dark else 'light'}")
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"sure-phone-{'dark' if dark else 'light'}")
    page.goto(f"{served.url}/#/live")
    expect(page.locator(".decision > .sure").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"sure-live-phone-{'dark' if dark else 'light'}")
