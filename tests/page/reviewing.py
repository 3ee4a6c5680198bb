"""Going through the questions of a review."""

from __future__ import annotations

from playwright.sync_api import expect


def skipped_to(page, questions, wanted):
    """Skip questions up to one; return its element."""
    for question in questions:
        pair = "-".join(map(str, question["subclusters"]))
        box = page.locator(f'.question[data-pair="{pair}"]')
        expect(box).to_be_visible()
        if question is wanted:
            return box
        page.keyboard.press("n")
    raise AssertionError("there is no such question")
