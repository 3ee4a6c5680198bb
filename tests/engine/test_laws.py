"""Laws of Links that hold for any stream, after every operation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from linkstream import Links
from linkstream.paper.algorithm import cosine, fixed_point
from linkstream.paper.thresholds import anisotropic_pair_threshold
from replay import Replay
from streams import ENGINES, KINDS, Stream, make, unit

# A machine busy with other work must not fail a law for being slow.
MANY_EXAMPLES = settings(max_examples=100, deadline=None)


@st.composite
def thresholds(draw):
    t_c = draw(st.floats(0.05, 0.99))
    t_s = draw(st.floats(0.05, 0.99))
    share = draw(st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
    return t_c, t_s, min(t_c * t_c + share * (1.0 - t_c * t_c), 1.0)


@st.composite
def small_streams(draw):
    """Vectors of small integers: they shrink well, and tie often."""
    d = draw(st.integers(2, 5))
    row = st.lists(st.integers(-4, 4), min_size=d, max_size=d).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=40))
    return Stream(np.array(rows, dtype=np.float32), draw(thresholds()))


def made_streams():
    kinds = st.sampled_from(sorted(set(KINDS) - {"wide"}))
    return st.builds(make, kinds, st.integers(0, 10**6), st.integers(1, 90))


def any_streams():
    return small_streams() | made_streams()


engines = pytest.mark.parametrize("engine", ENGINES)


def clusterer(stream, engine):
    return Links(*stream.thresholds, engine=engine)


def run(stream, engine):
    links = clusterer(stream, engine)
    return links, [links.add(x) for x in stream.vectors]


@engines
@MANY_EXAMPLES
@given(stream=any_streams(), seed=st.integers(0, 2**32 - 1))
def test_permuting_coordinates_and_flipping_signs_changes_no_decision(engine, stream, seed):
    # Whole numbers of 20 bits: their squares add up exactly in any order.
    rows = np.round(unit(stream.vectors.astype(np.float64)) * 2.0**20)
    rng = np.random.default_rng(seed)
    turned = rows[:, rng.permutation(rows.shape[1])] * rng.choice([-1.0, 1.0], size=rows.shape[1])
    one, decisions = run(Stream(rows, stream.thresholds), engine)
    other, same_decisions = run(Stream(turned, stream.thresholds), engine)
    assert decisions == same_decisions
    assert one.events() == other.events()
    assert one.labels().tolist() == other.labels().tolist()


@engines
@MANY_EXAMPLES
@given(stream=any_streams(), scales=st.lists(st.integers(-8, 8), min_size=1, max_size=5))
def test_the_length_of_a_vector_changes_no_decision(engine, stream, scales):
    scale = 2.0 ** np.resize(scales, len(stream.vectors))[:, np.newaxis]
    one, decisions = run(stream, engine)
    other, same_decisions = run(Stream(stream.vectors * scale, stream.thresholds), engine)
    assert decisions == same_decisions
    assert one.state_hash() == other.state_hash()


@engines
@MANY_EXAMPLES
@given(stream=any_streams(), cuts=st.lists(st.integers(0, 90), max_size=6))
def test_batch_cuts_are_invisible(engine, stream, cuts):
    one, decisions = run(stream, engine)
    other = clusterer(stream, engine)
    ids = [other.add_many(part) for part in np.split(stream.vectors, sorted(cuts))]
    assert np.concatenate(ids).tolist() == [decision.cluster for decision in decisions]
    assert all(part.dtype == np.int64 for part in ids)
    assert one.events() == other.events()
    assert one.state_hash() == other.state_hash()


@engines
@MANY_EXAMPLES
@given(stream=any_streams(), share=st.floats(0, 1))
def test_save_load_continue_is_continue(engine, stream, share):
    cut = int(share * len(stream.vectors))
    one, decisions = run(stream, engine)
    other = clusterer(stream, engine)
    first = [other.add(x) for x in stream.vectors[:cut]]
    again = Links.from_bytes(other.to_bytes(), engine=engine)
    assert again.state_hash() == other.state_hash()
    assert first + [again.add(x) for x in stream.vectors[cut:]] == decisions
    assert again.events() == one.events()
    assert again.state_hash() == one.state_hash()
    assert again.to_bytes() == one.to_bytes()


@engines
@MANY_EXAMPLES
@given(stream=any_streams())
def test_not_tracking_vectors_changes_no_decision(engine, stream):
    _, decisions = run(stream, engine)
    untracked = Links(*stream.thresholds, engine=engine, track_vectors=False)
    assert [untracked.add(x) for x in stream.vectors] == decisions


@engines
@MANY_EXAMPLES
@given(stream=any_streams())
def test_predict_tells_the_next_add_and_changes_nothing(engine, stream):
    links = clusterer(stream, engine)
    for x in stream.vectors:
        before = links.state_hash(), len(links.events())
        told = int(links.predict([x])[0])
        assert (links.state_hash(), len(links.events())) == before
        decision = links.add(x)
        first_event = links.events(before[1])[0]
        assert (told == -1) == (decision.kind == "new")
        assert told in (-1, first_event.cluster)


@engines
@MANY_EXAMPLES
@given(stream=any_streams())
def test_explain_tells_the_next_add_its_evidence_and_changes_nothing(engine, stream):
    links = clusterer(stream, engine)
    for x in stream.vectors:
        before = links.state_hash()
        told, few = links.explain(x, limit=10**6), links.explain(x, limit=2)
        assert links.state_hash() == before
        state = links.state()
        q = fixed_point(x)
        similarities = [cosine(q, total) for total in state.sums]
        nearest = sorted(zip(np.negative(similarities), state.numbers.tolist(), strict=True))
        assert [(-c.similarity, c.subcluster) for c in told.nearest] == nearest
        assert few.nearest == told.nearest[:2]
        assert few.runner_up == told.runner_up
        decision = links.add(x)
        assert told.kind == decision.kind
        if decision.similarity is not None:
            assert told.nearest[0].similarity == decision.similarity
            assert (told.threshold, told.margin) == (decision.threshold, decision.margin)


def run_machine_on(engine):
    class Machine(LinksMachine):
        engine_name = engine

    return Machine


class LinksMachine(RuleBasedStateMachine):
    """Any sequence of operations; every law of the graph is checked after each of them."""

    engine_name: str

    @initialize(stream=any_streams())
    def begin(self, stream):
        self.pool, self.thresholds = stream
        self.links = clusterer(stream, self.engine_name)
        self.given = []  # the vectors added
        self.replay = Replay()
        self.ids = set()

    @rule(row=st.integers(0, 89))
    def add(self, row):
        x = self.pool[row % len(self.pool)]
        decision = self.links.add(x)
        self.given.append(x)
        assert decision.sequence == len(self.given) - 1

    @rule(rows=st.lists(st.integers(0, 89), max_size=25))
    def add_many(self, rows):
        batch = self.pool[np.array(rows, dtype=int) % len(self.pool)]
        assert len(self.links.add_many(batch)) == len(rows)
        self.given += list(batch)

    @rule(rows=st.lists(st.integers(0, 89), max_size=5))
    def predict(self, rows):
        before = self.links.state_hash()
        self.links.predict(self.pool[np.array(rows, dtype=int) % len(self.pool)])
        assert self.links.state_hash() == before

    @rule(bad=st.sampled_from([np.nan, np.inf, 0.0]), row=st.integers(0, 89))
    def be_refused(self, bad, row):
        before = self.links.state_hash(), self.links.dimension
        batch = np.stack([self.pool[row % len(self.pool)], self.pool[0] * 0 + np.float32(bad)])
        with pytest.raises(ValueError, match="row 1") as refused:
            self.links.add_many(batch)
        assert refused.value.row == 1
        assert (self.links.state_hash(), self.links.dimension) == before

    @rule()
    def save_and_load(self):
        self.links = Links.from_bytes(self.links.to_bytes(), engine=self.engine_name)

    @invariant()
    def replayed_events_give_the_same_labels_clusters_and_edges(self):
        self.replay.play(self.links.events(self.replay.sequence))
        state = self.links.state()
        assert self.replay.labels() == self.links.labels().tolist()
        assert self.replay.subcluster == state.vectors.tolist()
        assert self.replay.cluster == dict(
            zip(state.numbers.tolist(), state.clusters.tolist(), strict=True)
        )
        assert sorted(self.replay.edges) == list(map(tuple, state.edges.tolist()))

    @invariant()
    def the_graph_is_a_forest_whose_trees_are_the_clusters(self):
        state = self.links.state()
        assert len(state.edges) == self.links.n_subclusters - self.links.n_clusters
        for node, cluster in self.replay.cluster.items():
            part = self.replay.part(node)
            assert part == {n for n, c in self.replay.cluster.items() if c == cluster}
        state.check()

    @invariant()
    def counts_add_up(self):
        state = self.links.state()
        assert state.counts.sum() == self.links.n_vectors == len(self.given)
        views = self.links.clusters()
        assert sum(view.size for view in views) == len(self.given)
        assert len(views) == self.links.n_clusters
        labels = self.links.labels()
        for view in views:
            members = np.flatnonzero(labels == view.id)
            assert (view.size, view.first_seen, view.last_seen) == (
                len(members),
                members[0],
                members[-1],
            )

    @invariant()
    def sums_are_the_sums_over_members_bit_for_bit(self):
        state = self.links.state()
        for number, total in zip(state.numbers, state.sums, strict=True):
            members = [self.given[i] for i in np.flatnonzero(state.vectors == number)]
            assert total.tolist() == sum(map(fixed_point, members)).tolist()

    @invariant()
    def each_edge_holds_equation_22_and_only_a_rejoined_one_may_pass_t_s(self):
        # Whenever an end of an edge changes, the edge is judged with what the end has become;
        # so every edge holds now, not only when it was made.
        state = self.links.state()
        t_c, t_s, t_p = self.thresholds
        node = dict(
            zip(
                state.numbers.tolist(),
                zip(state.sums, state.counts.astype(float).tolist(), strict=True),
                strict=True,
            )
        )
        for a, b in state.edges.tolist():
            similarity = cosine(node[a][0], node[b][0])
            assert similarity >= anisotropic_pair_threshold(t_c, t_p, node[a][1], node[b][1])
            assert similarity < t_s or (a, b) in self.replay.rejoined_edges

    @invariant()
    def an_id_once_given_always_resolves_to_a_live_cluster(self):
        live = set(self.replay.cluster.values())
        self.ids |= live
        assert {self.links.resolve(cluster) for cluster in self.ids} == live


@engines
@pytest.mark.parametrize("examples", [60, pytest.param(300, marks=pytest.mark.long)])
def test_the_laws_of_the_graph_hold_after_every_operation(engine, examples):
    machine = run_machine_on(engine)
    how = {"max_examples": examples, "stateful_step_count": 20, "deadline": None}
    machine.TestCase.settings = settings(**how)
    machine.TestCase().runTest()
