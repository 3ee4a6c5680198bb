"""Three stories from an empty data folder to the end, played on the page and checked from outside.

Photos: pictures of faces become people with names. Tickets: texts become topics, and more come the
next day. Voices: a stream is reviewed while it goes on.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from linkstream.store import Store
from page.served import THRESHOLDS, Served, around, direction, png

PEOPLE = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jude")
LOOKS = 4  # pictures of each person
TOPICS = ("printer", "password", "parcel", "refund", "network")


@pytest.fixture
def empty(tmp_path):
    """Serve an empty data folder, and a folder of pictures."""
    folder = tmp_path / "images"
    folder.mkdir()
    settings = Settings(data=tmp_path / "data", port=0, threads=1, images=folder)
    with background(settings) as url:
        yield Served(url.rstrip("/"), namespace="mine"), folder


def begin(page: Page, file: dict[str, object]) -> None:
    """Choose a file in a new namespace, with the thresholds as numbers."""
    expect(page.get_by_role("heading", name="Begin here")).to_be_visible()
    page.get_by_label("Its name").fill("mine")
    page.locator("#begin-file").set_input_files(file)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("radio", name=re.compile("I have the numbers")).check()
    for name, value in THRESHOLDS.items():
        page.locator(f"#new-{name}").fill(str(value))
    page.get_by_role("button", name="Make it and add").click()


def added(page: Page, words: str, number: str) -> None:
    """Wait until all rows are added."""
    expect(
        page.locator(".begin-done .begin-figures div", has_text=words).locator("dd")
    ).to_have_text(number)


def person(page: Page, name: str) -> Locator:
    return page.locator(".person-link", has_text=re.compile(f"^{name}$"))


def stored(tmp_path):
    """Return name and members of each cluster, and the payloads, from the file of the store."""
    with Store.open(tmp_path / "data" / "mine.links", read_only=True) as store:
        found = {c.id: (c.name, store.members(c.id).tolist()) for c in store.clusters()}
        numbers = [vector for _, members in found.values() for vector in members]
        return found, dict(zip(numbers, store.payloads(numbers), strict=True))


# Photos


def faces(folder):
    """Write pictures of ten people; return a file of their embeddings.

    Ada was photographed in two lights, so that she becomes two clusters; the last picture of Ben
    looks like Cleo.
    """
    rows = []
    for who, name in enumerate(PEOPLE):
        looks = around(direction(*[0.0] * who, 1.0), LOOKS, seed=who)
        if who == 0:
            looks[2:] = around(direction(0.6, *[0.0] * 10, 0.8), 2, seed=20)
        if who == 1:
            looks[3:] = around(direction(0.0, 0.3, 1.0), 1, seed=30)
        for look, x in enumerate(looks):
            image = f"{name}-{look}.png".lower()
            colour = (40 + 20 * who, 60 + 30 * look, 220 - 18 * who)
            (folder / image).write_bytes(png(64, 64, colour))
            rows.append({"image": image, "photo": f"IMG_{len(rows):04}", "embedding": x.tolist()})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return {"name": "faces.jsonl", "mimeType": "text/plain", "buffer": lines.encode()}


def test_photos_become_people_with_names(empty, open_page, shoot, tmp_path):
    served, folder = empty
    page = open_page(served.url)
    begin(page, faces(folder))
    added(page, "new", "40")
    page.get_by_role("link", name="See the clusters").click()
    expect(page.locator(".person")).to_have_count(11)
    expect(page.locator(".person .picture:not(.waiting)").first).to_be_visible()

    _join_two(page, served)
    _cut_one_out(page, served)
    page.get_by_role("link", name="People", exact=True).click()
    _name_all(page, served)
    shoot(page, "story-photos")

    page.get_by_role("link", name="Activity", exact=True).click()
    row = page.locator('.change[data-verb="rename"]').first
    row.get_by_role("button", name="Undo").click()
    expect(page.locator('.change[data-verb="undo"]')).to_be_visible()

    found, payloads = stored(tmp_path)
    owners = {
        name: Counter(payloads[vector]["image"].split("-")[0] for vector in members)
        for name, members in found.values()
    }
    last = [name for name in PEOPLE if name not in owners]
    assert len(last) == 1
    for name in set(PEOPLE) - {*last}:
        assert owners[name] == {name.lower(): LOOKS - (name == "Ben")}
    assert sorted(len(members) for name, members in found.values() if name is None) == [1, LOOKS]


def cluster_of(served, image):
    """Return the cluster that most pictures of a person are in."""
    rows = [
        (each["id"], vector["payload"]["image"])
        for each in served.clusters()
        for vector in served.get(f"clusters/{each['id']}/vectors")["vectors"]
    ]
    return Counter(cluster for cluster, name in rows if name.startswith(image)).most_common()


def _join_two(page, served):
    """Join the two clusters of Ada, by the list of the most similar ones."""
    one, other = (cluster for cluster, _ in cluster_of(served, "ada"))
    page.goto(f"{served.url}/#/cluster/{one}")
    page.get_by_role("button", name="Join with").click()
    expect(page.locator(".choice").first).to_have_accessible_name(re.compile(f"ID {other}"))
    page.locator(".choice").first.click()
    expect(page.locator(".member")).to_have_count(LOOKS)


def _cut_one_out(page, served):
    """Cut the picture of Ben out of the cluster of Cleo."""
    cluster = cluster_of(served, "cleo")[0][0]
    page.goto(f"{served.url}/#/cluster/{cluster}")
    expect(page.locator(".member")).to_have_count(LOOKS + 1)
    vector = PEOPLE.index("Ben") * LOOKS + LOOKS - 1
    page.get_by_label(f"Select vector {vector}", exact=True).click()
    page.get_by_role("button", name="Cut out").click()
    expect(page.locator(".member")).to_have_count(LOOKS)


def _name_all(page, served):
    """Name ten people in the order of the cards."""
    for name in PEOPLE:
        cluster = cluster_of(served, name.lower())[0][0]
        page.get_by_label(f"Name of ID {cluster}", exact=True).fill(name)
        page.keyboard.press("Enter")
        expect(person(page, name)).to_be_visible()


# Tickets


def tickets(rows, name):
    """Return a CSV file of tickets about five topics."""
    rng = np.random.default_rng(7)
    topic = rng.integers(0, len(TOPICS), 400)
    noise = rng.normal(0, 0.05, (400, 16))
    out = io.StringIO()
    to = csv.writer(out)
    to.writerow(["ticket", "text", "embedding"])
    for row in rows:
        x = np.eye(16)[topic[row]] + noise[row]
        words = f"my {TOPICS[topic[row]]} does not work, please help ({row})"
        to.writerow([f"T-{row}", words, json.dumps(x.round(5).tolist())])
    return {"name": name, "mimeType": "text/csv", "buffer": out.getvalue().encode()}


def test_tickets_become_topics_that_are_found_again_the_next_day(empty, open_page, shoot, tmp_path):
    served, _ = empty
    page = open_page(served.url)
    begin(page, tickets(range(150), "monday.csv"))
    added(page, "new", "150")
    page.get_by_role("link", name="See the clusters").click()
    expect(page.locator(".person")).to_have_count(len(TOPICS))
    for topic in TOPICS:
        page.get_by_label("Search").fill(topic)
        expect(page.locator(".person")).to_have_count(1)
        page.locator(".name-field").fill(topic.title())
        page.keyboard.press("Enter")
        expect(person(page, topic.title())).to_be_visible()

    page.get_by_role("link", name="Begin", exact=True).click()
    page.locator("#begin-file").set_input_files(tickets(range(120, 300), "tuesday.csv"))
    page.get_by_role("button", name="Continue").click()
    added(page, "new", "150")
    added(page, "there before", "30")
    page.get_by_role("link", name="People", exact=True).click()
    expect(page.locator(".person")).to_have_count(len(TOPICS))
    shoot(page, "story-tickets")
    page.get_by_role("link", name="Activity", exact=True).click()
    expect(page.locator('.change[data-verb="rename"]')).to_have_count(len(TOPICS))

    found, payloads = stored(tmp_path)
    assert sum(len(members) for _, members in found.values()) == 300
    for name, members in found.values():
        assert {payloads[vector]["text"].split()[1] for vector in members} == {name.lower()}


# Voices


def test_voices_are_reviewed_while_the_stream_goes_on(empty, open_page, shoot, tmp_path):
    served, _ = empty
    page = open_page(served.url)
    page.get_by_role("button", name="Play the voices").click()
    expect(page).to_have_url(re.compile("live.*in="))
    served = Served(served.url, namespace=re.search(r"in=([\w-]+)", page.url).group(1))
    expect(page.locator(".decision").first).to_be_visible()
    page.get_by_role("link", name="Review", exact=True).click()
    question = page.locator(".question")
    expect(question).to_be_visible()
    before = served.call("GET", f"/v1/namespaces/{served.namespace}")
    pair = question.get_attribute("data-pair")
    for _ in range(200):
        now = served.call("GET", f"/v1/namespaces/{served.namespace}")["vectors"]
        if now > before["vectors"] + 3:
            break
        page.wait_for_timeout(100)
    assert now > before["vectors"]
    assert question.get_attribute("data-pair") == pair  # it stays while vectors arrive
    page.keyboard.press("d")
    expect(page.get_by_text("1 answered")).to_be_visible()
    shoot(page, "story-voices")
    kept = served.get("corrections")["corrections"]
    assert len(kept) == 1
    assert kept[0]["verb"] == "different"
    page.keyboard.press("u")
    expect(page.get_by_text("0 answered")).to_be_visible()
    assert served.get("corrections")["corrections"] == []
    page.get_by_role("link", name="People", exact=True).click()
    field = page.locator(".name-field").first
    field.fill("Reader A")
    page.keyboard.press("Enter")
    expect(person(page, "Reader A")).to_be_visible()
    assert [c["name"] for c in served.clusters() if c["name"]] == ["Reader A"]
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page.locator(".decision").first).to_be_visible()
