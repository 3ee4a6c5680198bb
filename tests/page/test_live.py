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
from page.audits import CONTRAST, NAMELESS
from page.served import HOSTILE, Served, around, direction

FIGURES = ".tile dd"


def test_the_live_page_updates_as_vectors_arrive(served, open_page, shoot):
    served.make()
    page = open_page(served.url)
    expect(page.get_by_text("Nothing here yet")).to_be_visible()
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
    expect(page.locator(".decision").first).to_have_attribute("data-vector", "2999")
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
    expect(page.get_by_text("Nothing here yet")).to_be_visible()
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


def test_charts_and_decisions_outlive_a_restart(tmp_path, open_page, shoot):
    with background(Settings(data=tmp_path, port=0)) as url:
        served = Served(url.rstrip("/")).make()
        served.add(around(direction(1.0), 5), [{"text": f"before {i}"} for i in range(5)])
    with background(Settings(data=tmp_path, port=0)) as url:
        page = open_page(url.rstrip("/"))
        expect(page.locator(".decision")).to_have_count(5)
        expect(page.locator(".decision").first).to_contain_text("before 4")
        expect(page.locator(".decision time").first).to_be_visible()
        chart = page.get_by_role("img", name=re.compile("Clusters, from today"))
        expect(chart).to_have_attribute("aria-label", re.compile("1 clusters now"))
        expect(page.get_by_text("Times are known since today")).to_be_visible()
        shoot(page, "live-restarted")


def test_the_range_of_the_charts_is_kept_in_the_address(served, open_page):
    served.make().add(around(direction(1.0), 5))
    page = open_page(served.url)
    page.get_by_role("button", name="Day").click()
    expect(page).to_have_url(re.compile("range=day"))
    page.reload()
    expect(page.get_by_role("button", name="Day")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Hour")).to_have_attribute("aria-pressed", "true")


def test_single_values_of_a_chart_are_read_by_keys(served, open_page):
    served.make().add(around(direction(1.0), 5))
    page = open_page(served.url)
    chart = page.get_by_role("img", name=re.compile("^Clusters, from"))
    expect(chart).to_have_attribute("aria-label", re.compile("1 clusters now"))
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".chart-readout").first).to_contain_text("1 clusters")


def test_a_decision_says_why(served, open_page, shoot):
    served.make().add(around(direction(1.0), 3), [{"text": f"hello {i}"} for i in range(3)])
    page = open_page(served.url)
    page.locator(".decision").first.get_by_role("button", name="Why?").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("hello 2")
    expect(dialog).to_contain_text("very similar")
    expect(dialog).to_contain_text("What ties it to another vector of this cluster")
    expect(dialog).to_contain_text("vectors 2 and 1 are in one subcluster")
    shoot(page, "live-why")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.locator(".decision").last.locator(".evidence").click()
    expect(dialog).to_contain_text("No cluster was similar enough")


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_accessible(dark, served, open_page, shoot):
    served.make().add(around(direction(1.0), 3), [{"text": HOSTILE[0]}] * 3)
    page = open_page(served.url, dark=dark)
    expect(page.locator(".decision")).to_have_count(3)
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    shoot(page, f"live-phone-{'dark' if dark else 'light'}")


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
