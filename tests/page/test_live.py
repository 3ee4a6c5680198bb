from __future__ import annotations

import re
import threading
import time
import urllib.request

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.served import Served, around, direction

FIGURES = ".tile dd"


def test_the_live_page_updates_as_vectors_arrive(served, open_page, shoot):
    served.make()
    page = open_page(served.url)
    expect(page.get_by_text("No vectors yet")).to_be_visible()
    expect(page.get_by_text(f"{served.url}/v1/namespaces/people/vectors")).to_be_visible()
    served.add(around(direction(1.0), 5), [{"text": f"hello {i}"} for i in range(5)])
    expect(page.locator(FIGURES).nth(0)).to_have_text("5")
    expect(page.locator(".decision")).to_have_count(5)
    expect(page.locator(".decision").first).to_contain_text("hello 4")
    expect(page.locator(".decision").first.locator(".tag")).to_have_text("joined")
    expect(page.locator(".decision").last.locator(".tag")).to_have_text("new")
    served.add(around(direction(0, 1.0), 3, seed=1))
    expect(page.locator(FIGURES).nth(0)).to_have_text("8")
    expect(page.locator(FIGURES).nth(1)).to_have_text("2")
    expect(page.locator(".sizes li")).to_have_count(2)
    shoot(page, "live-small")


def test_a_burst_of_vectors_leaves_sixty_rows_and_true_figures(served, open_page):
    served.make()
    page = open_page(served.url)
    expect(page.locator(".state")).to_have_text("connected")
    for seed in range(6):
        served.add(around(direction(1.0, seed % 3), 500, seed=seed))
    expect(page.locator(FIGURES).nth(0)).to_have_text("3,000")
    expect(page.locator(".decision").first).to_contain_text("2,999")
    assert page.locator(".decision").count() <= 60


def test_pause_stops_the_rows_and_resume_continues(served, open_page):
    served.make()
    served.add(around(direction(1.0), 2))
    page = open_page(served.url)
    expect(page.locator(".decision")).to_have_count(2)
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    served.add(around(direction(1.0), 2, seed=1))
    expect(page.locator(FIGURES).nth(0)).to_have_text("4")
    expect(page.locator(".decision")).to_have_count(2)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".decision")).to_have_count(4)


def test_a_name_given_elsewhere_appears(served, open_page):
    served.make()
    (cluster,) = served.add(around(direction(1.0), 1))
    page = open_page(served.url)
    expect(page.locator(".decision .chip")).to_have_text(f"ID {cluster}")
    served.post("name", {"cluster": cluster, "name": "Ann"})
    expect(page.locator(".decision .chip")).to_have_text("Ann")


def test_the_namespace_is_chosen_at_the_top_and_kept_in_the_address(served, open_page):
    served.make()
    other = type(served)(served.url, namespace="things").make()
    other.add(around(direction(1.0), 4))
    page = open_page(served.url)
    expect(page.get_by_text("No vectors yet")).to_be_visible()
    page.get_by_label("Namespace").select_option("things")
    expect(page.locator(FIGURES).nth(0)).to_have_text("4")
    expect(page).to_have_url(re.compile("in=things"))
    page.reload()
    expect(page.get_by_label("Namespace")).to_have_value("things")
    expect(page.locator(FIGURES).nth(0)).to_have_text("4")


def test_the_page_reports_a_lost_connection_and_reconnects(tmp_path, open_page):
    with background(Settings(data=tmp_path, port=0)) as url:
        Served(url.rstrip("/")).make().add(around(direction(1.0), 2))
        page = open_page(url.rstrip("/"))
        expect(page.locator(FIGURES).nth(0)).to_have_text("2")
    expect(page.locator(".state")).to_have_text("reconnecting…")
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    with background(Settings(data=tmp_path, port=port)) as url:
        expect(page.locator(".state")).to_have_text("connected")
        Served(url.rstrip("/")).add(np.asarray(around(direction(1.0), 1, seed=9)))
        expect(page.locator(FIGURES).nth(0)).to_have_text("3")


@pytest.mark.long
def test_the_page_keeps_up_with_ten_thousand_vectors_a_second(served, open_page):
    served.make()
    page = open_page(served.url)
    expect(page.locator(".state")).to_have_text("connected")
    page.evaluate(
        """() => { window.longest = 0; new PerformanceObserver((list) => {
          for (const task of list.getEntries()) longest = Math.max(longest, task.duration);
        }).observe({ type: "longtask" }); }"""
    )
    sent: list[int] = []
    feeding = threading.Thread(target=flood, args=(served, sent, 10_000, 10.0))
    feeding.start()
    while feeding.is_alive():
        page.wait_for_timeout(500)  # the browser goes on meanwhile
        assert page.locator(".decision").count() <= 60
    expect(page.locator(FIGURES).nth(0)).to_have_text(f"{sum(sent):,}")
    assert page.evaluate("longest") < 1_000


def flood(served, sent, rate, seconds, batch=500):
    """Send vectors as raw numbers, at a limited rate."""
    X = np.concatenate([around(direction(*np.eye(8)[i]), batch // 8 + 1, seed=i) for i in range(8)])
    data = X[:batch].astype("<f4").tobytes()
    url = f"{served.url}/v1/namespaces/{served.namespace}/vectors?dimension={X.shape[1]}"
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        kind = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(url, data=data, headers=kind, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
        sent.append(batch)
        time.sleep(max(0.0, sum(sent) / rate - now))
