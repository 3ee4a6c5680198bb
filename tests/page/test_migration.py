"""The migration to another encoder on the page: its status, what its end would change, its end."""

from __future__ import annotations

import re
import socket
import threading

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service import rebuild_work
from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.reviewing import skipped_to
from page.served import DIMENSION, HOSTILE, Served

N, SEEN = 160, 120
THRESHOLDS = {
    "cluster_similarity": 0.6,
    "subcluster_similarity": 0.7,
    "pair_similarity_max": 0.85,
}


def views():
    """Return vectors of one encoder, and of another of fewer dimensions that sees less."""
    rng = np.random.default_rng(5)
    middles = rng.standard_normal((10, DIMENSION))
    rows = middles[rng.integers(10, size=N)] + 0.6 * rng.standard_normal((N, DIMENSION))
    others = rows @ np.linalg.qr(rng.standard_normal((DIMENSION, 12)))[0]
    others += 0.3 * rng.standard_normal(others.shape)
    return tuple(
        np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), "f4") for x in (rows, others)
    )


def begun(served, seen=SEEN, model="encoder-2"):
    """Begin a migration that has seen some of the vectors."""
    rows, _ = views()
    served.add(rows, [{"text": f"item {number}"} for number in range(N)])
    served.post("migration", {"space": {"model": model}, "thresholds": THRESHOLDS})
    send(served, 0, seen)
    return served


def send(served, start, end):
    _, others = views()
    numbers = list(range(start, end))
    served.post("migration/vectors", {"vectors": others[start:end].tolist(), "numbers": numbers})


@pytest.fixture
def people(served):
    found = begun(served.make())
    joined = next(
        f for f in served.get("migration/report")["rebuild"]["flows"] if f["kind"] == "joined"
    )
    served.post("name", {"cluster": joined["cluster"], "name": "Ann"})
    return found


def differ(each):
    """Return whether the two encoders are on different sides of their thresholds."""
    return (each["before"] < 0) != (each["similarity"] < each["threshold"])


def state_of(served):
    return served.call("GET", f"/v1/namespaces/{served.namespace}?hash=true")["state_hash"]


def test_without_a_migration_nothing_is_shown_of_it(served, open_page):
    served.make().add(views()[0])
    page = open_page(served.url, "rebuild")
    expect(page.get_by_role("heading", name="No preview yet")).to_be_visible()
    expect(page.locator(".migration")).to_have_count(0)


def test_the_status_follows_what_comes(people, open_page, shoot):
    page = open_page(people.url, "rebuild")
    card = page.locator(".migration")
    expect(card).to_contain_text("encoder-2")
    expect(card).to_contain_text("120 of 160 re-embedded, 12 dimensions")
    expect(card).to_contain_text("40 vectors are missing, and would be translated")
    expect(page.get_by_role("progressbar", name="Share re-embedded")).to_have_js_property(
        "value", 0.75
    )
    page.get_by_text("Which are missing?").click()
    expect(page.locator(".migration-missing li")).to_have_count(21)
    expect(page.locator(".migration-missing")).to_contain_text("vector 120")
    expect(page.locator(".migration-missing")).to_contain_text("and 20 more")
    shoot(page, "migration-status")
    send(people, 120, 160)
    expect(card).to_contain_text("All vectors are re-embedded.")
    expect(page.get_by_text("Which are missing?")).to_be_hidden()


def test_too_few_vectors_cannot_end_it_and_the_page_says_what_to_send(served, open_page, shoot):
    begun(served.make(), seen=4)
    page = open_page(served.url, "rebuild")
    card = page.locator(".migration")
    expect(card).to_contain_text("POST …/migration/vectors")
    expect(page.get_by_role("button", name="Preview the end")).to_be_disabled()
    expect(page.get_by_role("button", name="Finish…")).to_be_disabled()
    shoot(page, "migration-few")
    send(served, 4, 20)
    expect(page.get_by_role("button", name="Preview the end")).to_be_enabled()


def test_a_preview_shows_what_the_end_would_change_and_changes_nothing(people, open_page, shoot):
    before, report = state_of(people), people.get("migration/report")
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview the end").click()
    expect(page.get_by_role("heading", name="What the end would change")).to_be_visible()
    counts = page.locator(".rebuild-counts")
    expect(counts).to_contain_text(" → ".join(map(str, report["rebuild"]["n_clusters"])))
    expect(counts).to_contain_text("Re-embedded120 of 160")
    expect(counts).to_contain_text("Translated40")
    expect(counts).to_contain_text(f"{report['loss']['cosine']:.3f}")
    expect(counts).to_contain_text(f"{100 * report['loss']['changed']:.1f} %")
    expect(counts).to_contain_text("0.600 · 0.700 · 0.850")
    expect(page.locator(".rebuild-names")).to_contain_text("Ann")
    rows = page.locator(".disagreements li")
    expect(rows).to_have_count(min(len(report["disagreements"]), 20))
    found = sorted(report["disagreements"], key=lambda each: not differ(each))
    assert differ(found[0])
    assert not differ(found[-1])
    expect(page.locator(".disagreements .warn")).to_have_count(sum(map(differ, found)))
    for place, each in enumerate(found[:4]):
        views = rows.nth(place).locator(".views")
        expect(views).to_contain_text(f"{abs(each['before']):.3f}")
        expect(views).to_contain_text(f"{abs(each['similarity'] - each['threshold']):.3f}")
        expect(rows.nth(place)).to_contain_text(f"item {each['vectors'][0]}")
    shoot(page, "migration-preview")
    page.locator(".disagreements").scroll_into_view_if_needed()
    shoot(page, "migration-disagreements")
    assert state_of(people) == before
    assert people.get("migration")["migration"]["reencoded"] == SEEN


def test_the_end_is_confirmed_then_done_and_undo_takes_it_back(people, open_page, shoot):
    before = state_of(people)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Finish…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Go on with encoder-2?")
    expect(dialog).to_contain_text("40 vectors will be translated")
    shoot(page, "migration-confirm")
    page.get_by_role("button", name="Not yet").click()
    assert state_of(people) == before
    page.get_by_role("button", name="Finish…").click()
    page.get_by_role("button", name="Finish", exact=True).click()
    expect(page.get_by_role("heading", name="What the other encoder has changed")).to_be_visible()
    expect(page.locator(".migration")).to_have_count(0)
    shoot(page, "migration-finished")
    assert people.get("migration")["migration"] is None
    assert people.get("space")["model"] == "encoder-2"
    page.get_by_role("link", name="Answer them in Review").click()
    expect(page.locator(".view-review h1")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Taken back: the end of the migration")).to_be_visible()
    assert state_of(people) == before


def test_a_review_shows_both_encoders_where_they_disagree(people, open_page, shoot):
    job = people.post("migration/finish", {})["job"]
    assert people.get(f"rebuilds/{job}?wait=30")["state"] == "done"
    questions = people.get("review")["questions"]
    question = next(each for each in questions if each["before"] is not None)
    page = open_page(people.url, "review")
    box = skipped_to(page, questions, question)
    disagree = (question["before"] < 0) != (question["margin"] < 0)
    expect(box).to_contain_text("the encoders disagree" if disagree else "changed with the encoder")
    expect(box.locator(".gauge")).to_have_count(2)
    old = box.get_by_role("img", name=re.compile("Old encoder"))
    side = "below" if question["before"] < 0 else "above"
    expect(old).to_have_attribute(
        "aria-label", re.compile(f"{abs(question['before']):.3f} {side} its threshold")
    )
    shoot(page, "review-encoders")


def test_an_abandoned_migration_is_dropped_and_nothing_changes(people, open_page):
    before = state_of(people)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Preview the end").click()
    expect(page.get_by_role("heading", name="What the end would change")).to_be_visible()
    page.get_by_role("button", name="Abandon…").click()
    expect(page.get_by_role("dialog")).to_contain_text("120 vectors of the other encoder")
    page.get_by_role("button", name="Abandon it").click()
    expect(page.locator(".toast")).to_contain_text("Abandoned: 120 vectors dropped")
    expect(page.locator(".migration")).to_have_count(0)
    expect(page.get_by_role("heading", name="No preview yet")).to_be_visible()
    assert people.get("migration")["migration"] is None
    assert state_of(people) == before


@pytest.fixture
def gate(monkeypatch):
    """Hold up every computation at a share of .5 until `set` is called."""
    opened, prepare = threading.Event(), rebuild_work.prepare_end

    def held_up(handle, progress, **given):
        found = prepare(handle, progress, **given)
        while not opened.wait(0.01):
            progress(0.5)
        return found

    monkeypatch.setattr(rebuild_work, "prepare_end", held_up)
    yield opened
    opened.set()


def test_the_end_can_be_cancelled_while_it_is_computed(people, gate, open_page, shoot):
    before = state_of(people)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Finish…").click()
    page.get_by_role("button", name="Finish", exact=True).click()
    bar = page.get_by_role("progressbar", name="Share of the rebuild")
    expect(bar).to_have_js_property("value", 0.5)
    for name in ("Preview the end", "Finish…", "Abandon…", "Preview"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    shoot(page, "migration-running")
    page.reload()  # the job goes on, and the page finds it again
    expect(bar).to_have_js_property("value", 0.5)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".toast")).to_contain_text("Cancelled: nothing has changed.")
    expect(page.get_by_role("button", name="Finish…")).to_be_enabled()
    assert state_of(people) == before
    assert people.get("migration")["migration"]["reencoded"] == SEEN


def test_a_service_that_is_started_again_meanwhile_keeps_the_migration(
    tmp_path, gate, open_page, shoot
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = Settings(data=tmp_path / "data", port=port, threads=1)
    with background(settings) as url:
        people = begun(Served(url.rstrip("/")).make())
        before = state_of(people)
        page = open_page(people.url, "rebuild")
        page.get_by_role("button", name="Finish…").click()
        page.get_by_role("button", name="Finish", exact=True).click()
        bar = page.get_by_role("progressbar", name="Share of the rebuild")
        expect(bar).to_have_js_property("value", 0.5)
        page.context.route("**/rebuilds/**", lambda route: route.abort())  # as after a kill
        words = "The service does not answer; trying again."
        expect(page.locator(".rebuild-running")).to_contain_text(words)
    gate.set()
    with background(settings):
        page.context.unroute_all()
        expect(page.get_by_role("heading", name="The service was started again")).to_be_visible()
        shoot(page, "migration-forgotten")
        page.get_by_role("button", name="Start over").click()
        assert state_of(people) == before
        page.get_by_role("button", name="Finish…").click()
        page.get_by_role("button", name="Finish", exact=True).click()
        expect(
            page.get_by_role("heading", name="What the other encoder has changed")
        ).to_be_visible()
        page.context.close()


def test_what_keeps_coming_is_held_back_on_request(people, open_page, monkeypatch):
    prepare, held = rebuild_work.prepare_end, []

    def overtaken(handle, progress, **given):
        found = prepare(handle, progress, **given)
        if not held:
            send(people, 0, 1)
        return found

    monkeypatch.setattr(rebuild_work, "prepare_end", overtaken)
    page = open_page(people.url, "rebuild")
    page.get_by_role("button", name="Finish…").click()
    page.get_by_role("button", name="Finish", exact=True).click()
    expect(page.get_by_role("heading", name="That did not work")).to_be_visible()
    expect(page.locator(".problem")).to_contain_text("wait until it is done, and reads go on")
    assert people.get("migration")["migration"]["reencoded"] == SEEN
    sent = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    held.append(True)
    page.get_by_role("button", name="Hold changes back and finish").click()
    expect(page.get_by_role("heading", name="What the other encoder has changed")).to_be_visible()
    assert any('"hold":true' in body for body in sent)


def test_a_reader_sees_the_migration_and_can_change_nothing(tmp_path, open_page):
    settings = Settings(data=tmp_path / "data", port=0)
    settings.data.mkdir()
    secret = create(settings.token_file, {"*": "admin"})[1]
    reader = create(settings.token_file, {"people": "read"})[1]
    with background(settings) as url:
        begun(Served(url.rstrip("/"), token=secret).make())
        page = open_page(url.rstrip("/"), "rebuild")
        page.get_by_label("Token", exact=True).fill(reader)
        page.keyboard.press("Enter")
        expect(page.locator(".migration")).to_contain_text("120 of 160 re-embedded")
        expect(page.locator(".migration")).to_contain_text("Your token allows reading only.")
        for name in ("Preview the end", "Finish…", "Abandon…"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()


@pytest.mark.parametrize("words", HOSTILE[:4])
def test_hostile_models_and_payloads_are_shown_as_text(words, served, open_page):
    served.make()
    rows, _ = views()
    served.add(rows, [{"text": words}] * N)
    served.post("migration", {"space": {"model": words[:60]}, "thresholds": THRESHOLDS})
    send(served, 0, SEEN)
    page = open_page(served.url, "rebuild")
    page.get_by_role("button", name="Finish…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Go on with")
    page.get_by_role("button", name="Not yet").click()
    page.get_by_role("button", name="Preview the end").click()
    expect(page.locator(".disagreements li").first).to_contain_text("such as")


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_accessible(dark, people, open_page, shoot):
    page = open_page(people.url, "rebuild", dark=dark)
    page.get_by_text("Which are missing?").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".migration-missing li")).to_have_count(21)
    page.get_by_role("button", name="Preview the end").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What the end would change")).to_be_visible()
    expect(page.locator("p[aria-live=polite]")).to_have_text("The preview is ready.")
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    shoot(page, f"migration-{'dark' if dark else 'light'}")
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.locator(".disagreements").scroll_into_view_if_needed()
    shoot(page, f"migration-phone-{'dark' if dark else 'light'}")
