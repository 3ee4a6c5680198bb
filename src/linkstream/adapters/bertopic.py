"""BERTopic: `LinksTopics`, to be passed as `hdbscan_model=`: topic numbers that last.

It needs scikit-learn alone; BERTopic calls it, not the other way round.
"""

from __future__ import annotations

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
    the topic it was split from. −1 for outliers.
    """
    model = getattr(topic_model, "hdbscan_model", None)
    if not (isinstance(model, LinksTopics) and getattr(topic_model, "topic_mapper_", None)):
        raise ArgumentError(
            f"a {type(topic_model).__name__} without topics by LinksTopics",
            expected="a BERTopic model, fitted, with hdbscan_model=LinksTopics(...)",
            remedy="Pass the clusterer when the model is made; fit or partial_fit it first.",
        )
    numbers = {-1: -1} | topic_model.topic_mapper_.get_mappings()
    came_from = {e.new_cluster: e.cluster for e in model.links_.events() if isinstance(e, Split)}
    ids, which = np.unique(model.all_labels_, return_inverse=True)
    topics = []
    for cluster in ids.tolist():
        while cluster not in numbers and cluster in came_from:
            cluster = came_from[cluster]
        topics.append(int(numbers.get(cluster, -1)))
    return np.array(topics, dtype=np.int64)[which]
