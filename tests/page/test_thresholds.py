"""The thresholds view: lines, sliders, and texts that agree with the figures of the service."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from page.served import DIMENSION, THRESHOLDS

FLAGS = ".thresholds-similarity .histogram-flag"


@pytest.fixture
def people(served):
    """Add overlapping clusters, so that there are edges and similar pairs."""
    served.make()
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, DIMENSION))
    X = centres[rng.integers(0, 12, 300)] + 0.6 * rng.standard_normal((300, DIMENSION))
    served.add(X / np.linalg.norm(X, axis=1, keepdims=True))
    return served


def count(page, kind):
    """Return the figure of a line of the verdict."""
    return int(page.locator(f".verdict [data-kind={kind}]").get_attribute("data-count"))


def press(page, name, key, times):
    page.locator(f"input#{name}").focus()
    for _ in range(times):
        page.keyboard.press(key)


def test_the_three_thresholds_are_lines_among_the_similarities(people, open_page, shoot):
    page = open_page(people.url, "thresholds?numbers=1")
    expect(page.locator(FLAGS)).to_have_count(3)
    for name, value in THRESHOLDS.items():
        flag = page.locator(f"{FLAGS}[data-name={name}]")
        expect(flag).to_have_attribute("data-at", f"{value:.4f}")
    rows = page.locator(".thresholds-similarity .histogram")
    for row in range(rows.count()):
        assert rows.nth(row).locator("line").count() == 3
        assert rows.nth(row).locator(".histogram-bars rect").count() > 0
    shoot(page, "thresholds?numbers=1")


def test_flags_do_not_cover_one_another(people, open_page):
    page = open_page(people.url, "thresholds?numbers=1", width=390)
    expect(page.locator(FLAGS)).to_have_count(3)
    press(page, "subcluster_similarity", "ArrowLeft", 8)
    boxes = [page.locator(FLAGS).nth(at).bounding_box() for at in range(3)]
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            beside = abs(one["x"] - other["x"]) >= one["width"] - 1
            assert beside or abs(one["y"] - other["y"]) >= one["height"] - 1


@pytest.mark.parametrize(("name", "axis"), [("cluster_similarity", 0), ("pair_similarity_max", 1)])
def test_a_slider_moves_its_line_and_shows_the_figures_of_the_service(
    people, open_page, name, axis
):
    found = people.get("margins")
    now, zero = found["moves"].index(0), found["margin_bins"]["zero"]
    page = open_page(people.url, "thresholds?numbers=1")
    press(page, name, "ArrowRight", 4)
    flag = page.locator(f"{FLAGS}[data-name={name}]")
    expect(flag).to_have_attribute("data-at", f"{THRESHOLDS[name] + 0.04:.4f}")
    expect(page.locator(f"output[for={name}]")).to_contain_text("(+0.04)")
    c, p = (now + 4, now) if axis == 0 else (now, now + 4)
    assert count(page, "failing") == sum(found["edge"]["edges"][c][p][:zero])
    assert count(page, "passing") == sum(found["edge"]["pairs"][c][p][zero:])


def test_the_subcluster_slider_shows_merges(people, open_page):
    found = people.get("margins")["subcluster"]["merged"]
    page = open_page(people.url, "thresholds?numbers=1")
    press(page, "subcluster_similarity", "Home", 1)
    assert count(page, "merging") == found[0] > 0


def test_reset_moves_all_sliders_back(people, open_page, shoot):
    page = open_page(people.url, "thresholds?numbers=1", dark=True)
    back = page.get_by_role("button", name="Reset")
    expect(back).to_be_disabled()
    failing = count(page, "failing")
    press(page, "cluster_similarity", "End", 1)
    assert count(page, "failing") > failing
    expect(page.locator(".histogram-bars .marked").first).to_be_attached()
    shoot(page, "thresholds-moved-dark")
    back.click()
    expect(back).to_be_disabled()
    assert count(page, "failing") == failing
    for name, value in THRESHOLDS.items():
        flag = page.locator(f"{FLAGS}[data-name={name}]")
        expect(flag).to_have_attribute("data-at", f"{value:.4f}")


def test_invalid_thresholds_are_reported(people, open_page):
    high = {
        "cluster_similarity": 0.95,
        "subcluster_similarity": 0.97,
        "pair_similarity_max": 0.96,
    }
    people.call("PUT", "/v1/namespaces/strict", {"thresholds": high})
    people.call("POST", "/v1/namespaces/strict/vectors", {"vectors": np.eye(4).tolist()})
    page = open_page(people.url, "thresholds?in=strict&numbers=1")
    press(page, "subcluster_similarity", "End", 1)
    expect(page.locator(".verdict")).to_contain_text("These thresholds are not valid")


def test_the_page_says_what_the_figures_mean_and_what_to_run(people, open_page):
    page = open_page(people.url, "thresholds?numbers=1")
    words = page.locator(".thresholds-meaning")
    expect(words).to_contain_text("effect of other thresholds on the current graph")
    expect(words).to_contain_text(
        "A run with other thresholds from the start would give other subclusters"
    )
    expect(words.locator("code")).to_have_text(re.compile("^linkstream tune "))


def test_without_vectors_the_page_says_what_to_do(served, open_page):
    served.make()
    page = open_page(served.url, "thresholds?numbers=1")
    expect(page.get_by_text("Nothing to compare yet")).to_be_visible()


def move(page, key, times):
    page.locator("#strictness").focus()
    for _ in range(times):
        page.keyboard.press(key)


@pytest.fixture
def topics(served):
    """Add clusters in pieces, so that looser thresholds would join some of them."""
    strict = {
        "cluster_similarity": 0.78,
        "subcluster_similarity": 0.85,
        "pair_similarity_max": 0.93,
    }
    served.make(thresholds=strict, keep_vectors=True)
    rng = np.random.default_rng(0)
    who = rng.integers(0, 12, 300)
    X = rng.standard_normal((12, DIMENSION))[who] + 0.6 * rng.standard_normal((300, DIMENSION))
    texts = [{"text": f"topic {each}"} for each in who]
    served.add(X / np.linalg.norm(X, axis=1, keepdims=True), texts)
    return served


def test_looser_shows_what_would_come_together(topics, open_page, shoot):
    page = open_page(topics.url, "thresholds")
    expect(page.locator(".strictness-words")).to_contain_text("how it is now")
    move(page, "ArrowLeft", 4)
    expect(page.locator(".strictness-words")).to_contain_text("Somewhat looser")
    together = page.get_by_role("region", name="Would come together")
    expect(together.locator(".example-pair").first).to_be_visible()
    expect(together.locator(".said").first).to_contain_text("topic")
    shoot(page, "thresholds-looser")


def test_stricter_shows_what_would_come_apart_and_the_address_keeps_it(topics, open_page):
    page = open_page(topics.url, "thresholds", width=320, dark=True)
    move(page, "ArrowRight", 5)
    apart = page.get_by_role("region", name="Would come apart")
    expect(apart.locator(".example-pair").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.reload()
    expect(apart.locator(".example-pair").first).to_be_visible()
    expect(page.locator(".strictness-words")).to_contain_text("stricter")
    page.get_by_role("button", name="As now").click()
    expect(apart).to_have_count(0)


def test_a_choice_is_applied_by_a_rebuild(topics, open_page):
    page = open_page(topics.url, "thresholds")
    move(page, "ArrowLeft", 4)
    page.get_by_role("link", name="Preview it for all vectors").click()
    expect(page.locator("#rebuild-thresholds")).to_have_value("given")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="What has changed")).to_be_visible()
    assert topics.get("thresholds")["cluster_similarity"] == pytest.approx(0.74)
