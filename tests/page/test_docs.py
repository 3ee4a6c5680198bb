"""Swagger UI (/docs) in a browser."""

from __future__ import annotations

from playwright.sync_api import expect


def test_swagger_ui_runs_under_its_policy(served, open_page):
    served.make()
    page = open_page(served.url)  # fails at the end if the policy was violated
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{served.url}/docs")
    expect(page.get_by_role("heading", name="linkstream")).to_be_visible()
    page.locator(".opblock-summary-control", has_text="healthz").first.click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table .response .response-col_status")).to_contain_text(
        "200"
    )
    assert all(url.startswith((served.url, "data:")) for url in asked)
