"""The pictures of docs/how-links-works.md, drawn from decisions that the engine really takes.

Run it from the root of the repository: `python docs/pictures/how.py`. It writes five PNG files to
docs/img and prints the figures that the page quotes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import ScalarFormatter

from linkstream import Links, Space, Thresholds
from linkstream.data import voice_stream
from linkstream.paper.generative import sample_stream, sigma_of
from linkstream.paper.sphere import normalise
from linkstream.paper.thresholds import (
    anisotropic_pair_threshold,
    anisotropic_vector_threshold,
    pair_threshold,
    vector_threshold,
)

IMG = Path(__file__).resolve().parent.parent / "img"

# Okabe and Ito's palette: told apart by every kind of colour vision, and in grey by lightness.
BLUE, ORANGE, GREEN, RED, INK, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#222222",
    "#9A9A9A",
)
OUTCOMES = {"joined": BLUE, "linked": ORANGE, "new": GREY}
CLUSTERS = (BLUE, ORANGE)


def main() -> None:
    IMG.mkdir(parents=True, exist_ok=True)
    save(three_outcomes(), "outcomes")
    save(a_graph_in_four_steps(), "update")
    save(threshold_curves(), "thresholds")
    save(the_cliff(), "cliff")
    save(the_cone(), "cone")


def save(figure: Figure, name: str) -> None:
    figure.savefig(IMG / f"{name}.png", dpi=130, metadata={"Software": None})
    print(f"wrote {name}.png")


# (a) What can happen to a vector


def three_outcomes() -> Figure:
    """Every direction of a half circle, coloured by what the engine would do with it."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_half_circle(left, members=[0.0], title="the subcluster holds 1 vector")
    spread = [-9.0, -7, -5, -4, -2, -1, 1, 2, 4, 5, 7, 9]
    draw_half_circle(right, members=spread, title=f"the subcluster holds {len(spread)} vectors")
    meanings = {"joined": "join", "linked": "link", "new": "new cluster"}
    figure.legend(
        handles=[Line2D([], [], color=OUTCOMES[k], lw=8, label=meanings[k]) for k in meanings],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure


def draw_half_circle(axes: Axes, *, members: list[float], title: str) -> None:
    links = Links(0.80, 0.90, 0.95)
    links.add_many(on_circle(members))
    assert links.n_subclusters == 1
    ring = np.linspace(-95.0, 95.0, 761)
    kinds = np.array([links.explain(x).kind for x in on_circle(ring)])
    for kind, color in OUTCOMES.items():
        arc = np.where((kinds == kind)[:, np.newaxis], on_circle(ring), np.nan)
        axes.plot(arc[:, 0], arc[:, 1], color=color, lw=9, solid_capstyle="butt")
    inner = on_circle(members) * 0.93
    axes.plot(inner[:, 0], inner[:, 1], ".", color=INK, ms=5)
    axes.annotate("", (0, 0.9), (0, 0), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.2})
    axes.text(-0.03, 0.45, "centroid", ha="right", color=INK, fontsize=9)
    for degrees in (18.0, 44.0, 72.0):
        draw_asked_vector(axes, links, degrees)
    thresholds = links.thresholds
    note = (
        f"$T_s$ = {thresholds.subcluster_similarity:.2f}   "
        f"$\\tilde{{s}}$({len(members)}) = {thresholds.edge(len(members), 1):.2f}"
    )
    axes.text(-1.08, 1.12, note, fontsize=10, color=INK)
    axes.set(xlim=(-1.1, 1.75), ylim=(-0.12, 1.22), aspect="equal")
    axes.set_title(title, fontsize=12)
    axes.axis("off")


def draw_asked_vector(axes: Axes, links: Links, degrees: float) -> None:
    vector = on_circle([degrees])[0]
    answer = links.explain(vector)
    verb = {"joined": "join", "linked": "link", "new": "new cluster"}[answer.kind]
    color = OUTCOMES[answer.kind] if answer.kind != "new" else "#555555"
    axes.annotate(
        "", vector * 0.95, (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.8}
    )
    place = vector * 1.1
    label = f"{verb}: similarity {answer.nearest[0].similarity:.2f}"
    axes.text(place[0], place[1], label, color=INK, fontsize=9, va="center")


def on_circle(degrees: Sequence[float] | np.ndarray) -> np.ndarray:
    """Unit vectors in the plane, by their angle from straight up."""
    radians = np.radians(np.asarray(degrees, dtype=float))
    return np.stack([np.sin(radians), np.cos(radians)], axis=1)


# (b) A graph through link, merge, sever and re-join, split

STORY = ((-8, -5), (15, -10), (-5, -28), (-22, 8), (9, -22), (-15, 3), (12, -17), (-6, -29))
STORY += ((-4, -30),)
STORY_THRESHOLDS = Thresholds(0.85, 0.95, 0.95)
PANELS = {
    3: "1. link\n1, 2 and 3 are each tied to 0\n",
    5: "2. merge\n3 moves towards 0 and merges\n",
    6: "3. sever, re-join\n1 has grown: edge to 0 fails,\none to 2 holds",
    8: "4. sever, split\n2 has grown: edge to 0 fails,\nand no other holds",
}


def a_graph_in_four_steps() -> Figure:
    """Nine vectors on a cap of the globe, and the graph after four of them."""
    figure = Figure(figsize=(13, 5.0), layout="constrained")
    panels = iter(figure.subplots(1, 4))
    links = Links.from_thresholds(STORY_THRESHOLDS)
    for arrived, vector in enumerate(on_cap(STORY)):
        before, since = links.state(), len(links.events())
        links.add(vector)
        if arrived in PANELS:
            axes = next(panels)
            draw_graph(axes, links, before, links.events(since))
            axes.set_title(PANELS[arrived], fontsize=11)
        for event in links.events(since):
            print("story:", event)
    handles = [
        Line2D([], [], marker="o", ls="", mfc="white", mec=INK, ms=12, label="subcluster, number"),
        Line2D([], [], marker="x", ls="", color=INK, ms=6, label="vector"),
        Line2D([], [], marker="*", ls="", color=RED, ms=12, label="newest vector"),
        Line2D([], [], color=INK, lw=2, label="edge"),
        Line2D([], [], color=RED, lw=1.6, ls=":", label="edge severed just now"),
        Line2D([], [], color=BLUE, lw=8, label="cluster 0"),
        Line2D([], [], color=ORANGE, lw=8, label="cluster 1"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=7, frameon=False)
    return figure


def draw_graph(axes: Axes, links: Links, before, events) -> None:
    state = links.state()
    centres = dict(zip(state.numbers.tolist(), off_cap(state.sums), strict=True))
    old = dict(zip(before.numbers.tolist(), off_cap(before.sums), strict=True))
    for a, b in state.edges.tolist():
        axes.plot(*zip(centres[a], centres[b], strict=True), color=INK, lw=2, zorder=1)
    for event in events:
        if event.kind == "merged":
            for number in (event.subcluster, event.absorbed):
                draw_node(axes, old[number], str(number), count=1, face="white", edge=GREY)
        if event.kind == "severed":
            ends = zip(centres[event.subcluster], centres[event.partner], strict=True)
            axes.plot(*ends, color=RED, lw=1.6, ls=":", zorder=1)
    columns = zip(state.numbers.tolist(), state.counts.tolist(), state.clusters, strict=True)
    for number, count, cluster in columns:
        draw_node(axes, centres[number], str(number), count=count, face=CLUSTERS[cluster])
    seen = np.array(STORY[: links.n_vectors])
    outline = [withStroke(linewidth=3, foreground="white")]
    axes.plot(*seen[:-1].T, "x", color=INK, ms=5, zorder=4, path_effects=outline)
    axes.plot(*seen[-1], "*", color=RED, mec="white", mew=0.6, ms=14, zorder=6)
    axes.set(xlim=(-33, 27), ylim=(-40, 18), aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color("#DDDDDD")


def draw_node(
    axes: Axes, at: np.ndarray, label: str, *, count: int, face: str, edge: str = INK
) -> None:
    ghost = edge == GREY
    axes.add_patch(
        Circle(
            tuple(at),
            2.6 * math.sqrt(count),
            facecolor=face,
            edgecolor=edge,
            linestyle="--" if ghost else "-",
            zorder=2 if ghost else 3,
        )
    )
    color = GREY if ghost else INK
    shift = 2.6 * math.sqrt(count) + 2.2
    name = axes.text(at[0], at[1] + shift, label, ha="center", va="center", color=color)
    name.set(fontsize=11, zorder=7, path_effects=[withStroke(linewidth=3, foreground="white")])


def on_cap(degrees: Sequence[tuple[int, int]]) -> np.ndarray:
    """Unit vectors near the pole from places on a map: distance from its middle is the angle."""
    places = np.radians(np.asarray(degrees, dtype=float))
    angle = np.linalg.norm(places, axis=1)
    return np.column_stack([places * np.sinc(angle / math.pi)[:, np.newaxis], np.cos(angle)])


def off_cap(vectors: np.ndarray) -> np.ndarray:
    """Where a vector lies on that map, in degrees."""
    x, y, z = vectors.T.astype(float)
    flat = np.hypot(x, y)
    scale = np.degrees(np.arctan2(flat, z)) / np.where(flat > 0.0, flat, 1.0)
    return np.column_stack([x * scale, y * scale])


# (c) What the thresholds ask as counts grow


def threshold_curves() -> Figure:
    """s and s~ against the count, with the values they start from and tend to."""
    t_c, t_p = 0.70, 0.90
    k = np.geomspace(1, 1000, 200)
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot(k, vector_threshold(t_c, k), color=BLUE, lw=2.2, ls="--", label="s(k)")
    left.plot(k, anisotropic_vector_threshold(t_c, t_p, k), color=RED, lw=2.2, label="s̃(k)")
    left.set_title("a new vector against a subcluster of k", fontsize=11)
    right.plot(k, pair_threshold(t_c, k, k), color=BLUE, lw=2.2, ls="--", label="s(k, k)")
    right.plot(k, anisotropic_pair_threshold(t_c, t_p, k, k), color=RED, lw=2.2, label="s̃(k, k)")
    right.set_title("two subclusters of k each", fontsize=11)
    marks = {t_c * t_c: "$T_c^2$ = 0.49", t_c: "$T_c$ = 0.70", t_p: "$T_p$ = 0.90"}
    for axes in (left, right):
        for value, name in marks.items():
            axes.axhline(value, color=GREY, lw=1, ls=":")
            axes.text(1050, value + 0.008, name, color=INK, ha="right", va="bottom", fontsize=10)
        axes.set(xscale="log", xlim=(1, 1100), ylim=(0.45, 1.02), xlabel="k, vectors held")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.legend(loc="upper left", frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("similarity asked for")
    return figure


# (d) The cliff of T_s


def the_cliff() -> Figure:
    """How many subclusters the same 3,000 vectors end in, against T_s."""
    cosine, dimension, clusters, each = 0.75, 256, 25, 120
    sigma = sigma_of(math.acos(cosine), dimension)
    X, _ = sample_stream(clusters, each, dimension, sigma, np.random.default_rng(7))
    settings = np.round(np.arange(0.44, 0.8001, 0.02), 2)
    nodes, found = [], []
    for t_s in settings:
        links = Links(0.70, t_s, 0.90, track_vectors=False)
        links.add_many(X)
        nodes.append(links.n_subclusters)
        found.append(links.n_clusters)
        print(f"cliff: T_s {t_s:.2f}: {nodes[-1]} subclusters, {found[-1]} clusters")
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(settings, nodes, "o-", color=RED, lw=2, ms=5, label="subclusters")
    axes.plot(settings, found, "s--", color=BLUE, lw=1.6, ms=4, label="clusters")
    axes.axhline(len(X), color=GREY, lw=1, ls=":")
    axes.text(0.44, len(X) * 1.08, "3,000: one subcluster a vector", color=INK, fontsize=9)
    axes.axvline(cosine**2, color=GREY, lw=1, ls=":")
    axes.text(cosine**2 - 0.004, 150, "two members of one cluster\nhave about this similarity",
              color=INK, ha="right", fontsize=9)  # fmt: skip
    axes.set(yscale="log", ylim=(15, 5000), xlabel="$T_s$", ylabel="number after 3,000 vectors")
    axes.set_yticks([25, 100, 1000, 3000], ["25", "100", "1,000", "3,000"])
    axes.legend(loc="center right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


# (e) The cone, and what a Space does about it


def the_cone() -> Figure:
    """Similarities within and between readers, as given and with the mean taken away."""
    X, reader, _ = voice_stream()
    pairs = np.triu_indices(len(X), k=1)
    same = (reader[:, np.newaxis] == reader)[pairs]
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    spaces = {"as given": Space(), "mean vector taken away": Space(mean=X.mean(axis=0))}
    for axes, (title, space) in zip(
        figure.subplots(1, 2, sharex=True), spaces.items(), strict=True
    ):
        units = normalise(space.centre(X))
        similarity = (units @ units.T)[pairs]
        bins = np.linspace(-0.6, 1.0, 81)
        axes.hist(similarity[~same], bins, density=True, color=GREY, label="different readers")
        axes.hist(similarity[same], bins, density=True, histtype="step", color=BLUE, lw=2,
                  label="one reader")  # fmt: skip
        strangers, friends = similarity[~same].mean(), similarity[same].mean()
        print(f"cone: {title}: strangers {strangers:.3f}, one reader {friends:.3f}")
        axes.axvline(strangers, color=INK, lw=1, ls=":")
        axes.set_title(f"{title}: strangers at {strangers:.2f} on average", fontsize=11)
        axes.set(xlabel="similarity of two vectors", yticks=[], xlim=(-0.6, 1.0))
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.axes[0].legend(loc="upper left", frameon=False)
    return figure


if __name__ == "__main__":
    main()
