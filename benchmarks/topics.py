"""Measure the stability of topic numbers with BERTopic: `python -m benchmarks.topics FOLDER`.

It needs BERTopic and HDBSCAN. The scored half of each set of texts (`protocol.py`) is given to
BERTopic in ten batches. Documents are made-up words: BERTopic only counts them, and they do not
affect the figures. The figures are the share of documents whose topic number after the last batch
is the first one, and the accuracy after the last batch.

- links: LinksTopics, its thresholds tuned on the other half.
- links, one setting: the same, tuned on the other halves of all three sets as one stream.
- links, preset: LinksTopics(preset="minilm"), with its healing; it was made from these sets.
- k-means: MiniBatchKMeans of scikit-learn with the final number of topics. The topic of an old
  document is that of `transform`.
- HDBSCAN again: fitted again after every batch on five principal components, the configuration of
  BERTopic without UMAP. Outliers (−1) that stay outliers count as unchanged.

The command prints a table for docs/adapters.md. It takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.preset_points import together
from benchmarks.protocol import Half, load
from linkstream import Thresholds
from linkstream.adapters.bertopic import LinksTopics, current_topics
from linkstream.metrics import accuracy
from linkstream.tuning import tune

SETS = ("text_banking77", "text_clinc150", "text_hwu64")
BATCHES, TRIALS = 10, 64

Topics = npt.NDArray[np.int64]


class TopicNumbers(NamedTuple):
    """Topics at arrival, and after the last batch."""

    given: Topics
    now: Topics


def documents(half: Half) -> list[str]:
    """Return made-up documents: a word per identity, and one of a few common words."""
    rng = np.random.default_rng(0)
    return [f"about{who} word{rng.integers(9)}" for who in half.y.tolist()]


def model_of(clusterer: Any, reduction: Any = None) -> Any:
    """Return a BERTopic model around a clusterer, with an optional reduction of dimensions."""
    from bertopic import BERTopic
    from bertopic.dimensionality import BaseDimensionalityReduction
    from bertopic.vectorizers import OnlineCountVectorizer

    return BERTopic(
        embedding_model=None,
        umap_model=reduction or BaseDimensionalityReduction(),
        hdbscan_model=clusterer,
        vectorizer_model=OnlineCountVectorizer(),
    )


def in_batches(model: Any, half: Half) -> Topics:
    """Call `partial_fit` batch by batch; return the topic of each document at its arrival."""
    docs, given = documents(half), []
    for places in np.array_split(np.arange(len(half.y)), BATCHES):
        model.partial_fit([docs[place] for place in places], half.X[places])
        given.extend(model.topics_)
    return np.array(given)


def links(tuning: Half, scored: Half) -> TopicNumbers:
    """Run Links, tuned on the other half."""
    found = tune(tuning.X, tuning.y, trials=TRIALS, evidence="cluster").thresholds
    return links_with(found, scored)


def links_with(thresholds: Thresholds, scored: Half) -> TopicNumbers:
    """Run Links with these thresholds."""
    model = model_of(LinksTopics(**asdict(thresholds), threads=1))
    return TopicNumbers(in_batches(model, scored), current_topics(model))


def links_preset(tuning: Half, scored: Half) -> TopicNumbers:
    """Run Links with the preset of the encoder."""
    model = model_of(LinksTopics(preset="minilm", threads=1))
    return TopicNumbers(in_batches(model, scored), current_topics(model))


def k_means(tuning: Half, scored: Half) -> TopicNumbers:
    """Run mini-batch k-means with the true number of topics."""
    from sklearn.cluster import MiniBatchKMeans

    model = model_of(MiniBatchKMeans(len(np.unique(scored.y)), random_state=0, n_init=3))
    given = in_batches(model, scored)
    return TopicNumbers(given, np.array(model.transform(documents(scored), scored.X)[0]))


def hdbscan_again(tuning: Half, scored: Half) -> TopicNumbers:
    """Fit HDBSCAN to all documents so far, after every batch."""
    from hdbscan import HDBSCAN
    from sklearn.decomposition import PCA

    docs, given = documents(scored), []
    for places in np.array_split(np.arange(len(scored.y)), BATCHES):
        end = int(places[-1]) + 1
        model = model_of(HDBSCAN(min_cluster_size=10), PCA(5, random_state=0))
        now = np.array(model.fit_transform(docs[:end], scored.X[:end])[0])
        given.extend(now[places])
    return TopicNumbers(np.array(given), now)


CONTENDERS: dict[str, Callable[[Half, Half], TopicNumbers]] = {
    "links": links,
    "links, preset": links_preset,
    "k-means": k_means,
    "HDBSCAN again": hdbscan_again,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all methods on all sets, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    print("| |", " | ".join(SETS), "|")
    print("|---|" + "---|" * len(SETS))
    sets = [load(folder / f"{name}.npz") for name in SETS]
    every = together([tuning for tuning, _ in sets])
    shared = tune(every.X, every.y, trials=TRIALS, evidence="cluster").thresholds
    one_setting = {"links, one setting": lambda _, scored: links_with(shared, scored)}
    for name, contender in (one_setting | CONTENDERS).items():
        cells = []
        for tuning, scored in sets:
            numbers = contender(tuning, scored)
            same = float(np.mean(numbers.given == numbers.now))
            cells.append(f"{same:.1%} · {accuracy(scored.y, numbers.now):.3f}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)
    print(f"\nOne setting: {shared}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
