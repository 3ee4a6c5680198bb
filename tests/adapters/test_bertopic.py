"""Test LinksTopics in BERTopic, with synthetic vectors and documents."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from bertopic import BERTopic
from bertopic.dimensionality import BaseDimensionalityReduction
from bertopic.vectorizers import OnlineCountVectorizer
from sklearn.cluster import MiniBatchKMeans
from sklearn.feature_extraction.text import CountVectorizer

from linkstream import Links
from linkstream.adapters.bertopic import LinksTopics, current_topics, refresh_topics
from linkstream.engine.events import Split
from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.metrics import accuracy
from streams import KINDS, around, make, unit

THRESHOLDS = (0.8, 0.76, 0.9)  # for vectors at a cosine of 0.85 from their centres
BATCH = 100
SPLITTING = [("drifting", 6), ("hub", 11), ("lattice", 6)]  # clusters of old documents are split


def documents(y, seed=0):
    """Return synthetic documents: twenty words of each identity, and a few common words."""
    rng = np.random.default_rng(seed)
    return [
        " ".join([*(f"own{who}x{n}" for n in rng.integers(20, size=6)), f"all{rng.integers(9)}"])
        for who in y
    ]


def model_of(clusterer):
    """Return a topic model without dimensionality reduction."""
    return BERTopic(
        embedding_model=None,
        umap_model=BaseDimensionalityReduction(),
        hdbscan_model=clusterer,
        vectorizer_model=OnlineCountVectorizer(),
    )


def in_batches(model, docs, X, start=0):
    """Fit batch by batch; return the first topic of each document."""
    given = []
    for first in range(start, len(X), BATCH):
        model.partial_fit(docs[first : first + BATCH], X[first : first + BATCH])
        given.extend(model.topics_)
    return np.array(given)


@pytest.fixture(scope="module")
def stories():
    """Return vectors, their subjects and documents; new subjects appear all the time."""
    rng = np.random.default_rng(0)
    y = rng.integers(np.linspace(3, 30, 700).astype(np.int64))
    X = around(rng, unit(rng.standard_normal((30, 64)))[y], 0.85).astype(np.float32)
    return X, y, documents(y.tolist())


def test_topic_numbers_of_old_documents_stay_when_new_ones_come(stories):
    X, y, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS))
    given = in_batches(model, docs, X)
    now = current_topics(model)
    assert np.array_equal(given, now)
    assert accuracy(y, now) > 0.98
    assert len(set(given[:BATCH].tolist())) < 10 < 25 < len(set(now.tolist()))
    told, _ = model.transform(docs[:BATCH], X[:BATCH])
    assert np.mean(told == now[:BATCH]) > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_documents_keep_their_topics_by_default(kind):
    X, thresholds = make(kind, 1, n=400)
    topics, given = LinksTopics(*thresholds), []
    for start in range(0, len(X), BATCH):
        given.extend(topics.partial_fit(X[start : start + BATCH]).labels_)
    assert topics.all_labels_.tolist() == given


def test_a_given_preset_or_evidence_takes_precedence(stories):
    X = stories[0]
    assert LinksTopics(*THRESHOLDS).fit(X).links_.evidence == "cluster"
    assert LinksTopics(*THRESHOLDS, evidence="nearest").fit(X).links_.evidence == "nearest"
    healed = LinksTopics(preset="minilm").fit(np.pad(X, ((0, 0), (0, 320)))).links_
    assert (healed.evidence, healed.healing.mode) == ("cluster", "settle")


def test_minibatch_kmeans_does_not_keep_topic_numbers(stories):
    X, _, docs = stories
    model = model_of(MiniBatchKMeans(30, random_state=0, n_init=1))
    given = in_batches(model, docs, X)
    told, _ = model.transform(docs, X)
    assert np.mean(told == given) < 0.95


def test_the_ids_are_those_of_links(stories):
    X, _, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS))
    in_batches(model, docs, X)
    links = Links(*THRESHOLDS, evidence="cluster")
    links.add_many(X)
    assert np.array_equal(model.hdbscan_model.all_labels_, links.labels())


@pytest.mark.parametrize(("kind", "seed"), SPLITTING)
def test_a_document_changes_its_topic_only_where_an_event_says_so(kind, seed):
    X, thresholds = make(kind, seed, n=400)
    model = model_of(LinksTopics(*thresholds, evidence="nearest"))
    given = in_batches(model, documents([0] * len(X)), X)
    now = current_topics(model)
    links = model.hdbscan_model.links_
    parts = {event.new_cluster for event in links.events() if isinstance(event, Split)}
    assert parts
    numbers = model.topic_mapper_.get_mappings()
    split_off = {numbers[part] for part in parts if part in numbers}
    assert set(now[given != now].tolist()) <= split_off
    assert np.array_equal(given, now) == (kind == "hub")  # there BERTopic sees no new part again


@pytest.mark.parametrize(("kind", "seed"), SPLITTING)
def test_a_cluster_unknown_to_bertopic_is_reported_under_its_parent(kind, seed):
    X, thresholds = make(kind, seed, n=400)
    model = model_of(LinksTopics(*thresholds, evidence="nearest"))
    in_batches(model, documents([0] * len(X)), X)
    known = set(model.topic_mapper_.get_mappings())
    assert set(model.hdbscan_model.all_labels_.tolist()) - known
    assert set(current_topics(model).tolist()) <= set(model.get_topics())


def test_words_and_sizes_of_a_topic_are_those_of_its_documents(stories):
    X, y, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS))
    given = in_batches(model, docs, X)
    assert dict(model.topic_sizes_) == {
        int(topic): int(size)
        for topic, size in zip(*np.unique(given, return_counts=True), strict=True)
    }
    biggest = max(model.topic_sizes_, key=model.topic_sizes_.get)
    who = np.bincount(y[given == biggest]).argmax()
    words = [word for word, _ in model.get_topic(biggest)]
    assert sum(word.startswith(f"own{who}x") for word in words) > len(words) / 2


def test_fit_transform_and_transform_work_too(stories):
    X, y, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS))
    topics, _ = model.fit_transform(docs, X)
    assert np.array_equal(current_topics(model), topics)
    assert accuracy(y, topics) > 0.98
    told, _ = model.transform([*docs[:50], "of nobody"], np.vstack([X[:50], -X[:1]]))
    assert np.mean(told[:50] == topics[:50]) > 0.9
    assert told[50] == -1


def test_documents_of_small_clusters_are_outliers_until_there_are_enough(stories):
    X, _, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS, min_size=30))
    in_batches(model, docs, X)
    labels, links = model.hdbscan_model.all_labels_, model.hdbscan_model.links_
    sizes = {cluster.id: cluster.size for cluster in links.clusters()}
    assert set(labels.tolist()) - {-1} == {each for each, size in sizes.items() if size >= 30}
    assert np.array_equal(labels == -1, [sizes[each] < 30 for each in links.labels().tolist()])
    assert set(current_topics(model).tolist()) <= set(model.get_topics()) | {-1}


def test_a_saved_model_continues_with_the_same_numbers(stories, tmp_path):
    X, _, docs = stories
    whole, half = model_of(LinksTopics(*THRESHOLDS)), model_of(LinksTopics(*THRESHOLDS))
    in_batches(whole, docs, X)
    in_batches(half, docs[: 3 * BATCH], X[: 3 * BATCH])
    for copied in (pickle.loads(pickle.dumps(half)), saved_and_loaded(half, tmp_path / "topics")):
        in_batches(copied, docs, X, start=3 * BATCH)
        assert np.array_equal(current_topics(copied), current_topics(whole))
        assert copied.topic_sizes_ == whole.topic_sizes_


def saved_and_loaded(model, path):
    model.save(str(path), serialization="pickle")
    return BERTopic.load(str(path))


# Stale tables


@pytest.fixture(scope="module")
def healed():
    """Return a model with healed topics, its documents, and more documents."""
    X, thresholds = make("drifting", 6, n=500)
    docs = documents(np.arange(len(X)) // 25)
    model = model_of(LinksTopics(*thresholds, evidence="nearest", heal="settle"))
    in_batches(model, docs[:400], X[:400])
    return model, docs, X


def copied(model):
    return pickle.loads(pickle.dumps(model))


def sizes(topics):
    values, counts = np.unique(topics, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def words_counted(model):
    """Return the word counts of the vectorizer, by row."""
    rows = model.vectorizer_model.X_.toarray()
    names = model.vectorizer_model.get_feature_names_out()
    return {
        topic: {names[place]: int(row[place]) for place in np.flatnonzero(row)}
        for topic, row in zip(sorted(model.topic_representations_), rows, strict=True)
    }


def words_of(docs, topics):
    counts = {}
    for text, topic in zip(docs, topics.tolist(), strict=True):
        words = counts.setdefault(topic, {})
        for word in text.lower().split():
            words[word] = words.get(word, 0) + 1
    return counts


def test_tables_that_went_stale_under_healing_are_refreshed(healed):
    model, docs, _ = copied(healed[0]), healed[1][:400], None
    assert len(model.get_topic_info()) > len(model.hdbscan_model.links_.clusters())  # stale
    before = current_topics(model)
    told = refresh_topics(model, docs)
    assert np.array_equal(told, current_topics(model))
    assert model.topics_ == told.tolist()
    info = model.get_topic_info()
    assert len(info) == model.hdbscan_model.links_.n_clusters
    assert dict(zip(info.Topic, info.Count, strict=True)) == sizes(told)
    assert set(model.get_topics()) == set(told.tolist())
    assert model.c_tf_idf_.shape[0] == len(info)
    assert words_counted(model) == words_of(docs, told)
    # Topics keep their own numbers; the others were reported under their parents.
    ids = model.hdbscan_model.all_labels_
    known = np.isin(ids, list(healed[0].topic_mapper_.get_mappings()))
    assert np.array_equal(told[known], before[known])


def test_a_retired_number_is_never_used_again(healed):
    model, docs, X = copied(healed[0]), *healed[1:]
    old = set(healed[0].topic_mapper_.get_mappings().values())
    told = refresh_topics(model, docs[:400])
    gone = old - set(told.tolist())
    assert gone
    model.partial_fit(["something new"], -X[:1])
    (new,) = model.topics_
    assert new > max(old | set(told.tolist()))
    model.partial_fit(docs[400:], X[400:])
    assert not gone & set(refresh_topics(model, [*docs[:400], "new", *docs[400:]]).tolist())


def test_partial_fit_continues_after_a_refresh_with_the_right_words_and_sizes(healed):
    model, docs, X = copied(healed[0]), *healed[1:]
    told = refresh_topics(model, docs[:400])
    model.partial_fit(docs[400:450], X[400:450])
    given = np.concatenate([told, model.topics_])
    assert words_counted(model) == words_of(docs[:450], given)
    assert dict(model.topic_sizes_) == sizes(given)
    assert np.array_equal(refresh_topics(model, docs[:450]), current_topics(model))
    again = copied(model)
    refresh_topics(again, docs[:450])  # nothing moved: nothing changes
    assert again.get_topics() == model.get_topics()
    assert again.topic_sizes_ == model.topic_sizes_


def test_a_refreshed_model_uses_the_new_numbers(healed):
    model, docs, X = copied(healed[0]), *healed[1:]
    told = refresh_topics(model, docs[:400])
    asked, _ = model.transform(docs[:400], X[:400])
    assert set(asked) - {-1} <= set(told.tolist())
    ids = model.hdbscan_model.predict(X[:400])
    numbers = model.topic_mapper_.get_mappings()
    assert asked == [numbers[each] if each >= 0 else -1 for each in ids.tolist()]


def test_outliers_keep_their_row_while_there_are_none(stories):
    X, _, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS, min_size=20))
    in_batches(model, docs[:600], X[:600])
    assert -1 in model.topic_sizes_
    links = model.hdbscan_model.links_
    small = [each.id for each in links.clusters() if each.pending]
    for cluster in small:
        links.name(cluster, f"name {cluster}")  # a named cluster is not pending
    told = refresh_topics(model, docs[:600])
    assert -1 not in told
    assert model.topic_sizes_[-1] == 0
    assert sorted(model.get_topics())[0] == -1
    model.partial_fit(["of nobody at all"], -X[:1])
    assert model.topics_ == [-1]
    counted = words_counted(model)
    assert set(counted.pop(-1)) == {"of", "nobody", "at", "all"}
    assert counted == words_of(docs[:600], told)


def test_vectors_of_topics_are_in_the_order_of_the_rows_and_labels_by_row_are_forgotten(healed):
    model, docs, X = copied(healed[0]), *healed[1:]
    kept = int(current_topics(model)[-1])
    model.set_topic_labels({kept: "mine"})
    told = refresh_topics(model, docs[:400], embeddings=X[:400])
    order = sorted(model.get_topics())
    assert model.topic_embeddings_.shape == (len(order), X.shape[1])
    np.testing.assert_allclose(
        model.topic_embeddings_[order.index(kept)], X[:400][told == kept].mean(axis=0), rtol=1e-5
    )
    assert model.custom_labels_ is None
    assert "mine" not in str(model.get_topic_info())


def test_a_model_that_was_fitted_at_once_is_refreshed_after_corrections(stories):
    X, _, docs = stories
    model = model_of(LinksTopics(*THRESHOLDS))
    model.vectorizer_model = CountVectorizer()
    topics, _ = model.fit_transform(docs, X)
    links = model.hdbscan_model.links_
    one, other = (int(np.flatnonzero(np.array(topics) == topic)[0]) for topic in (0, 1))
    links.same(one, other)
    told = refresh_topics(model, docs, X)
    assert told[one] == told[other]
    assert len(model.get_topic_info()) == links.n_clusters == len(set(topics)) - 1
    assert model.c_tf_idf_.shape[0] == len(model.topic_embeddings_) == links.n_clusters


@pytest.mark.parametrize("wrong", [slice(399), slice(1, 401), None, "text"])
def test_documents_that_are_not_all_of_them_are_refused_and_nothing_changes(healed, wrong):
    model, docs = copied(healed[0]), healed[1][:400]
    before = pickle.dumps(model.get_topic_info())
    given = docs[wrong] if isinstance(wrong, slice) else wrong
    with pytest.raises(ArgumentError, match=r"documents.* for 400 vectors"):
        refresh_topics(model, given)
    with pytest.raises(ArgumentError, match="3 embeddings for 400 vectors"):
        refresh_topics(model, docs, np.eye(3))
    with pytest.raises(TypeError):
        refresh_topics(model, [*docs[:399], 7])
    assert pickle.dumps(model.get_topic_info()) == before
    assert np.array_equal(current_topics(model), current_topics(healed[0]))
    assert model.topic_mapper_.mappings_ == healed[0].topic_mapper_.mappings_


def test_labels_are_those_of_the_last_call(stories):
    X = stories[0]
    topics = LinksTopics(*THRESHOLDS).fit(X[:50])
    assert np.array_equal(topics.labels_, topics.all_labels_)
    topics.partial_fit(X[50:80])
    assert np.array_equal(topics.labels_, topics.all_labels_[50:])
    with pytest.raises(ValueError, match="row"):
        topics.partial_fit(np.zeros((5, X.shape[1])))
    assert len(topics.labels_) == 30
    assert len(topics.fit(X[:20]).labels_) == 20


def test_a_model_that_has_no_such_topics_is_refused():
    for model in (model_of(MiniBatchKMeans(2)), model_of(LinksTopics(*THRESHOLDS)), "topics"):
        with pytest.raises(ArgumentError, match="hdbscan_model=LinksTopics"):
            current_topics(model)
        with pytest.raises(ArgumentError, match="hdbscan_model=LinksTopics"):
            refresh_topics(model, [])


def test_without_scikit_learn_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    for name in ("sklearn", "bertopic"):
        monkeypatch.delitem(sys.modules, f"linkstream.adapters.{name}")
    with pytest.raises(MissingExtraError, match=r"linkstream\[sklearn\]"):
        __import__("linkstream.adapters.bertopic")
