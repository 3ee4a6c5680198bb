"""The laws of the held-out protocol, its searches and its tables, on tiny sets."""

import json
from dataclasses import astuple, dataclass, field

import numpy as np
import pytest
from benchmarks import quality, quality_picture, quality_tables
from benchmarks.methods import METHODS, OneCentroid, PaperLinks, by_name
from benchmarks.offline_methods import alone
from benchmarks.protocol import (
    MOMENTS,
    STILLNESS,
    along_a_line,
    figures,
    halves,
    judge,
    load,
    objective,
    orders,
    stillness,
)

from linkstream.errors import ArgumentError


def tiny(identities=12, each=10, dimension=24, noise=0.04, seed=0):
    """Well separated identities in random order, not of unit length."""
    rng = np.random.default_rng(seed)
    centres = np.linalg.qr(rng.normal(size=(dimension, identities)))[0].T
    y = rng.permutation(np.repeat(np.arange(identities), each))
    X = centres[y] + noise * rng.normal(size=(len(y), dimension))
    return 3.0 * X, y


@dataclass(frozen=True)
class Spy:
    """Answers with whatever it was told to, and remembers what it was shown."""

    ordered: bool = True
    cap: int = 10_000
    name: str = "spy"
    note: str = ""
    tuned_on: list = field(default_factory=list)
    ran_on: list = field(default_factory=list)

    def tune(self, X, y):
        self.tuned_on.append((X, y))
        return {}

    def run(self, X, parameters):
        self.ran_on.append(X)
        return {"current": np.arange(len(X)) // 2}


# The protocol


def test_no_identity_is_in_both_halves():
    tuning, scored = halves(*tiny())
    assert not set(tuning.y) & set(scored.y)
    assert len(set(tuning.y)) == len(set(scored.y)) == 6


def test_halves_keep_every_vector_and_the_order_of_arrival():
    X, y = np.eye(40)[:, :] + 0.5, np.arange(40) % 7
    tuning, scored = halves(X, y)
    for half in (tuning, scored):
        places = half.X.argmax(axis=1)
        assert np.array_equal(places, np.sort(places))
        assert np.array_equal(half.y, y[places])
    assert len(tuning.y) + len(scored.y) == 40


def test_halves_are_unit_float32_with_at_most_cap_vectors():
    X, y = tiny()
    for half in halves(X.astype(np.float16), y, cap=17):
        assert half.X.dtype == np.float32
        assert half.X.shape == (17, 24)
        assert np.allclose(np.linalg.norm(half.X, axis=1), 1.0, atol=1e-6)


def test_the_tuning_half_depends_only_on_the_identities():
    X, y = tiny()
    other, _ = tiny(seed=1)
    assert np.array_equal(halves(X, y)[0].y, halves(other, y)[0].y)


@pytest.mark.parametrize(("X", "y"), [([[1.0, 0.0]], [3]), ([[1.0, 0.0], [0.0, 0.0]], [0, 1])])
def test_sets_that_cannot_be_halved_are_refused(X, y):
    with pytest.raises(ArgumentError, match="expected two identities or more"):
        halves(X, y)


def test_a_file_without_identities_is_refused(tmp_path):
    np.savez(tmp_path / "odd.npz", X=np.eye(3), names=np.arange(3))
    with pytest.raises(ArgumentError, match=r"odd\.npz holds X, names"):
        load(tmp_path / "odd.npz")


def test_the_given_order_comes_first_and_the_others_are_seeded():
    one, again = orders(50, 5), orders(50, 5)
    assert np.array_equal(one[0], np.arange(50))
    assert all(np.array_equal(np.sort(order), np.arange(50)) for order in one)
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert len({tuple(order) for order in one}) == 5


def test_a_method_is_tuned_once_and_only_on_the_tuning_half():
    tuning, scored = halves(*tiny())
    spy = Spy()
    judge(spy, tuning, scored, count=3)
    ((X, y),) = spy.tuned_on
    assert np.array_equal(X, tuning.X)
    assert not set(y) & set(scored.y)


def test_only_a_method_that_depends_on_the_order_is_run_in_several_orders():
    tuning, scored = halves(*tiny())
    assert len(judge(Spy(), tuning, scored, count=4)["orders"]) == 4
    assert len(judge(Spy(ordered=False), tuning, scored, count=4)["orders"]) == 1


def test_a_slow_method_gets_the_first_vectors_only():
    tuning, scored = halves(*tiny())
    spy = Spy(cap=9)
    assert judge(spy, tuning, scored, count=1)["vectors"] == [9, 9]
    assert np.array_equal(spy.ran_on[0], scored.X[:9])


def test_labels_are_judged_in_the_order_they_were_given():
    tuning, scored = halves(*tiny())
    kept = judge(PaperLinks(trials=12), tuning, scored, count=5)["orders"]
    assert all(set(order.values()) == {1.0} for order in kept)
    assert all(set(order) == {"instant", "current", "still", "half"} for order in kept)


def test_the_objective_is_instant_and_current_or_settled_alone():
    y, right, half = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.zeros(4, dtype=int)
    assert objective({"instant": half, "current": right}, y) == 0.75
    assert objective({"instant": half, "settled": right}, y) == 0.5
    assert objective({"settled": right}, y) == 1.0
    assert figures({"current": half}, y) == {"current": 0.5}


def test_stillness_compares_resolved_ids_with_the_labels_at_the_end():
    current = np.array([0, 0, 3, 3])
    answer = {"current": current, "given": np.array([0, 1, 3, 2]), "early": np.array([0, 2])}
    assert stillness(answer) == {"still": 0.5, "half": 0.5}
    assert stillness({"current": current}) == {}
    assert stillness({"current": current[:1], "given": current[:1], "early": []}) == {"still": 1.0}


def test_another_split_has_other_identities_in_its_halves():
    X, y = tiny()
    one, other = (halves(X, y, seed=seed)[0].y for seed in (0, 1))
    assert set(one.tolist()) != set(other.tolist())
    assert np.array_equal(one, halves(X, y)[0].y)


# The methods


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_finds_well_separated_identities(method):
    tuning, scored = halves(*tiny(noise=0.02))
    floor = 0.8 if method.name == "MiniBatchKMeans" else 1.0  # its random start may miss one
    for order in judge(method, tuning, scored, count=2)["orders"]:
        assert set(order) <= {*MOMENTS, *STILLNESS}
        assert min(order[moment] for moment in MOMENTS if moment in order) >= floor


@pytest.mark.parametrize("name", ["one centroid", "linkscluster", "links", "links, healed"])
def test_methods_with_lasting_ids_are_scored_for_stillness(name):
    X = halves(*tiny())[1].X
    parameters = by_name(name).tune(*astuple(halves(*tiny())[0]))
    answer = by_name(name).run(X, parameters)
    assert len(answer["given"]) == len(X)
    assert len(answer["early"]) == len(X) // 2
    assert set(stillness(answer)) == set(STILLNESS)
    if name == "one centroid":
        assert stillness(answer) == {"still": 1.0, "half": 1.0}


def test_names_of_methods_are_unique_and_notes_are_given():
    assert len({method.name for method in METHODS}) == len(METHODS)
    assert all(method.note and by_name(method.name) is method for method in METHODS)


def test_noise_counts_as_clusters_of_one():
    labels = alone(np.array([0, -1, 1, -1, 0]))
    assert len(set(labels.tolist())) == 4
    assert labels[0] == labels[4]
    assert len(set(alone(np.array([-1, -1, -1])).tolist())) == 3


def test_one_centroid_goes_from_one_cluster_to_one_per_vector_as_its_threshold_rises():
    X = halves(*tiny())[0].X
    counts = [
        len(set(OneCentroid().run(X, {"similarity": t})["instant"])) for t in (-1.0, 0.5, 1.1)
    ]
    assert counts == [1, 6, len(X)]


# The searches


def test_the_middle_of_equally_good_values_is_chosen():
    found = along_a_line(lambda value: float(0.3 <= value <= 0.7), np.linspace(0, 1, 11).tolist())
    assert found == pytest.approx(0.5, abs=0.051)


def test_a_peak_between_the_grid_points_is_found():
    grid = np.linspace(0, 1, 6).tolist()
    found = along_a_line(lambda value: -((value - 0.47) ** 2), grid, rounds=2)
    assert found == pytest.approx(0.47, abs=0.05)


# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets")
    for seed, name in enumerate(("one", "two")):
        X, y = tiny(seed=seed)
        np.savez(path / f"{name}.npz", X=X, y=y)
    return path


def backwards(jobs, _):
    """Yield results in another order than that of the jobs, as processes may."""
    return ((job, quality.work(*job, 2)) for job in reversed(jobs))


@pytest.fixture(scope="module")
def results(folder):
    kept = folder / "kept.json"
    options = ["--orders", "2", "--splits", "2", "--jobs", "1", "--json", str(kept)]
    assert quality.main([str(folder), "--methods", "one centroid", "Birch", *options]) == 0
    with pytest.MonkeyPatch.context() as patch:  # once in processes is enough: they start slowly
        patch.setattr(quality, "outcomes", backwards)
        assert quality.main([str(folder), "--methods", "Birch", "--sets", "two", *options]) == 0
    return json.loads(kept.read_text("utf-8"))


def test_a_later_run_keeps_the_results_of_other_methods(results):
    assert list(results["methods"]) == ["Birch", "one centroid"]
    assert all(set(kept["sets"]) == {"one", "two"} for kept in results["methods"].values())
    assert results["machine"]["versions"]["linkstream"]


def test_every_split_is_kept_and_the_first_stays_where_it_was(results):
    for kept in results["methods"].values():
        for of_set in kept["sets"].values():
            assert {"parameters", "orders", "vectors", "splits"} <= set(of_set)
            assert list(of_set["splits"]) == ["1"]
            assert len(quality_tables.splits_of(of_set)) == 2


def test_a_run_of_fewer_splits_drops_the_others():
    of_set = {}
    for split in (2, 0, 1):
        quality.keep(of_set, split, {"orders": [split]}, splits=3)
    assert of_set == {"orders": [0], "splits": {"1": {"orders": [1]}, "2": {"orders": [2]}}}
    quality.keep(of_set, 0, {"orders": [7]}, splits=2)
    assert of_set == {"orders": [7], "splits": {"1": {"orders": [1]}}}
    quality.keep(of_set, 0, {"orders": [8]}, splits=1)
    assert of_set == {"orders": [8]}


def with_one_split(results):
    """Return results as earlier versions wrote them: one split, no stillness."""
    old = json.loads(json.dumps(results))
    for kept in old["methods"].values():
        for of_set in kept["sets"].values():
            del of_set["splits"]
            of_set["orders"] = [
                {name: value for name, value in order.items() if name in MOMENTS}
                for order in of_set["orders"]
            ]
    return old


def test_results_of_earlier_versions_are_readable(results):
    old = with_one_split(results)
    assert [row.moment for row in quality_tables.rows(old)] == ["current", "instant = current"]
    assert quality_tables.accuracy_grid(old)[0] == ["method", "moment", "mean", "one", "two"]
    assert len(quality_tables.stillness_grid(old)) == 1
    assert "of one split" in quality_tables.body(old)
    assert "keep their ID" not in quality_tables.body(old)
    assert len(quality_tables.tables(old)) == 3


def test_the_tables_show_means_over_splits_and_stillness(results):
    head, birch, centroid = quality_tables.accuracy_grid(results)
    assert head[:5] == ["method", "moment", "mean", "still", "half"]
    assert birch[3:5] == ["—", "—"]
    assert centroid[3:5] == ["1.000", "1.000"]
    assert " ± " in birch[2]
    assert [line[:3] for line in quality_tables.stillness_grid(results)[1:]] == [
        ["one centroid", "still", "1.000"],
        ["one centroid", "half", "1.000"],
    ]
    assert "means over 2 splits" in quality_tables.body(results)
    assert len(quality_tables.tables(results)) == 4


def test_figures_of_a_cell_are_means_over_splits():
    cell = quality_tables.Cell(((0.8, 0.6), (0.4, 0.4)))
    assert cell.given == pytest.approx(0.6)
    assert cell.mean == pytest.approx(0.55)
    assert cell.deviation == pytest.approx(0.05)
    assert cell.spread == pytest.approx(0.1)


def test_sets_beside_the_headline_have_a_mean_of_their_own(results):
    more = json.loads(json.dumps(results))
    for kept in more["methods"].values():
        kept["sets"]["text_googlenews"] = kept["sets"].pop("one")
    head, birch, _ = quality_tables.accuracy_grid(more)
    assert head[2:4] == ["mean", "mean of 2"]
    assert head[-2:] == ["two", "text googlenews"]
    row = quality_tables.rows(more)[0]
    assert birch[2].startswith(quality_tables.decimal(row.cells["two"].given)) or "**" in birch[2]
    assert "text googlenews came later" in quality_tables.body(more)


def test_another_protocol_drops_earlier_results(results):
    assert quality.fresh(results, 2)["methods"] == results["methods"]
    assert quality.fresh(results, 3)["methods"] == {}


@pytest.mark.parametrize(
    "wrong", [["--sets", "three"], ["--methods", "magic"], ["--orders", "0"], ["--splits", "0"]]
)
def test_a_missing_method_or_set_is_named(folder, wrong):
    with pytest.raises(SystemExit, match=r"there are: |1 or more"):
        quality.main([str(folder), "--json", str(folder / "none.json"), *wrong])


def test_moments_that_never_differ_share_a_row(results):
    moments = {row.method: row.moment for row in quality_tables.rows(results)}
    assert moments == {"Birch": "current", "one centroid": "instant = current"}


def test_a_method_with_fewer_vectors_is_marked_and_never_the_best(results):
    results = json.loads(json.dumps(results))
    for cell in results["methods"]["Birch"]["sets"].values():
        cell["vectors"] = cell["splits"]["1"]["vectors"] = [5, 5]
    _, birch, centroid = quality_tables.accuracy_grid(results)
    assert birch[0] == "Birch †"
    assert not any("**" in text for text in birch)
    assert all("**" in text for text in [centroid[2], *centroid[5:]])


def test_the_page_keeps_the_text_around_the_markers(results, tmp_path):
    page = tmp_path / "tuning.md"
    page.write_text(
        "# T\n\nbefore\n\n<!-- quality -->\nstale\n<!-- /quality -->\n\nafter\n", "utf-8"
    )
    quality_tables.write(results, page)
    once = page.read_text("utf-8")
    assert "stale" not in once
    assert once.startswith("# T\n\nbefore\n\n<!-- quality -->\n")
    assert once.endswith("<!-- /quality -->\n\nafter\n")
    quality_tables.write(results, page)
    assert page.read_text("utf-8") == once


def test_a_page_without_markers_gets_a_section(results, tmp_path):
    page = tmp_path / "tuning.md"
    page.write_text("# T\n\nbefore\n", "utf-8")
    quality_tables.write(results, page)
    assert quality_tables.SECTION in page.read_text("utf-8")


def test_the_picture_is_drawn(results, tmp_path):
    quality_picture.draw(results, tmp_path / "quality_picture.png")
    assert (tmp_path / "quality_picture.png").stat().st_size > 5_000
