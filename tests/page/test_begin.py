"""Begin: from a file to clusters on the page, with keys, wrong rows, repeats, and what it asks."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.service.tokens import create
from page.audits import CONTRAST, NAMELESS
from page.served import HOSTILE, Served, around, direction, png

TOPICS = ("printer jam", "no ink", "password lost", "parcel late", "refund please", "slow network")
WHO = np.random.default_rng(1).integers(0, len(TOPICS), 240)
MIDDLES = np.eye(16)[: len(TOPICS)] + 0.2
X = MIDDLES[WHO] + np.random.default_rng(2).normal(0, 0.08, (240, 16))


def tickets(rows, *, wrong=(), texts=None, name="tickets.csv"):
    """Return a CSV file of tickets, as a page takes it."""
    out = io.StringIO()
    to = csv.writer(out)
    to.writerow(["ticket", "text", "embedding"])
    for row in rows:
        vector = [0.1] if row in wrong else X[row].round(5).tolist()
        text = f"{TOPICS[WHO[row]]}, ticket {row}" if texts is None else texts[row % len(texts)]
        to.writerow([f"T-{row}", text, json.dumps(vector)])
    return {"name": name, "mimeType": "text/csv", "buffer": out.getvalue().encode()}


@pytest.fixture
def people(served):
    served.make(search=True)
    for place, words in enumerate(("Ann", "Bob")):
        x = around(direction(*([0] * place), 1.0), 4, seed=place)
        served.add(x, [{"text": f"{words} {i}"} for i in range(4)])
        served.post("name", {"cluster": place, "name": words})
    return served


def send(page, file):
    page.locator("#begin-file").set_input_files(file)
    expect(page.get_by_role("heading", name="What is in the file")).to_be_visible()


def figure(page, words):
    return page.locator(".begin-done .begin-figures div", has_text=words).locator("dd")


def test_a_file_becomes_a_namespace_and_its_clusters_are_one_click_away(served, open_page, shoot):
    page = open_page(served.url)
    page.get_by_label("Its name").fill("tickets")
    send(page, tickets(range(240)))
    expect(page.locator("#column-id_column")).to_have_value("ticket")
    expect(page.locator(".first-rows tbody tr")).to_have_count(5)
    shoot(page, "begin-columns")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("radio", name=re.compile("I have the numbers")).check()
    page.get_by_role("button", name="Make it and add").click()
    expect(figure(page, "new")).to_have_text("240")
    page.get_by_role("link", name="See the clusters").click()
    expect(page).to_have_url(re.compile("in=tickets"))
    expect(page.locator(".view-cluster h1")).to_be_visible()
    about = served.call("GET", "/v1/namespaces/tickets")
    assert (about["vectors"], about["keep_vectors"], about["search"]) == (240, True, True)


def test_answers_about_pairs_by_keys_give_thresholds(served, open_page, shoot):
    page = open_page(served.url)
    page.get_by_label("Its name").fill("tickets")
    send(page, tickets(range(240)))
    page.get_by_role("button", name="Continue").click()
    sides = page.locator(".pair-side .said")
    expect(sides).to_have_count(2)
    shoot(page, "begin-pairs")
    page.keyboard.press("n")
    page.keyboard.press("Backspace")
    for _ in range(80):
        one, other = (words.split(",")[0] for words in sides.all_inner_texts())
        page.keyboard.press("s" if one == other else "d")
    expect(page.locator(".quiz")).to_contain_text("80 answers of 80")
    page.get_by_role("button", name="Find thresholds").click()
    expect(page.get_by_text("Thresholds found.")).to_be_visible(timeout=90_000)
    page.get_by_role("button", name="Make it and add").click()
    expect(figure(page, "new")).to_have_text("240")
    found = served.call("GET", "/v1/namespaces/tickets/clusters")["clusters"]
    assert sum(each["size"] >= 20 for each in found) == len(TOPICS)


def test_few_answers_do_not_let_one_go_on(served, open_page):
    page = open_page(served.url)
    page.get_by_label("Its name").fill("tickets")
    send(page, tickets(range(60)))
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".pair-side")).to_have_count(2)
    page.keyboard.press("s")
    expect(page.locator(".quiz")).to_contain_text("10 of each are needed")
    expect(page.get_by_role("button", name="Find thresholds")).to_be_disabled()
    expect(page.get_by_role("button", name="Make it and add")).to_be_hidden()


def test_wrong_rows_are_named_before_anything_is_added(people, open_page, shoot):
    page = open_page(people.url, "begin")
    send(page, tickets(range(50), wrong=(3, 40)))
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="2 rows cannot be added")).to_be_visible()
    expect(page.locator(".bad-rows")).to_contain_text("tickets.csv, line 5 has a vector")
    shoot(page, "begin-bad-rows")
    assert people.call("GET", "/v1/namespaces/people")["vectors"] == 8
    page.get_by_role("button", name="Leave them out and add 48").click()
    expect(figure(page, "new")).to_have_text("48")
    expect(figure(page, "left out")).to_have_text("2")


def test_the_file_of_the_next_day_says_what_is_new_and_can_be_taken_back(people, open_page):
    page = open_page(people.url, "begin")
    for rows, new, known in ((range(100), "100", None), (range(60, 160), "60", "40")):
        send(page, tickets(rows))
        page.get_by_role("button", name="Continue").click()
        expect(figure(page, "new")).to_have_text(new)
        if known:
            expect(figure(page, "there before")).to_have_text(known)
            page.get_by_role("button", name="Take them back").click()
        else:
            page.get_by_role("button", name="Another file").click()
        expect(page.locator("#begin-file")).to_be_visible()
    assert people.call("GET", "/v1/namespaces/people")["vectors"] == 108


def test_a_reload_goes_on_with_the_same_upload(people, open_page):
    page = open_page(people.url, "begin")
    send(page, tickets(range(20)))
    assert "upload=" in page.url
    page.reload()
    expect(page.get_by_role("heading", name="What is in the file")).to_be_visible()
    page.get_by_role("button", name="Another file").click()
    expect(page.locator("#begin-file")).to_be_visible()
    assert people.get("uploads")["uploads"] == []


def test_a_row_of_a_file_can_be_asked_about_before_it_is_added(people, open_page):
    page = open_page(people.url, "begin")
    send(page, tickets(range(20)))
    page.get_by_role("button", name="Which cluster would row 2 get?").click()
    expect(page.locator(".begin-stage .try-answer")).to_contain_text("It would")
    assert people.call("GET", "/v1/namespaces/people")["vectors"] == 8


def test_a_vector_is_asked_about_in_words_with_examples(people, open_page, shoot):
    page = open_page(people.url, "begin")
    asked = page.get_by_label("A vector, or the number of one that is here")
    found = page.locator(".begin-try .try-answer")
    asked.fill(json.dumps(direction(1.0, 0.1).tolist()))
    page.get_by_role("button", name="Which cluster?", exact=True).click()
    expect(found).to_contain_text("It would go to")
    expect(found.locator(".chip").first).to_contain_text("Ann")
    expect(found.locator(".said").first).to_contain_text("Ann")
    shoot(page, "begin-try")
    asked.fill("5")
    page.get_by_role("button", name="Which cluster?", exact=True).click()
    expect(found).to_contain_text("Vector 5 is in Bob")
    asked.fill("no vector")
    page.get_by_role("button", name="Which cluster?", exact=True).click()
    expect(found.get_by_role("alert")).to_contain_text("Write numbers with commas")


@pytest.mark.parametrize("name", ["Save vectors as CSV", "Save clusters as JSON lines"])
def test_tables_are_saved_as_files(people, open_page, name):
    page = open_page(people.url, "begin")
    with page.expect_download() as saving:
        page.get_by_role("button", name=name).click()
    table = name.split()[1]
    assert saving.value.suggested_filename.startswith(f"people-{table}.")
    assert b"Ann" in saving.value.path().read_bytes()


def test_the_demo_begins_at_one_click(served, open_page):
    page = open_page(served.url)
    page.get_by_role("button", name="Play the voices").click()
    expect(page).to_have_url(re.compile("live.*in=voices"))
    expect(page.locator(".decision").first).to_be_visible()


def test_pictures_of_pairs_are_shown_before_the_namespace_exists(tmp_path, open_page):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(png(40, 40, (200, 30, 30)))
    rows = [{"image": "a.png", "embedding": x.round(4).tolist()} for x in X[:40]]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    settings = Settings(data=tmp_path / "data", port=0, threads=1, images=folder)
    with background(settings) as url:
        page = open_page(url.rstrip("/"))
        page.get_by_label("Its name").fill("faces")
        send(page, {"name": "faces.jsonl", "mimeType": "text/plain", "buffer": data})
        page.get_by_role("button", name="Continue").click()
        image = page.locator(".pair-side img").first
        expect(image).to_be_visible()
        page.wait_for_function("document.querySelector('.pair-side img').naturalWidth === 40")


def test_a_token_that_reads_only_is_told_so(tmp_path, open_page):
    data = tmp_path / "data"
    data.mkdir()
    admin = create(data / "tokens.json", {"*": "admin"})[1]
    reader = create(data / "tokens.json", {"people": "read"})[1]
    with background(Settings(data=data, port=0, threads=1)) as url:
        Served(url.rstrip("/"), admin).make().add(around(direction(1.0), 3))
        page = open_page(url.rstrip("/"), "begin")
        page.get_by_label("Token").fill(reader)
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_text("Your token allows reading only")).to_be_visible()
        expect(page.locator("#begin-file")).to_have_count(0)
        expect(page.get_by_role("button", name="Play the voices")).to_be_disabled()


def test_a_file_of_another_kind_says_what_is_expected(people, open_page):
    page = open_page(people.url, "begin")
    file = {"name": "people.xlsx", "mimeType": "text/csv", "buffer": b"1,2"}
    page.locator("#begin-file").set_input_files(file)
    expect(page.locator(".toast")).to_contain_text("people.xlsx")
    expect(page.locator("#begin-file")).to_be_visible()


def test_hostile_texts_of_a_file_are_shown_as_texts(people, open_page):
    page = open_page(people.url, "begin", width=360)
    send(page, tickets(range(20), texts=HOSTILE, name="<b>a&\u202e.csv"))
    expect(page.locator(".first-rows")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Continue").click()
    expect(figure(page, "new")).to_have_text("20")


@pytest.mark.parametrize("dark", [False, True])
def test_every_step_can_be_read_and_used_on_a_small_screen(served, open_page, dark):
    page = open_page(served.url, width=320, height=640, dark=dark)

    def check():
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 320

    check()
    page.get_by_label("Its name").fill("tickets")
    send(page, tickets(range(40), wrong=(7,)))
    check()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".pair-side")).to_have_count(2)
    page.locator(".begin-options summary").click()
    check()
    page.get_by_role("radio", name=re.compile("I have the numbers")).check()
    check()
    page.get_by_role("button", name="Make it and add").click()
    expect(page.locator(".begin-bad")).to_be_visible()
    check()


def test_a_namespace_can_be_made_from_a_preset_without_a_file(served, open_page):
    page = open_page(served.url)
    page.get_by_role("button", name="New namespace without a file").click()
    page.get_by_label("Its name").fill("faces")
    page.get_by_role("button", name="New namespace without a file").click()
    page.get_by_label("Encoder", exact=True).select_option("arcface")
    page.get_by_label("What one cluster is").select_option("strict")
    expect(page.locator(".way-detail")).to_contain_text("face_lfw_arcface")
    page.get_by_role("button", name="Make it").click()
    expect(page).to_have_url(re.compile("live.*in=faces"))
    about = served.call("GET", "/v1/namespaces/faces")
    assert (about["space"]["dimension"], about["keep_vectors"]) == (512, True)


def test_sending_can_be_cancelled_and_leaves_nothing(people, open_page):
    page = open_page(people.url, "begin")
    page.route("**/uploads/*?offset=*", lambda route: None)  # no answer
    page.locator("#begin-file").set_input_files(tickets(range(20)))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#begin-file")).to_be_visible()
    assert people.get("uploads")["uploads"] == []
