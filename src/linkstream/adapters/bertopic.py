"""BERTopic: `LinksTopics`, to be passed as `hdbscan_model=`: topic numbers that last.

It needs scikit-learn alone; BERTopic calls it, not the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters.sklearn import LinksClusterer
from linkstream.clusterer import Links
from linkstream.engine.events import Split
from linkstream.errors import ArgumentError


class LinksTopics(LinksClusterer):
    """`LinksClusterer` as BERTopic wants it: `labels_` are those of the last call alone.

    BERTopic reads `labels_` after each `fit` or `partial_fit`, and takes one for each document of
    that call. Documents in clusters of fewer than `min_size` are outliers, −1, until there are
    enough of them.

    Without a preset, `evidence` is "cluster" unless you say otherwise: what arrives then never
    splits a cluster, and a document keeps its topic for good. Healing (`heal`, and every preset)
    and `evidence="nearest"` may find better topics later, and move old documents to them; each
    such move is an event of `links_`. Everything else is as in `LinksClusterer`.

    >>> topics = LinksTopics(0.7, 0.6, 0.9).fit([[1.0, 0.0, 0.1], [0.0, 1.0, 0.0]])
    >>> topics.partial_fit([[0.9, 0.1, 0.0]]).labels_, topics.all_labels_
    (array([0]), array([0, 1, 0]))
    """

    @property
    def labels_(self) -> npt.NDArray[np.int64]:
        """Current ID of every row of the last `fit` or `partial_fit`; −1 for outliers."""
        return self.all_labels_[self._first_ :]

    @property
    def all_labels_(self) -> npt.NDArray[np.int64]:
        """Current ID of every row since `fit`, in order of arrival; −1 for outliers."""
        labels = super().labels_
        if self.links_.min_size > 1:
            pending = [cluster.id for cluster in self.links_.clusters() if cluster.pending]
            labels[np.isin(labels, pending)] = -1
        return labels

    def _parameters(self) -> dict[str, Any]:
        parameters = super()._parameters()
        if parameters["preset"] is None and parameters["evidence"] is None:
            parameters["evidence"] = "cluster"
        return parameters

    def _take(self, links: Links, X: Any) -> LinksClusterer:
        first = links.n_vectors
        super()._take(links, X)
        self._first_ = first
        return self


def current_topics(topic_model: Any) -> npt.NDArray[np.int64]:
    """Topic of every document so far, in order of arrival, by the numbers of a BERTopic model.

    BERTopic itself remembers the topics of the last `partial_fit` alone. A cluster that was split
    off and has had no document since is not known to BERTopic: its documents are then told under
    the topic it was split from, until `refresh_topics` gives it a number. −1 for outliers.
    """
    model = _clusterer(topic_model)
    numbers = _numbers(topic_model)
    came_from = {e.new_cluster: e.cluster for e in model.links_.events() if isinstance(e, Split)}
    ids, which = np.unique(model.all_labels_, return_inverse=True)
    topics = []
    for cluster in ids.tolist():
        while cluster not in numbers and cluster in came_from:
            cluster = came_from[cluster]
        topics.append(int(numbers.get(cluster, -1)))
    return np.array(topics, dtype=np.int64)[which]


def refresh_topics(
    topic_model: Any, documents: Sequence[str], embeddings: npt.ArrayLike | None = None
) -> npt.NDArray[np.int64]:
    """Bring BERTopic's own tables up to date, and return `current_topics`.

    BERTopic counts words and sizes when a document comes and never again. Where old documents move
    (healing, every preset, `evidence="nearest"`, corrections of `links_`), its tables go stale:
    `get_topic_info` lists topics that are gone. This call counts all documents anew by the topics
    they have now. Topics that are still there keep their numbers, topics that are gone have no row
    and their numbers are not used again, and clusters that BERTopic has not met get new numbers.
    Afterwards `partial_fit` goes on as before. Costs about one `fit` of BERTopic without embedding.

    A `decay` of the vectorizer starts anew. Representative documents and labels of
    `set_topic_labels` are forgotten: BERTopic keeps them by row.

    Args:
        topic_model: a fitted BERTopic model with `hdbscan_model=LinksTopics(...)`.
        documents: all documents since the first `partial_fit` or `fit`, in order of arrival.
        embeddings: their vectors; then the vectors of topics are the means of their documents.
            None: they come from words, where the model has an encoder, as after `partial_fit`.

    Raises:
        ArgumentError: not such a model, or not one document for each vector. Nothing has changed.
    """
    model = _clusterer(topic_model)
    _check_count("documents", documents, len(model.all_labels_))
    if embeddings is not None:
        _check_count("embeddings", embeddings, len(model.all_labels_))
    kept = [(each, dict(vars(each))) for each in _changed_by_refresh(topic_model)]
    rows = [list(row) for row in topic_model.topic_mapper_.mappings_]
    try:
        topics, empty = _renumber(topic_model, model)
        _count_anew(topic_model, list(documents), topics, empty)
        _place_topics(topic_model, topics, embeddings)
    except BaseException:
        for each, values in kept:
            each.__dict__ = values
        topic_model.topic_mapper_.mappings_ = rows
        raise
    return topics


def _clusterer(topic_model: Any) -> LinksTopics:
    model = getattr(topic_model, "hdbscan_model", None)
    if not (isinstance(model, LinksTopics) and getattr(topic_model, "topic_mapper_", None)):
        raise ArgumentError(
            f"a {type(topic_model).__name__} without topics by LinksTopics",
            expected="a BERTopic model, fitted, with hdbscan_model=LinksTopics(...)",
            remedy="Pass the clusterer when the model is made; fit or partial_fit it first.",
        )
    return model


def _check_count(what: str, given: Any, n: int) -> None:
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != n:
        seen = f"{len(given)} {what}" if hasattr(given, "__len__") else f"{what} without a length"
        raise ArgumentError(
            f"{seen} for {n} vectors",
            expected=f"all {n}, in order of arrival",
            remedy="Keep the documents of every batch: BERTopic does not.",
        )


def _changed_by_refresh(topic_model: Any) -> tuple[Any, ...]:
    return topic_model, topic_model.vectorizer_model, topic_model.ctfidf_model


def _numbers(topic_model: Any) -> dict[int, int]:
    """BERTopic's number of each cluster that it knows; outliers are −1 unless it says otherwise."""
    known: dict[int, int] = topic_model.topic_mapper_.get_mappings()
    return {-1: -1} | known


def _renumber(topic_model: Any, model: LinksTopics) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """Number clusters that BERTopic has not met, and retire the numbers of those that are gone.

    Returns the topic of each document, and the topics that have no document but may get some:
    outliers, and clusters that are pending. They keep their rows, as BERTopic's counts of words
    are by row: a topic that came back in the middle would be given the words of another.
    """
    mapper, labels = topic_model.topic_mapper_, model.all_labels_
    live = {-1, *(cluster.id for cluster in model.links_.clusters())}
    for row in mapper.mappings_:
        if row[0] >= 0 and row[0] not in live:
            row[0] = -2 - row[0]  # the number stays taken; an ID that came back gets a new one
    known = mapper.get_mappings()
    fresh = sorted(set(labels.tolist()) - set(known))
    if -1 in fresh:
        mapper.add_new_topics({-1: fresh.pop(0)})
    first = max(known.values()) + 1
    mapper.add_new_topics({each: first + place for place, each in enumerate(fresh)})
    ids, which = np.unique(labels, return_inverse=True)
    numbers = _numbers(topic_model)
    topics = np.array([numbers[each] for each in ids.tolist()], dtype=np.int64)[which]
    held = {int(number) for cluster, number in known.items() if cluster >= -1}
    return topics, dict.fromkeys(sorted(held - set(topics.tolist())), " ")


def _count_anew(
    topic_model: Any,
    documents: list[str],
    topics: npt.NDArray[np.int64],
    empty: dict[int, str],
) -> None:
    """Words, sizes and labels of all topics, from all documents."""
    counting = _CountingAnew(topic_model.vectorizer_model)
    topic_model.topics_ = [*topics.tolist(), *empty]
    topic_model.update_topics(
        [*documents, *empty.values()],
        top_n_words=topic_model.top_n_words,
        vectorizer_model=counting,
        ctfidf_model=topic_model.ctfidf_model,
        representation_model=topic_model.representation_model,
    )
    topic_model.vectorizer_model = counting.vectorizer
    topic_model.topics_ = topics.tolist()
    for topic in empty:
        del topic_model.topic_sizes_[topic]
    if -1 in empty:
        topic_model.topic_sizes_[-1] = 0  # BERTopic looks here whether its first row is outliers
    topic_model.representative_docs_ = {}
    topic_model.custom_labels_ = None


def _place_topics(
    topic_model: Any, topics: npt.NDArray[np.int64], embeddings: npt.ArrayLike | None
) -> None:
    """The vectors of all topics, in the order of BERTopic's rows."""
    topic_model.topic_embeddings_ = None
    if embeddings is None:
        topic_model._create_topic_vectors()  # as its partial_fit does
        return
    given = np.asarray(embeddings)
    none = np.zeros(given.shape[1:])
    topic_model.topic_embeddings_ = np.array(
        [
            given[topics == topic].mean(axis=0) if (topics == topic).any() else none
            for topic in sorted(topic_model.topic_representations_)
        ]
    )


class _CountingAnew:
    """A vectorizer that forgets what it has counted before it is fitted, and can go on after."""

    def __init__(self, vectorizer: Any) -> None:
        self.vectorizer = vectorizer

    def fit_transform(self, documents: Any) -> Any:
        """Count the words of all topics."""
        for name in ("X_", "vocabulary_"):
            vars(self.vectorizer).pop(name, None)
        if hasattr(self.vectorizer, "update_bow"):  # that of an online model keeps its counts
            return self.vectorizer.partial_fit(documents).update_bow(documents)
        return self.vectorizer.fit_transform(documents)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.vectorizer, name)
