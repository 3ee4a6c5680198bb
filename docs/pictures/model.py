"""The pictures of docs/model.md, and with `tables` as argument the figures of its tables.

python docs/pictures/model.py          # writes docs/img/marginal.png, finite-thresholds.png
python docs/pictures/model.py tables   # prints the tables, some three minutes
"""

import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from linkstream import Links
from linkstream.errors import ConvergenceError, ThresholdError
from linkstream.metrics import accuracy
from linkstream.paper.generative import (
    log_marginal,
    sample_angles,
    sample_cluster,
    sample_stream,
    sigma_of,
)
from linkstream.paper.predictive import (
    cumulative,
    derive_thresholds,
    finite_threshold,
    stranger_similarity,
)
from linkstream.paper.sphere import angle, centroid, model_centroid, spherical_mean
from linkstream.paper.thresholds import vector_threshold

mpl.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).resolve().parent.parent / "img"
COSINE = 0.7
INK, QUIET, OWN, STRANGER = "#222222", "#8a8a8a", "#1f5f8b", "#b5533c"
BLUES = ["#b9d3e6", "#8fb8d6", "#5c97c2", "#2f74a8", "#0f4c7a"]


def style():
    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": QUIET,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "savefig.dpi": 150,
            "figure.facecolor": "white",
        }
    )


def marginal_picture():
    """Equation 3 for growing N, σ chosen so that the mode stays where it is."""
    figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
    theta_c = math.acos(COSINE)
    theta = np.linspace(0.0, math.pi / 2, 1500)
    for dimension, colour in zip((4, 16, 64, 256, 1024), BLUES, strict=True):
        density = np.exp(log_marginal(theta, sigma_of(theta_c, dimension), dimension))
        axes.plot(np.degrees(theta), density * math.pi / 180, color=colour, lw=1.8)
        axes.fill_between(np.degrees(theta), density * math.pi / 180, color=colour, alpha=0.10)
        top = density.max() * math.pi / 180
        # Each label sits on the right flank, where its curve has fallen to 0.7 of its peak.
        flank = np.degrees(theta[(theta > theta_c) & (density < 0.7 * density.max())][0])
        axes.annotate(
            f"N = {dimension}",
            (flank, 0.7 * top),
            xytext=(7, 4),
            textcoords="offset points",
            color=colour if dimension > 16 else "#5f86a3",
        )
    axes.axvline(np.degrees(theta_c), color=QUIET, lw=0.9, ls=(0, (4, 3)), zorder=0)
    axes.annotate(
        "θ$_c$, the mode of all five",
        (np.degrees(theta_c), 0.43),
        xytext=(6, -4),
        textcoords="offset points",
        color=INK,
    )
    axes.set(
        xlim=(0, 90),
        ylim=(0, 0.44),
        xlabel="angle θ between a vector and the centre of its cluster (degrees)",
        ylabel="density per degree",
        xticks=range(0, 91, 15),
    )
    axes.set_title("In high dimension a cluster is a thin shell around its centre", loc="left")
    figure.savefig(IMAGES / "marginal.png")
    plt.close(figure)


def thresholds_picture():
    """s_p(k) at finite N around s(k), over the reach of strangers."""
    dimensions, ks = (8, 32, 128, 512), np.unique(np.geomspace(1, 100, 13).round())
    figure, panels = plt.subplots(
        1, 4, figsize=(11.0, 3.9), sharey=True, sharex=True, layout="constrained"
    )
    figure.get_layout_engine().set(wspace=0.06)
    for axes, dimension in zip(panels, dimensions, strict=True):
        sigma = sigma_of(math.acos(COSINE), dimension)
        half, most = (
            np.array([finite_threshold(float(k), dimension, sigma, p) for k in ks])
            for p in (0.5, 0.99)
        )
        strangers = stranger_similarity(dimension, 0.01)
        axes.axhspan(-1.0, strangers, color=STRANGER, alpha=0.10, lw=0)
        axes.axhline(strangers, color=STRANGER, lw=1.2)
        axes.fill_between(ks, most, half, color=OWN, alpha=0.12, lw=0)
        axes.fill_between(
            ks, most, strangers, where=most < strangers, interpolate=True,
            facecolor="none", edgecolor=STRANGER, hatch="////", lw=0,
        )  # fmt: skip
        axes.plot(ks, vector_threshold(COSINE, ks), color=INK, lw=1.6)
        axes.plot(ks, half, color=OWN, lw=1.6, ls=(0, (4, 2)))
        axes.plot(ks, most, color=OWN, lw=1.8)
        axes.set_title(f"N = {dimension}", loc="left", fontsize=11)
        axes.set(xscale="log", xlim=(1, 100), ylim=(-0.25, 0.9), xticks=[1, 10, 100])
        axes.set_xticklabels(["1", "10", "100"])
        axes.minorticks_off()
    panels[0].set_ylabel("similarity to the centroid of k vectors")
    figure.supxlabel("k, vectors in the subcluster (cos θ$_c$ = 0.7)", fontsize=10)
    lines = [
        plt.Line2D([], [], color=INK, lw=1.6),
        plt.Line2D([], [], color=OWN, lw=1.6, ls=(0, (4, 2))),
        plt.Line2D([], [], color=OWN, lw=1.8),
        plt.Line2D([], [], color=STRANGER, lw=1.2),
        plt.Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=STRANGER, hatch="////", lw=0),
    ]
    words = [
        "s(k), N → ∞",
        "half of the cluster's own vectors reach",
        "99 % of them reach",
        "1 % of strangers reach",
        "unsafe: the two overlap",
    ]
    figure.legend(lines, words, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(IMAGES / "finite-thresholds.png")
    plt.close(figure)


def centroid_table():
    """How far each middle lies from the true centre (cos θ_c = .8), over 200 subclusters of k."""
    print("| N | k | sum to centre | mean less sum | sum to mean | length by eq 12 | no mean |")
    print("|---|---|---|---|---|---|---|")
    for dimension in (8, 64, 256):
        for k in (2, 10, 100):
            rows, refused = middles(k, dimension, 0.8)
            to_sum, to_mean, between, length = np.transpose(rows)
            # Paired: the two middles of one subcluster share most of their error.
            gain = to_mean - to_sum
            error = gain.std(ddof=1) / math.sqrt(len(gain))
            print(f"| {dimension} | {k} | {to_sum.mean():.2f}° ", end="")
            print(f"| {gain.mean():+.4f}° ± {error:.4f}° | {between.mean():.2f}° ", end="")
            print(f"| {length.mean():.3f} ± {length.std():.3f} | {refused} |")


def middles(k, dimension, cosine):
    """Angles and length of one row of `centroid_table`, and how often no mean was certified."""
    rng = np.random.default_rng(dimension + k)
    center, sigma = np.eye(dimension)[0], sigma_of(math.acos(cosine), dimension)
    rows, refused = [], 0
    for _ in range(200):
        X = sample_cluster(center, k, sigma, rng)
        try:
            middle, mean = centroid(X), spherical_mean(X)
        except ConvergenceError:
            refused += 1
            continue
        angles = angle([middle, mean, middle], [center, center, mean])
        rows.append([*np.degrees(angles), np.linalg.norm(model_centroid(X, cosine))])
    return rows, refused


def dimension_table():
    """What s(k) promises at finite N (cos θ_c = .7), and where strangers come in."""
    print("| N | s_.5(1) - s(1) | own reaching s(1) | s_.99(1) | strangers' 1 % | safe from |")
    print("|---|---|---|---|---|---|")
    for dimension in (4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096):
        sigma = sigma_of(math.acos(COSINE), dimension)
        gap = finite_threshold(1, dimension, sigma, 0.5) - COSINE**2
        reach = float(cumulative(COSINE**2, 1, sigma, dimension))
        own, strangers = (
            finite_threshold(1, dimension, sigma, 0.99),
            stranger_similarity(dimension, 0.01),
        )
        print(
            f"| {dimension} | {gap:+.4f} | {reach:.3f} | {own:+.3f} | {strangers:.3f} "
            f"| {safe_cosine(dimension):.2f} |"
        )


def safe_cosine(dimension):
    """The least cos θ_c at which 99 % of pairs of one cluster beat 99 % of strangers."""
    strangers = stranger_similarity(dimension, 0.01)
    low, high = 0.05, 0.999
    for _ in range(10):
        middle = 0.5 * (low + high)
        sigma = sigma_of(math.acos(middle), dimension)
        if float(cumulative(strangers, 1, sigma, dimension)) >= 0.99:
            high = middle
        else:
            low = middle
    return high


def approximation_table():
    """The worst error of `cumulative` over nine levels and three widths, a million draws each."""
    levels = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999])
    print("| N | k = 1 | k = 2 | k = 3 | k = 10 |")
    print("|---|---|---|---|---|")
    for dimension in (2, 3, 4, 8, 32):
        cells = []
        for k in (1, 2, 3, 10):
            worst = 0.0
            for cosine in (0.5, 0.7, 0.9):
                theta_c = math.acos(cosine)
                sigma = sigma_of(theta_c, dimension) if dimension > 2 else theta_c
                values = drawn_similarities(k, sigma, dimension, 1_000_000)
                found = cumulative(np.quantile(values, 1 - levels), k, sigma, dimension)
                worst = max(worst, float(np.abs(found - levels).max()))
            cells.append(f"{worst:.4f}")
        print(f"| {dimension} | " + " | ".join(cells) + " |", flush=True)


def drawn_similarities(k, sigma, dimension, count):
    """Similarities of new vectors to centroids of k, by lengths along and across the centre."""
    rng = np.random.default_rng([dimension, k])

    def side():
        if dimension == 2:
            return rng.choice([-1.0, 1.0], count)
        return np.cos(sample_angles(count, math.inf, dimension - 1, rng))

    along, across = np.zeros(count), np.zeros(count)
    for _ in range(k):
        theta = sample_angles(count, sigma, dimension, rng)
        sine = np.sin(theta)
        along += np.cos(theta)
        across = np.sqrt(np.maximum(across**2 + sine**2 + 2 * across * sine * side(), 0.0))
    theta = sample_angles(count, sigma, dimension, rng)
    length = np.hypot(along, across)
    return (np.cos(theta) * along + np.sin(theta) * across * side()) / length


def clustering_table():
    """Accuracy of Links with derived thresholds: 20 clusters of 100, streams unseen before."""
    cosines = (0.5, 0.6, 0.7, 0.8, 0.9)
    print("| N | " + " | ".join(f"cos θ_c = {c}" for c in cosines) + " |")
    print("|---" * (len(cosines) + 1) + "|")
    for dimension in (64, 128, 256, 512):
        cells = []
        for cosine in cosines:
            sigma = sigma_of(math.acos(cosine), dimension)
            try:
                thresholds = derive_thresholds(sigma, dimension)
            except ThresholdError:
                cells.append("refused")
                continue
            found = []
            # Seeds below 20 and 4000 to 4059 served to choose the defaults of derive_thresholds.
            for seed in range(1000, 1010):
                X, y = sample_stream(20, 100, dimension, sigma, np.random.default_rng(seed))
                found.append(accuracy(y, Links.from_thresholds(thresholds).add_many(X)))
            cells.append(f"{np.mean(found):.4f} (least {min(found):.4f})")
        print(f"| {dimension} | " + " | ".join(cells) + " |", flush=True)


def tables():
    for table in (centroid_table, dimension_table, approximation_table, clustering_table):
        print(f"\n{table.__doc__}\n")
        table()


if __name__ == "__main__":
    style()
    if sys.argv[1:] == ["tables"]:
        tables()
    else:
        IMAGES.mkdir(exist_ok=True)
        marginal_picture()
        thresholds_picture()
