"""`LinksTopics`, to be passed to BERTopic as `hdbscan_model=`, for stable topic numbers.

The module needs scikit-learn, but not BERTopic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters.sklearn import LinksClusterer, check_has_model
from linkstream.clusterer import Links
from linkstream.engine.events import Split
from linkstream.errors import ArgumentError


class LinksTopics(LinksClusterer):
    """`LinksClusterer` for BERTopic: `labels_` holds the labels of the last call only.

    BERTopic reads `labels_` after each `fit` or `partial_fit` and expects one label for each
    document of that call. Documents in clusters of fewer than `min_size` documents are outliers,
    −1, until the cluster is large enough.

    Without a preset or a mode, `evidence` defaults to "cluster": new documents then never split a
    cluster, and a document keeps its topic. Healing (`heal`, `mode="best"` and every preset) and
    `evidence="nearest"` may find better topics later and move old documents to them; each move is
    an event of `links_`. All parameters are those of `LinksClusterer`.

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

    @property
    def probabilities_(self) -> npt.NDArray[np.float64]:
        """Probability that the topic of each row of the last call is right, as told at its arrival.

        NaN where it is unknown. Without a model of confidence there is no such attribute, and
        BERTopic has no probabilities.
        """
        check_has_model(self)
        return self._told_

    def _parameters(self) -> dict[str, Any]:
        parameters = super()._parameters()
        if all(parameters[name] is None for name in ("preset", "mode", "evidence")):
            parameters["evidence"] = "cluster"
        return parameters

    def _take(self, links: Links, X: Any) -> LinksClusterer:
        first = links.n_vectors
        super()._take(links, X)
        self._first_ = first
        told = links.last_decisions.probability if links.last_decisions else None
        self._told_ = np.full(links.n_vectors - first, np.nan) if told is None else told
        return self


def current_topics(topic_model: Any) -> npt.NDArray[np.int64]:
    """Return BERTopic's topic number of every document so far, in order of arrival.

    BERTopic itself stores the topics of the last `partial_fit` only. A cluster that was split off
    and has had no document since is unknown to BERTopic: its documents are returned under the
    topic it was split from, until `refresh_topics` gives it a number. Outliers are −1.

    Args:
        topic_model: a fitted BERTopic model with `hdbscan_model=LinksTopics(...)`.
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
    """Update BERTopic's tables to the current topics, and return `current_topics`.

    BERTopic counts words and sizes when a document arrives and never again. When old documents move
    (healing, every preset, `evidence="nearest"`, corrections of `links_`), its tables go stale:
    `get_topic_info` lists topics that no longer exist. This call counts all documents again by
    their current topics. Existing topics keep their numbers, the numbers of topics that no longer
    exist are not used again, and clusters new to BERTopic get new numbers. Afterwards `partial_fit`
    continues as before. The cost is about one `fit` of BERTopic without embedding.

    A `decay` of the vectorizer starts again. Representative documents and labels of
    `set_topic_labels` are dropped: BERTopic stores them by row.

    Args:
        topic_model: a fitted BERTopic model with `hdbscan_model=LinksTopics(...)`.
        documents: all documents since the first `partial_fit` or `fit`, in order of arrival.
        embeddings: vectors of the documents; the vector of a topic is then the mean of its
            documents. Default: vectors from the words of the topics, if the model has an encoder.

    Raises:
        ArgumentError: another kind of model, or not one document for each vector. Nothing changed.
    """
    model = _clusterer(topic_model)
    _check_count("documents", documents, len(model.all_labels_))
    if embeddings is not None:
        _check_count("embeddings", embeddings, len(model.all_labels_))
    changed = topic_model, topic_model.vectorizer_model, topic_model.ctfidf_model
    kept = [(each, dict(vars(each))) for each in changed]
    rows = [list(row) for row in topic_model.topic_mapper_.mappings_]
    try:
        topics, empty = _renumber(topic_model, model)
        _count_again(topic_model, list(documents), topics, empty)
        _set_topic_vectors(topic_model, topics, embeddings)
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
            remedy="Pass the clusterer to BERTopic(), and call fit or partial_fit first.",
        )
    return model


def _check_count(what: str, given: Any, n: int) -> None:
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != n:
        seen = f"{len(given)} {what}" if hasattr(given, "__len__") else f"{what} without a length"
        raise ArgumentError(
            f"{seen} for {n} vectors",
            expected=f"all {n}, in order of arrival",
            remedy="Keep the documents of every batch; BERTopic does not keep them.",
        )


def _numbers(topic_model: Any) -> dict[int, int]:
    """Return BERTopic's number of each cluster it knows; outliers are −1 by default."""
    known: dict[int, int] = topic_model.topic_mapper_.get_mappings()
    return {-1: -1} | known


def _renumber(topic_model: Any, model: LinksTopics) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """Number the clusters new to BERTopic, and retire the numbers of removed clusters.

    Return the topic of each document, and the topics without documents that may get some: outliers
    and pending clusters. These keep their rows: BERTopic counts words by row, and a topic that came
    back in the middle would get the words of another.
    """
    mapper, labels = topic_model.topic_mapper_, model.all_labels_
    live = {-1, *(cluster.id for cluster in model.links_.clusters())}
    for row in mapper.mappings_:
        if row[0] >= 0 and row[0] not in live:
            row[0] = -2 - row[0]  # the number stays in use; an ID that comes back gets a new one
    known = mapper.get_mappings()
    fresh = sorted(set(labels.tolist()) - set(known))
    if -1 in fresh:
        mapper.add_new_topics({-1: fresh.pop(0)})
    first = max(known.values()) + 1
    mapper.add_new_topics({each: first + index for index, each in enumerate(fresh)})
    ids, which = np.unique(labels, return_inverse=True)
    numbers = _numbers(topic_model)
    topics = np.array([numbers[each] for each in ids.tolist()], dtype=np.int64)[which]
    held = {int(number) for cluster, number in known.items() if cluster >= -1}
    return topics, dict.fromkeys(sorted(held - set(topics.tolist())), " ")


def _count_again(
    topic_model: Any, documents: list[str], topics: npt.NDArray[np.int64], empty: dict[int, str]
) -> None:
    """Set the words, sizes and labels of all topics from all documents."""
    counting = _RestartedVectorizer(topic_model.vectorizer_model)
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
        topic_model.topic_sizes_[-1] = (
            0  # BERTopic reads here whether its first row is the outliers
        )
    topic_model.representative_docs_ = {}
    topic_model.custom_labels_ = None


def _set_topic_vectors(
    topic_model: Any, topics: npt.NDArray[np.int64], embeddings: npt.ArrayLike | None
) -> None:
    """Set the vectors of all topics, in the order of BERTopic's rows."""
    topic_model.topic_embeddings_ = None
    if embeddings is None:
        topic_model._create_topic_vectors()  # BERTopic has no public method for this
        return
    given = np.asarray(embeddings)
    none = np.zeros(given.shape[1:])
    topic_model.topic_embeddings_ = np.array(
        [
            given[topics == topic].mean(axis=0) if (topics == topic).any() else none
            for topic in sorted(topic_model.topic_representations_)
        ]
    )


class _RestartedVectorizer:
    """A vectorizer whose `fit_transform` first drops the earlier counts."""

    def __init__(self, vectorizer: Any) -> None:
        self.vectorizer = vectorizer

    def fit_transform(self, documents: Any) -> Any:
        """Count the words of all topics from the beginning."""
        for name in ("X_", "vocabulary_"):
            vars(self.vectorizer).pop(name, None)
        if hasattr(self.vectorizer, "update_bow"):  # the vectorizer of an online model
            return self.vectorizer.partial_fit(documents).update_bow(documents)
        return self.vectorizer.fit_transform(documents)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.vectorizer, name)
