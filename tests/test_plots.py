"""Contents of pictures: rows, points, edges, and one colour per ID."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex

from linkstream import Links, metrics, plots
from linkstream.cli.doctor import SELF_CHECK_THRESHOLDS, self_check_vectors
from linkstream.errors import ArgumentError, MissingExtraError

SPEAKERS = np.array(list("aaabbbaaacccb"))
IDS = np.array([0, 0, 0, 1, 1, 2, 0, 0, 0, 3, 3, 0, 1])


@pytest.fixture(scope="module")
def links():
    made = Links(*SELF_CHECK_THRESHOLDS)
    made.add_many(self_check_vectors())
    return made


def drawn(axes, label):
    return [artist for artist in axes.get_children() if artist.get_label() == label]


def bars_of(axes, cluster):
    return drawn(axes, f"ID {cluster}")


def colour(artist):
    return to_hex(artist.get_facecolor()[0]).upper()


def length_of(bars):
    corners = [path.vertices for bar in bars for path in bar.get_paths()]
    return sum(np.ptp(corner[:, 0]) for corner in corners)


def test_a_timeline_has_a_row_for_each_identity_in_order_of_appearance():
    (axes,) = plots.timeline(SPEAKERS, IDS).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]


def test_every_vector_is_drawn_once_in_the_colour_of_its_id():
    (axes,) = plots.timeline(SPEAKERS, IDS).axes
    for cluster in np.unique(IDS):
        bars = bars_of(axes, cluster)
        assert length_of(bars) == np.count_nonzero(cluster == IDS)
        assert len({colour(bar) for bar in bars}) == 1


def test_matched_ids_have_different_colours_and_fragments_are_grey():
    (axes,) = plots.timeline(SPEAKERS, IDS).axes
    seen = {cluster: colour(bars_of(axes, cluster)[0]) for cluster in range(4)}
    assert seen[2] == plots.FRAGMENT
    assert bars_of(axes, 2)[0].get_hatch() == "////"
    known = [seen[0], seen[1], seen[3]]
    assert len(set(known)) == 3
    assert set(known) <= set(plots.PALETTE)


def test_a_given_matching_replaces_the_default_one():
    (axes,) = plots.timeline(SPEAKERS, IDS, matched={2: "b"}).axes
    assert colour(bars_of(axes, 2)[0]) == plots.PALETTE[0]
    assert colour(bars_of(axes, 1)[0]) == plots.FRAGMENT
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["ID 2 · 25%"]


def test_the_legend_names_fragments_only_if_there_are_any():
    assert plots.timeline(SPEAKERS, IDS).axes[0].get_legend() is not None
    assert plots.timeline(["a", "b"], [0, 1]).axes[0].get_legend() is None


def test_a_gap_in_time_ends_a_bar():
    (axes,) = plots.timeline(["a"] * 4, [0] * 4, [0.0, 1.0, 10.0, 11.0]).axes
    assert length_of(bars_of(axes, 0)) == pytest.approx(4.0)
    assert len(bars_of(axes, 0)[0].get_paths()) == 2


def test_small_differences_in_time_do_not_end_a_bar():
    (axes,) = plots.timeline(["a"] * 4, [0] * 4, np.float32([0.1, 0.5, 0.9000001, 1.3])).axes
    assert len(bars_of(axes, 0)[0].get_paths()) == 1


def test_a_graph_has_a_node_for_each_subcluster_and_a_line_for_each_edge(links):
    (axes,) = plots.graph(links).axes
    state = links.state()
    (nodes,) = drawn(axes, "subclusters")
    assert len(nodes.get_offsets()) == links.n_subclusters
    (edges,) = drawn(axes, "edges")
    assert len(edges.get_segments()) == len(state.edges)
    assert np.argmax(nodes.get_sizes()) == np.argmax(state.counts)


def test_nodes_of_one_cluster_have_one_colour(links):
    (axes,) = plots.graph(links).axes
    (nodes,) = drawn(axes, "subclusters")
    colours = np.array([to_hex(face) for face in nodes.get_facecolors()])
    clusters = links.state().clusters
    for cluster in np.unique(clusters):
        assert len(set(colours[clusters == cluster])) == 1


def test_given_vectors_are_drawn(links):
    (axes,) = plots.graph(links, vectors=self_check_vectors()).axes
    (dots,) = drawn(axes, "vectors")
    assert len(dots.get_offsets()) == links.n_vectors


def test_the_plane_is_the_same_every_time(links):
    offsets = [drawn(plots.graph(links).axes[0], "subclusters")[0].get_offsets() for _ in "ab"]
    np.testing.assert_array_equal(*offsets)


def test_the_plane_keeps_the_two_main_directions():
    links = Links(0.9, 0.95, 0.95)
    vectors = np.eye(6)[[0, 0, 0, 1, 1, 1]] + 1e-3 * np.eye(6)
    links.add_many(vectors)
    (nodes,) = drawn(plots.graph(links).axes[0], "subclusters")
    one, other = nodes.get_offsets()
    assert np.hypot(*(one - other)) == pytest.approx(np.sqrt(2), abs=1e-2)


def test_a_single_subcluster_can_be_drawn():
    links = Links(0.7, 0.6, 0.9)
    links.add([1.0, 0.0])
    assert len(drawn(plots.graph(links).axes[0], "subclusters")[0].get_offsets()) == 1


def test_the_demo_picture_has_one_colour_for_an_id_in_both_panels(links, tmp_path):
    vectors = self_check_vectors()
    y = np.array([i**3 % 5 for i in range(100)])
    ids = links.labels()
    matched = metrics.match(y, ids)
    figure = plots.demo_picture(y, ids, links, vectors=vectors, matched=matched, title="A title")
    left, right = figure.axes
    (nodes,) = drawn(right, "subclusters")
    clusters = links.state().clusters.tolist()
    for cluster in matched:
        face = nodes.get_facecolors()[clusters.index(cluster)]
        assert to_hex(face).upper() == colour(bars_of(left, cluster)[0])
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_drawing_needs_no_window_and_leaves_no_global_state():
    words = (
        "import sys; from linkstream import plots\n"
        "figure = plots.timeline([0, 0, 1], [0, 0, 1])\n"
        "print(len(figure.axes), 'matplotlib.pyplot' in sys.modules)"
    )
    # A Python of its own: in this one other tests' packages may have brought pyplot in.
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


@pytest.mark.parametrize(
    ("y", "ids", "times", "match"),
    [
        ([0, 1], [0], None, "shapes"),
        ([], [], None, "shapes"),
        ([[0]], [[0]], None, "shapes"),
        ([0, 1], ["x", "y"], None, "dtype"),
        ([0, 1], [0, 1], [1.0, 0.0], "decrease"),
    ],
)
def test_bad_labels_ids_and_times_are_refused(y, ids, times, match):
    with pytest.raises(ArgumentError, match=match):
        plots.timeline(y, ids, times)


def test_a_clusterer_without_vectors_cannot_be_drawn():
    with pytest.raises(ArgumentError, match="without vectors"):
        plots.graph(Links(0.7, 0.6, 0.9))


def test_other_vectors_than_those_added_are_refused(links):
    with pytest.raises(ArgumentError, match="2 vectors for a clusterer with 100"):
        plots.graph(links, vectors=self_check_vectors()[:2])


def test_without_matplotlib_the_error_has_the_install_line(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "linkstream\[plots\]"'):
        plots.timeline([0], [0])


# Overviews of a clusterer or a store


@pytest.mark.parametrize(
    "picture", [plots.cluster_graphs, plots.stream, plots.sizes, plots.margins]
)
def test_a_clusterer_is_drawn_and_an_empty_one_is_refused(links, picture, tmp_path):
    plots.save(picture(links), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    with pytest.raises(ArgumentError, match="without vectors"):
        picture(Links(0.7, 0.6, 0.9))


def nodes_of(axes):
    return [
        each for each in axes.collections if hasattr(each, "get_sizes") and len(each.get_sizes())
    ]


def test_cluster_graphs_draw_all_subclusters_and_edges(links):
    (axes,) = plots.cluster_graphs(links).axes
    assert sum(len(nodes.get_offsets()) for nodes in nodes_of(axes)) == links.n_subclusters
    edges = sum(len(each.get_segments()) for each in drawn(axes, "edges"))
    assert edges == len(links.state().edges)
    assert len(axes.texts) == links.n_clusters
    assert "all 9 clusters, 54 subclusters" in axes.get_title(loc="left")


def test_the_graphs_of_two_clusters_do_not_overlap(links):
    (axes,) = plots.cluster_graphs(links).axes
    graphs = [np.asarray(nodes.get_offsets()) for nodes in nodes_of(axes)]
    for place, one in enumerate(graphs):
        for other in graphs[:place]:
            assert np.linalg.norm(one[:, None] - other[None], axis=2).min() > 0.35


def test_cluster_graphs_of_a_large_clusterer_draw_the_biggest_clusters(links):
    (axes,) = plots.cluster_graphs(links, limit=12).axes
    sizes = [len(nodes.get_offsets()) for nodes in nodes_of(axes)]
    assert sum(sizes) <= 12
    assert max(sizes) == 2
    assert "of 9 clusters" in axes.get_title(loc="left")


def test_the_stream_draws_every_vector_at_its_arrival(links):
    upper, lower = plots.stream(links).axes
    assert len(drawn(upper, "vectors")) == len(drawn(upper, "span")) == links.n_clusters
    assert lower.get_lines()[0].get_ydata()[-1] == links.n_clusters


def test_the_stream_without_tracked_vectors_draws_spans():
    links = Links(*SELF_CHECK_THRESHOLDS, track_vectors=False)
    links.add_many(self_check_vectors())
    upper, _ = plots.stream(links).axes
    assert len(drawn(upper, "span")) == links.n_clusters
    assert drawn(upper, "vectors") == []


def test_the_sizes_add_up(links):
    left, right = plots.sizes(links).axes
    assert sum(bar.get_width() for bar in left.patches) == links.n_vectors
    assert sum(bar.get_height() for bar in right.patches) == links.n_clusters


def test_the_margins_of_all_edges_and_pairs_are_drawn(links):
    left, right = plots.margins(links).axes
    assert sum(bar.get_height() for bar in left.patches) == len(links.state().edges)
    assert sum(bar.get_height() for bar in right.patches) == 9 * 8 / 2


def test_a_name_is_not_drawn_as_a_formula(links, tmp_path):
    named = Links.from_bytes(links.to_bytes())
    named.name(0, "$\\frac{ \x1b 日本")
    for picture in (plots.graph, plots.cluster_graphs, plots.stream, plots.sizes):
        plots.save(picture(named), tmp_path / "picture.png")


def test_a_picture_that_cannot_be_written_is_an_argument_error(links, tmp_path):
    with pytest.raises(ArgumentError, match="No such file"):
        plots.save(plots.sizes(links), tmp_path / "nowhere" / "picture.png")
