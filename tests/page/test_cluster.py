from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from linkstream.service.running import background
from linkstream.service.settings import Settings
from page.served import HOSTILE, Served, around, direction, png, two_alike


def chain(count=5, step=0.7):
    """Return directions on an arc, each near the previous one: a chain of subclusters."""
    angles = np.arange(count) * step
    return [direction(np.cos(angle), np.sin(angle)) for angle in angles]


@pytest.fixture
def arc(served):
    served.make()
    for seed, middle in enumerate(chain()):
        served.add(around(middle, 5, seed=seed, noise=0.01), [{"text": f"step {seed}"}] * 5)
    return served


def biggest(served):
    return max(served.clusters(), key=lambda cluster: cluster["subclusters"])


def test_hostile_names_and_payloads_are_text_everywhere_and_run_nothing(served, open_page, shoot):
    served.make()
    for place, name in enumerate(HOSTILE):
        middle = direction(*[0.0] * place, 1.0, 0.5)  # each a little like the next
        (cluster,) = served.add(around(middle, 1, noise=0.01), [{"text": name, name: name}])
        served.post("name", {"cluster": cluster, "name": name})
    served.add(around(direction(1.0, -0.9), 1, noise=0.01))  # nobody's: a question about the first
    page = open_page(served.url, "live")
    places = {
        "live": ".decision .foreign",
        "cluster": ".person-link .foreign",
        "cluster?as=table": ".cluster-row .foreign",
    }
    for view, names in places.items():
        page.goto(f"{served.url}/#/{view}")
        expect(page.locator(names)).to_have_count(len(HOSTILE))
        shown = page.locator(names).all_inner_texts()
        assert all(text.isprintable() for text in shown)
        assert {name for name in HOSTILE if name.isprintable()} <= set(shown)
    shoot(page, "hostile-names")
    others = ((f"cluster/{cluster}", "h1 .foreign") for cluster in range(len(HOSTILE)))
    for view, names in (("review", ".side .foreign"), *others):
        page.goto(f"{served.url}/#/{view}")
        expect(page.locator(names).first).to_be_visible()
        assert page.locator("main img, main script, main iframe, svg[onload]").count() == 0
        assert page.evaluate("document.title").isprintable()
    page.reload()  # or the view before this one might still be shown
    page.get_by_role("button", name="Join with").click()
    expect(page.locator(".choice")).to_have_count(len(HOSTILE))
    page.locator(".choice").first.click()
    expect(page.locator(".toast")).to_be_visible()


def test_a_cluster_is_named_in_the_page(served, open_page):
    served.make()
    one, _ = two_alike(served)
    page = open_page(served.url, f"cluster/{one}")
    page.get_by_role("button", name="Name").click()
    page.get_by_label("Name", exact=True).fill("Ann")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Ann")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("h1")).to_have_text(f"Cluster {one}")
    assert served.clusters()[0]["name"] is None


def test_an_edge_is_separated_and_put_back(arc, open_page, shoot):
    cluster = biggest(arc)
    assert cluster["subclusters"] >= 3
    page = open_page(arc.url, f"cluster/{cluster['id']}")
    expect(page.locator(".tree-node")).to_have_count(cluster["subclusters"])
    expect(page.locator(".tree .tree-edge")).to_have_count(cluster["subclusters"] - 1)
    page.locator(".tree-grip").last.click(force=True)
    expect(page.locator(".edge-row[aria-pressed=true]")).to_have_count(1)
    shoot(page, "cluster-arc")
    before = arc.clusters()
    page.get_by_role("button", name="Separate here").click()
    expect(page.locator(".tree-node")).not_to_have_count(cluster["subclusters"])
    assert len(arc.clusters()) == len(before) + 1
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".tree-node")).to_have_count(cluster["subclusters"])
    assert arc.clusters() == before


def test_two_clusters_are_joined_by_choosing_the_other(served, open_page):
    served.make()
    one, other = two_alike(served)
    served.post("name", {"cluster": other, "name": "Bob"})
    page = open_page(served.url, f"cluster/{one}")
    page.get_by_role("button", name="Join with").click()
    expect(page.locator(".join-own .thumb")).to_have_count(6)
    expect(page.locator(".choice").first).to_have_accessible_name("Join: Bob, 6 vectors")
    expect(page.locator(".target").first.locator(".thumb")).to_have_count(4)
    page.get_by_label("The same as").fill("bob")
    expect(page.locator(".choice")).to_have_count(1)
    page.locator(".choice").click()
    expect(page.locator("h1")).to_have_text("Bob")
    live = {cluster["id"] for cluster in served.clusters()}
    (gone,) = {one, other} - live
    page.goto(f"{served.url}/#/cluster/{gone}")
    expect(page.locator(".note")).to_contain_text("was merged into")


def test_forgetting_asks_first(served, open_page):
    served.make()
    one, _ = two_alike(served)
    page = open_page(served.url, f"cluster/{one}")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Keep it").click()
    assert len(served.clusters()) == 3
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.locator(".person")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("h1")).to_have_text(f"Cluster {one}")
    assert len(served.clusters()) == 3


def test_a_cluster_is_ignored_and_then_no_longer_ignored(served, open_page):
    served.make()
    one, _ = two_alike(served)
    page = open_page(served.url, f"cluster/{one}")
    page.get_by_role("button", name="Ignore").click()
    expect(page.locator("h1 + .tags")).to_contain_text("ignored")
    page.get_by_role("button", name="Stop ignoring").click()
    expect(page.get_by_role("button", name="Ignore")).to_be_visible()
    assert not any(cluster["ignored"] for cluster in served.clusters())


def test_the_list_is_searched_and_its_members_are_paged(served, open_page):
    served.make()
    one, _ = two_alike(served)
    served.add(around(direction(1.0), 40, seed=3))
    served.post("name", {"cluster": one, "name": "Ann"})
    page = open_page(served.url, "cluster?as=table")
    expect(page.locator(".cluster-row")).to_have_count(3)
    page.get_by_label("Search").fill("an")
    expect(page.locator(".cluster-row")).to_have_count(1)
    page.get_by_label("Search").fill("nobody")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.goto(f"{served.url}/#/cluster/{one}")
    expect(page.locator(".member")).to_have_count(24)
    page.get_by_role("button", name="Show older ones").click()
    expect(page.locator(".member")).to_have_count(46)
    expect(page.get_by_role("button", name="Show older ones")).to_be_hidden()


def test_a_picture_of_the_folder_is_shown_and_a_missing_one_is_reported(tmp_path, open_page):
    images = tmp_path / "images"
    (images / "a").mkdir(parents=True)
    (images / "a" / "b c.png").write_bytes(png(40, 30, (0, 114, 178)))
    with background(Settings(data=tmp_path / "data", port=0, images=images)) as url:
        served = Served(url.rstrip("/")).make()
        served.add(around(direction(1.0), 2), [{"image": "a/b c.png"}, {"image": "gone.png"}])
        page = open_page(served.url, "cluster/0")
        picture = page.locator("img.picture:not(.waiting)")
        expect(picture).to_have_count(1)
        assert picture.evaluate("image => image.naturalWidth") == 40
        expect(page.get_by_text("no picture: gone.png")).to_be_visible()


@pytest.mark.parametrize(
    ("address", "words"),
    [("abc", "no ID of a cluster"), ("99", "that no cluster has had"), ("<b>", "no ID")],
)
def test_an_address_without_a_cluster_is_explained_in_plain_words(
    address, words, served, open_page
):
    served.make().add(around(direction(1.0), 2))
    page = open_page(served.url, f"cluster/{address}")
    expect(page.get_by_role("alert")).to_contain_text(words)
    page.get_by_role("link", name="Show all clusters").click()
    expect(page.locator(".person")).to_have_count(1)


def test_a_cluster_that_was_forgotten_shows_its_history(served, open_page):
    served.make()
    one, _ = two_alike(served)
    served.post("forget", {"cluster": one})
    page = open_page(served.url, f"cluster/{one}")
    expect(page.locator("h1")).to_have_text(f"Cluster {one} is gone")
    expect(page.locator(".story")).to_contain_text("forgotten")


@pytest.fixture
def mixed(served):
    """Serve two clusters, the first with two vectors that belong to the second."""
    served.make()
    one, other = two_alike(served)
    served.post("move", {"vector": [6, 7], "cluster": one})
    return served, one, other


def members(page):
    return page.locator(".member")


def test_several_vectors_move_to_the_nearest_cluster_in_one_step(mixed, open_page, shoot):
    served, one, other = mixed
    page = open_page(served.url, f"cluster/{one}")
    expect(members(page)).to_have_count(8)
    expect(page.get_by_role("button", name="Move to")).to_be_disabled()
    page.get_by_label("Select vector 7", exact=True).click()
    page.get_by_label("Select vector 6", exact=True).click(modifiers=["Shift"])
    expect(page.locator(".member.selected")).to_have_count(2)
    page.get_by_role("button", name="Move to").click()
    expect(page.locator(".choice").first).to_have_accessible_name(
        f"Move here: ID {other}, 4 vectors"
    )
    shoot(page, "cluster-move")
    page.locator(".choice").first.click()
    expect(members(page)).to_have_count(6)
    assert {c["id"]: c["size"] for c in served.clusters()}[other] == 6
    page.get_by_role("button", name="Undo").click()
    expect(members(page)).to_have_count(8)
    assert {c["id"]: c["size"] for c in served.clusters()}[other] == 4


def test_a_vector_is_cut_out_by_the_keyboard_and_put_back(mixed, open_page):
    served, one, _ = mixed
    before = served.clusters()
    page = open_page(served.url, f"cluster/{one}")
    page.get_by_label("Select vector 6", exact=True).focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Cut out").focus()
    page.keyboard.press("Enter")
    expect(members(page)).to_have_count(7)
    assert len(served.clusters()) == len(before) + 1
    page.get_by_role("button", name="Undo").click()
    expect(members(page)).to_have_count(8)
    assert served.clusters() == before


def test_vectors_are_removed_after_a_question(mixed, open_page):
    served, one, _ = mixed
    page = open_page(served.url, f"cluster/{one}")
    expect(members(page)).to_have_count(8)
    page.get_by_label("Select vector 7", exact=True).click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(members(page)).to_have_count(7)
    page.get_by_role("button", name="Undo").click()
    expect(members(page)).to_have_count(8)


def test_the_page_says_why_a_vector_is_in_its_cluster(mixed, open_page):
    served, one, other = mixed
    page = open_page(served.url, f"cluster/{one}")
    page.get_by_label("Select vector 6", exact=True).click()
    page.get_by_role("button", name="Why here").click()
    why = page.get_by_label("Why vector 6 is here")
    expect(why).to_contain_text("A person moved it here.")
    expect(why).to_contain_text(f"Cluster {other} is nearer")
    expect(why.locator(".why-bar").first).to_contain_text("this cluster")
    why.get_by_role("button", name="Close").click()
    expect(why).to_be_hidden()
