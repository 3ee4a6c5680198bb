"""The engines give the answers of the naive oracle (paper/algorithm.py), vector by vector.

The reference engine is held against the oracle at length; the compiled one on a part here, and
against the reference on all these streams in test_engines.py.

10 cases of 2 seeds × 14 kinds of stream × 150 vectors: 42,000 vectors, and 630,000 in the long
form. Each case must by itself bring every step of section 3.4 about, so that none passes for want
of anything to compare.
"""

from collections import Counter

import pytest

from linkstream import Links
from linkstream.paper.algorithm import PaperLinks
from streams import ENGINES, KINDS, make

CASES = [*range(10), *(pytest.param(case, marks=pytest.mark.long) for case in range(10, 26))]
LONG_CASES = range(26, 160)


def run_both(stream, engine):
    """Add a stream to both; the oracle, once every answer and event has been compared."""
    oracle = PaperLinks(*stream.thresholds)
    links = Links(*stream.thresholds, engine=engine)
    for row, x in enumerate(stream.vectors):
        expected, decision = reported(oracle.add(x), links.thresholds.lowest), links.add(x)
        seen = (decision.kind, decision.similarity, decision.threshold)
        assert (*seen, decision.cluster, decision.subcluster) == expected, row
        assert decision.sequence == row
    events = [event.to_dict() for event in links.events()]
    assert [event.pop("sequence") for event in events] == list(range(len(events)))
    assert {event.pop("version") for event in events} == {1}
    assert [tuple(event.values()) for event in events] == oracle.events
    assert_same_graph(oracle, links)
    return oracle


def reported(answer, lowest):
    """What an engine reports: no similarity below the lowest threshold (docs/choices.md)."""
    if answer.similarity is None or answer.similarity >= lowest:
        return answer
    return answer._replace(similarity=None, threshold=None)


def assert_same_graph(oracle, links):
    state = links.state()
    assert links.labels().tolist() == oracle.labels()
    assert dict(zip(state.numbers.tolist(), state.clusters.tolist(), strict=True)) == oracle.cluster
    assert state.counts.tolist() == [oracle.count(node) for node in sorted(oracle.members)]
    assert state.sums.tolist() == [oracle.sum(node).tolist() for node in sorted(oracle.members)]
    assert set(map(tuple, state.edges.tolist())) == {tuple(sorted(e)) for e in oracle.edges}
    assert (links.n_subclusters, links.n_clusters) == (
        len(oracle.members),
        len(set(oracle.cluster.values())),
    )


def steps(events):
    """How often each step occurred; `recursive` counts vectors that brought several merges."""
    merges = Counter(event[1] for event in events if event[0] == "merged")
    recursive = sum(count > 1 for count in merges.values())
    return Counter(event[0] for event in events) + Counter(recursive=recursive)


def run_case(case, engine):
    seen = Counter()
    for seed in (2 * case, 2 * case + 1):
        for kind in KINDS:
            seen += steps(run_both(make(kind, seed), engine).events)
    return seen


def fewer(seen, least):
    return {step: seen[step] for step in least if seen[step] < least[step]}


@pytest.mark.parametrize("case", CASES)
def test_every_decision_event_and_sum_is_that_of_the_naive_oracle(case):
    seen = run_case(case, "reference")
    least = {"merged": 40, "recursive": 3, "severed": 25, "rejoined": 4, "split": 16}
    assert fewer(seen, least) == {}


@pytest.mark.long
@pytest.mark.parametrize("case", LONG_CASES)
def test_every_decision_event_and_sum_is_that_of_the_naive_oracle_at_length(case):
    run_case(case, "reference")


@pytest.mark.parametrize("engine", ENGINES)
def test_they_agree_where_every_step_occurs_by_the_tens(engine):
    seen = Counter()
    for seed in range(200, 220):
        for kind in ("lobes", "drifting", "chains", "opposite"):
            seen += steps(run_both(make(kind, seed, n=120), engine).events)
    least = {"merged": 300, "recursive": 30, "severed": 150, "rejoined": 30, "split": 100}
    assert fewer(seen, least) == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_they_agree_on_longer_streams(engine):
    for kind in ("lobes", "chains", "wide"):
        run_both(make(kind, 500, n=600), engine)
