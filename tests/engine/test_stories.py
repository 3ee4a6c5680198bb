"""One story for each sentence of sections 3.3–3.5, and for each choice where they are silent.

Most stories are told in angles, on a sphere in three dimensions: `polar(angle, azimuth)` is the
vector at an angle from the pole. `angles(join=..., edge=...)` are thresholds with T_p = T_c², so
that s~ is one number whatever the counts: a vector joins within the one angle, an edge holds
within the other. Where counts matter the thresholds are written out.
"""

import math

import numpy as np
import pytest

from linkstream import Links
from linkstream.paper.algorithm import cosine
from linkstream.paper.thresholds import anisotropic_pair_threshold
from streams import ENGINES, roots


def polar(angle, azimuth=0.0):
    a, z = math.radians(angle), math.radians(azimuth)
    return np.array([math.cos(a), math.sin(a) * math.cos(z), math.sin(a) * math.sin(z)])


def angles(*, join=22.0, edge=45.0):
    t_c = math.sqrt(math.cos(math.radians(edge)))
    return t_c, math.cos(math.radians(join)), t_c * t_c


def asking(similarity):
    """Thresholds where s~ is exactly this similarity, whatever the counts."""
    t_c = next(t for t in roots(similarity) if t * t == similarity)
    return t_c, math.cos(math.radians(22)), t_c * t_c


def asking_more(similarity):
    """Thresholds where s~ is a rounding or two above this similarity."""
    t_c = min(t for t in roots(similarity) if t * t > similarity)
    return t_c, math.cos(math.radians(22)), t_c * t_c


@pytest.fixture(params=ENGINES)
def tell(request):
    """Tell a story: a clusterer with these thresholds that has taken these vectors."""

    def begin(thresholds, *vectors):
        links = Links(*thresholds, engine=request.param)
        for x in vectors:
            links.add(x)
        return links

    return begin


def then(links, x):
    """Add a vector: the decision, and what happened in order, as (kind, numbers...)."""
    first = len(links.events())
    decision = links.add(x)
    happened = [tuple(event.to_dict().values()) for event in links.events(first)]
    return decision, [(kind, *numbers) for kind, _version, _, vector, *numbers in happened]


def edges(links):
    return [tuple(edge) for edge in links.state().edges.tolist()]


def similarity(links, a, b):
    state = links.state()
    row = {number: row for row, number in enumerate(state.numbers.tolist())}
    return cosine(state.sums[row[a]], state.sums[row[b]])


def needed(links, a, b):
    state = links.state()
    count = dict(zip(state.numbers.tolist(), state.counts.astype(float).tolist(), strict=True))
    t = links.thresholds
    return anisotropic_pair_threshold(
        t.cluster_similarity, t.pair_similarity_max, count[a], count[b]
    )


# Section 3.3: assessing cluster membership.


def test_the_first_vector_begins_cluster_0_with_subcluster_0(tell):
    decision, happened = then(tell(angles()), polar(0))
    assert happened == [("created", 0, 0)]
    assert (decision.kind, decision.similarity, decision.threshold) == ("new", None, None)


def test_a_vector_within_t_s_joins_the_most_similar_subcluster(tell):
    decision, happened = then(tell(angles(), polar(0), polar(40)), polar(25))
    assert happened == [("joined", 1, 0)]
    assert decision.kind == "joined"
    assert decision.similarity == pytest.approx(math.cos(math.radians(15)))
    assert decision.threshold == math.cos(math.radians(22))


def test_a_similarity_of_exactly_t_s_joins(tell):
    # ones(4) is at exactly 1/2 from an axis, in fixed point too.
    decision, happened = then(tell((0.6, 0.5, 0.36), [1, 0, 0, 0]), [1, 1, 1, 1])
    assert happened == [("joined", 0, 0)]
    assert decision.margin == 0.0


def test_a_similarity_one_rounding_below_t_s_does_not_join(tell):
    above = math.nextafter(0.5, 1.0)
    decision, _ = then(tell((0.6, above, 0.36), [1, 0, 0, 0]), [1, 1, 1, 1])
    assert decision.kind == "linked"


def test_a_vector_beyond_t_s_begins_a_subcluster_linked_to_the_most_similar(tell):
    decision, happened = then(tell(angles(), polar(0), polar(40)), polar(80))
    assert happened == [("linked", 2, 1, 0)]
    assert (decision.kind, decision.cluster, decision.subcluster) == ("linked", 0, 2)
    assert decision.threshold == pytest.approx(math.cos(math.radians(45)))


def test_a_similarity_of_exactly_s_links(tell):
    # ones(16) is at exactly 1/4 = T_c² = s~(1, 1) from an axis.
    axis, ones = np.eye(16)[0], np.ones(16)
    decision, happened = then(tell((0.5, 0.9, 0.8), axis), ones)
    assert happened == [("linked", 1, 0, 0)]
    assert decision.margin == 0.0
    decision, happened = then(tell((math.nextafter(0.5, 1.0), 0.9, 0.8), axis), ones)
    assert happened == [("created", 1, 1)]


def test_a_vector_beyond_s_begins_a_cluster(tell):
    decision, happened = then(tell(angles(), polar(0), polar(40)), polar(90))
    assert happened == [("created", 2, 1)]
    assert (decision.kind, decision.cluster) == ("new", 1)


def test_a_new_cluster_has_no_similarity_when_nothing_reaches_the_lowest_threshold(tell):
    decision, _ = then(tell(angles(), polar(0)), polar(46))
    assert (decision.similarity, decision.threshold, decision.margin) == (None, None, None)


def test_a_new_cluster_shows_its_similarity_when_the_lowest_threshold_is_reached(tell):
    # s~(10, 1) = s(10, 1) is about .778 and s~(1, 1) = .64; cos 45° lies between.
    decision, _ = then(tell((0.8, 0.9, 1.0), *[polar(0)] * 10), polar(45))
    assert decision.kind == "new"
    assert decision.similarity == pytest.approx(math.sqrt(0.5))
    assert decision.threshold == anisotropic_pair_threshold(0.8, 1.0, 10.0, 1.0)
    assert decision.margin < 0


def test_a_tie_of_the_most_similar_goes_to_the_older_subcluster(tell):
    for first, second in (([1, 0, 0], [0, 1, 0]), ([0, 1, 0], [1, 0, 0])):
        _, happened = then(tell((0.9, 0.7, 0.9), first, second), [1, 1, 0])
        assert happened == [("joined", 0, 0)]


def test_a_tie_of_the_most_similar_links_to_the_older_subcluster(tell):
    for first, second in (([1, 0, 0], [0, 1, 0]), ([0, 1, 0], [1, 0, 0])):
        _, happened = then(tell((0.8, 0.9, 0.64), first, second), [1, 1, 0])
        assert happened == [("linked", 2, 0, 0)]


def test_only_the_most_similar_subcluster_is_asked(tell):
    # 41° from a subcluster of ten, 44° from a subcluster of one: s~(10, 1) asks for more than
    # cos 41°, s~(1, 1) for less than cos 44°; the vector is new all the same.
    links = tell((0.8, 0.95, 1.0), *[polar(0)] * 10, polar(85))
    assert links.n_clusters == 2
    assert math.cos(math.radians(44)) > anisotropic_pair_threshold(0.8, 1.0, 1.0, 1.0)
    _, happened = then(links, polar(41))
    assert happened == [("created", 2, 2)]


def test_joining_asks_for_t_s_alone_even_where_s_is_stricter(tell):
    links = tell((0.9, 0.5, 1.0), *[polar(0)] * 10)
    assert anisotropic_pair_threshold(0.9, 1.0, 10.0, 1.0) > math.cos(math.radians(55))
    decision, happened = then(links, polar(55))
    assert happened == [("joined", 0, 0)]
    assert decision.threshold == 0.5


def test_with_t_s_below_s_nothing_ever_links(tell):
    _, happened = then(tell((0.9, 0.5, 1.0), polar(0)), polar(61))
    assert happened == [("created", 1, 1)]


# Section 3.4: merging.


def test_a_join_that_brings_a_subcluster_within_t_s_of_its_neighbour_merges_the_two(tell):
    links = tell(angles(join=25), polar(0), polar(30))
    decision, happened = then(links, polar(12))  # the centroid moves to 6°, 24° from the other
    assert happened == [("joined", 0, 0), ("merged", 0, 1, 0)]
    assert (decision.cluster, decision.subcluster) == (0, 0)
    assert links.state().counts.tolist() == [3]


def test_a_neighbour_at_exactly_t_s_is_merged(tell):
    vectors = polar(0), polar(30), polar(12)
    t_c, t_s, t_p = angles(join=20)
    reached = similarity(tell((t_c, t_s, t_p), *vectors), 0, 1)
    assert tell((t_c, reached, t_p), *vectors).n_subclusters == 1
    assert tell((t_c, math.nextafter(reached, 1.0), t_p), *vectors).n_subclusters == 2


def test_a_join_that_leaves_the_neighbour_beyond_t_s_merges_nothing(tell):
    links = tell(angles(join=25), polar(0), polar(30))
    _, happened = then(links, polar(8))  # the centroid moves to 4°, 26° from the other
    assert happened == [("joined", 0, 0)]


def test_the_older_number_survives_a_merge_whichever_was_touched(tell):
    links = tell(angles(join=25), polar(0), polar(30))
    decision, happened = then(links, polar(18))  # joins the younger
    assert happened == [("joined", 1, 0), ("merged", 0, 1, 0)]
    assert decision.subcluster == 0
    assert links.state().numbers.tolist() == [0]


def test_merging_goes_on_recursively_from_the_merged_node(tell):
    # 0 – 1 – 2 in a chain; 2 is within T_s of 0 and 1 together, of neither alone.
    links = tell(angles(join=25), polar(0), polar(28, 0), polar(28, 60))
    assert edges(links) == [(0, 1), (1, 2)]
    decision, happened = then(links, polar(8, 0))
    assert happened == [("joined", 0, 0), ("merged", 0, 1, 0), ("merged", 0, 2, 0)]
    assert decision.subcluster == 0
    assert edges(links) == []


def test_a_merge_unites_the_edges_of_both(tell):
    links = tell(angles(join=25), polar(0), polar(30), polar(38, 100), polar(52, 30))
    assert edges(links) == [(0, 1), (0, 2), (1, 3)]
    _, happened = then(links, polar(18))
    assert happened == [("joined", 1, 0), ("merged", 0, 1, 0)]
    assert edges(links) == [(0, 2), (0, 3)]


def test_the_most_similar_neighbour_is_merged_first(tell):
    links = tell(angles(join=25), polar(0), polar(27, 0), polar(26, 90))
    assert edges(links) == [(0, 1), (0, 2)]
    _, happened = then(links, polar(8, 45))  # now 24.3° from 1 and 23.3° from 2
    assert happened[:2] == [("joined", 0, 0), ("merged", 0, 2, 0)]


def test_of_equally_similar_neighbours_the_older_is_merged_first(tell):
    for sign in (1, -1):
        links = tell(angles(join=25), polar(0), polar(27, 45 * sign), polar(27, -45 * sign))
        assert edges(links) == [(0, 1), (0, 2)]
        _, happened = then(links, polar(8))
        assert happened[:2] == [("joined", 0, 0), ("merged", 0, 1, 0)]


def test_subclusters_without_an_edge_do_not_merge_however_similar(tell):
    links = tell(angles(join=22, edge=30), polar(0), polar(40), *[polar(20.1)] * 20)
    assert similarity(links, 0, 1) > math.cos(math.radians(22))
    assert (links.n_subclusters, links.n_clusters) == (2, 2)


# Section 3.4: severing, re-joining, splitting.


def test_an_edge_that_a_join_makes_fail_is_severed_and_the_cluster_is_split(tell):
    links = tell(angles(), polar(0), polar(40))
    _, happened = then(links, polar(55))  # the centroid moves to 47.5°
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("split", 0, 1, 0, 1)]
    assert links.labels().tolist() == [1, 0, 0]


def test_an_edge_of_exactly_the_similarity_asked_stays(tell):
    vectors = polar(0), polar(40), polar(55)
    links = tell(angles(edge=60), *vectors)
    assert tell(asking(similarity(links, 0, 1)), *vectors).n_clusters == 1
    assert tell(asking_more(similarity(links, 0, 1)), *vectors).n_clusters == 2


def test_an_edge_fails_when_counts_grow_though_no_centroid_moves(tell):
    # cos 45° = .707 passes s(1, 1) = .64 and s(2, 1) = .706, but not s(3, 1) = .734.
    links = tell((0.8, 0.9, 1.0), polar(0), polar(45), polar(45))
    assert links.n_clusters == 1
    _, happened = then(links, polar(45))
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("split", 0, 1, 0, 1)]


def test_the_pair_similarity_maximum_bounds_what_growing_counts_ask(tell):
    links = tell((0.8, 0.9, 0.7), polar(0), *[polar(45)] * 200, *[polar(0)] * 200)
    assert links.state().counts.tolist() == [201, 200]
    assert links.n_clusters == 1


def test_the_part_cut_off_is_rejoined_through_another_of_its_nodes(tell):
    links = tell(angles(), polar(0), polar(40), polar(34, 65))
    assert edges(links) == [(0, 1), (0, 2)]
    decision, happened = then(links, polar(55, 20))
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("rejoined", 1, 2, 0)]
    assert edges(links) == [(0, 2), (1, 2)]
    assert (decision.cluster, links.n_clusters) == (0, 1)


def test_a_partner_of_exactly_the_similarity_asked_is_rejoined(tell):
    vectors = polar(0), polar(40), polar(36, 75), polar(55, 20)
    links = tell(angles(), *vectors)
    assert edges(links) == [(0, 2), (1, 2)]
    assert edges(tell(asking(similarity(links, 1, 2)), *vectors)) == [(0, 2), (1, 2)]
    assert edges(tell(asking_more(similarity(links, 1, 2)), *vectors)) == [(0, 2)]


def test_a_tie_of_partners_to_rejoin_goes_to_the_older(tell):
    for sign in (1, -1):
        links = tell(angles(), polar(0), polar(40), polar(28, 65 * sign), polar(28, -65 * sign))
        assert edges(links) == [(0, 1), (0, 2), (0, 3)]
        _, happened = then(links, polar(55))
        assert similarity(links, 1, 2) == similarity(links, 1, 3)
        assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("rejoined", 1, 2, 0)]


def test_the_partner_to_rejoin_is_the_one_with_the_greatest_margin_not_similarity(tell):
    # 3 is the more similar to 1; but it holds three vectors, so s~ asks more of it than of 2.
    rest = [[9, -1, 3, 0], *[[9, 2, 6, -4]] * 3]
    links = tell((0.8, 0.9, 1.0), [9, -1, 1, 5], [9, 6, 6, 2], *rest)
    assert (0, 1) in edges(links)
    assert not {(1, 2), (1, 3)} & set(edges(links))
    _, happened = then(links, [11, 9, 3, -1])
    assert similarity(links, 1, 3) > similarity(links, 1, 2) + 0.05
    assert similarity(links, 1, 3) > needed(links, 1, 3)
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("rejoined", 1, 2, 0)]


def test_only_the_touched_node_is_tried_for_a_rejoin(tell):
    # 3 hangs on the touched 1 and is near 2 in the part cut off; that does not count.
    links = tell(angles(), polar(0), polar(40), polar(40, 80), polar(55, 38))
    assert edges(links) == [(0, 1), (0, 2), (1, 3)]
    assert similarity(links, 2, 3) > needed(links, 2, 3)
    _, happened = then(links, polar(55, -10))
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("split", 0, 1, 0, 1)]
    assert links.labels().tolist() == [1, 0, 1, 0, 0]


def test_an_edge_is_judged_after_the_merges_not_before(tell):
    # The join takes 1 beyond 45° of 0, but within 24° of 2; merged with 2 it is within again.
    links = tell(angles(join=24), polar(0), polar(43), *[polar(40, 40)] * 3)
    assert edges(links) == [(0, 1), (1, 2)]
    x = polar(52, 15)
    moved = polar(43) + x
    assert polar(0) @ moved / np.linalg.norm(moved) < math.cos(math.radians(45))
    _, happened = then(links, x)
    assert happened == [("joined", 1, 0), ("merged", 1, 2, 0)]
    assert edges(links) == [(0, 1)]


def test_the_worst_edge_is_severed_first(tell):
    links = tell(angles(), polar(0), polar(43, 0), polar(44, 70))
    assert edges(links) == [(0, 1), (0, 2)]
    _, happened = then(links, polar(12, 215))
    assert happened == [
        ("joined", 0, 0),
        ("severed", 0, 2, 0),
        ("split", 2, 0, 0, 1),
        ("severed", 0, 1, 0),
        ("split", 1, 0, 0, 2),
    ]


def test_of_equally_bad_edges_the_one_to_the_older_is_severed_first(tell):
    for sign in (1, -1):
        links = tell(angles(), polar(0), polar(44, 50 * sign), polar(44, -50 * sign))
        assert edges(links) == [(0, 1), (0, 2)]
        _, happened = then(links, polar(-12))
        assert similarity(links, 0, 1) == similarity(links, 0, 2)
        assert happened == [
            ("joined", 0, 0),
            ("severed", 0, 1, 0),
            ("split", 1, 0, 0, 1),
            ("severed", 0, 2, 0),
            ("split", 2, 0, 0, 2),
        ]


def test_each_part_cut_off_in_one_update_is_rejoined_or_split_by_itself(tell):
    # 0 loses 1 and 2; the part of 1 holds 3, which is near enough; the part of 2 holds nothing.
    links = tell(angles(), polar(0), polar(43, 0), polar(43, -100), polar(43, 60))
    assert edges(links) == [(0, 1), (0, 2), (1, 3)]
    _, happened = then(links, polar(16, 120))
    assert happened == [
        ("joined", 0, 0),
        ("severed", 0, 2, 0),
        ("split", 2, 0, 0, 1),
        ("severed", 0, 1, 0),
        ("rejoined", 0, 3, 0),
    ]
    assert edges(links) == [(0, 3), (1, 3)]


# A chain 1 – 0 – 2 where 1 drifts within T_s of 2, without an edge, and then too far from 0.
NEAR_REJOIN = [(0, 0), (40, 0), (26, 45), (50, 26), (36, 25), (46, 27)]


def near_rejoin(tell):
    links = tell(angles(join=24), *[polar(*place) for place in NEAR_REJOIN])
    assert edges(links) == [(0, 1), (0, 2)]
    assert similarity(links, 1, 2) > math.cos(math.radians(24))  # no edge, so no merge
    _, happened = then(links, polar(58, 39))
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("rejoined", 1, 2, 0)]
    assert similarity(links, 1, 2) > math.cos(math.radians(24))
    return links


def test_a_rejoin_edge_that_passes_t_s_merges_at_the_next_touch_not_now(tell):
    for touched, place in ((1, (50, 30)), (2, (24, 50))):
        links = near_rejoin(tell)
        assert edges(links) == [(0, 2), (1, 2)]
        _, happened = then(links, polar(*place))
        assert happened[:2] == [("joined", touched, 0), ("merged", 1, 2, 0)]


def test_a_touch_elsewhere_in_the_cluster_does_not_merge_them(tell):
    links = near_rejoin(tell)
    _, happened = then(links, polar(0))
    assert happened == [("joined", 0, 0)]
    assert edges(links) == [(0, 2), (1, 2)]


def test_a_linked_vector_brings_no_update(tell):
    links = near_rejoin(tell)
    _, happened = then(links, polar(75, 20))  # linked to 1, whose edge to 2 would merge
    assert happened == [("linked", 3, 1, 0)]
    assert edges(links) == [(0, 2), (1, 2), (1, 3)]


# IDs at a split.


def test_the_part_with_more_vectors_keeps_the_id(tell):
    links = tell(angles(), *[polar(0)] * 3, polar(40))
    _, happened = then(links, polar(55))
    assert happened == [("joined", 1, 0), ("severed", 1, 0, 0), ("split", 1, 0, 0, 1)]
    assert links.labels().tolist() == [0, 0, 0, 1, 1]


def test_the_answer_is_the_id_after_the_update(tell):
    links = tell(angles(), *[polar(0)] * 3, polar(40))
    decision, _ = then(links, polar(55))
    assert (decision.kind, decision.cluster) == ("joined", 1)


def test_parts_of_equal_size_leave_the_id_to_the_one_with_the_oldest_node(tell):
    links = tell(angles(), *[polar(0)] * 2, polar(40))
    decision, happened = then(links, polar(55))  # 0 is older than the touched 1
    assert happened[-1] == ("split", 1, 0, 0, 1)
    assert decision.cluster == 1

    links = tell(angles(), polar(0), *[polar(40)] * 2)
    decision, happened = then(links, polar(-15))  # the touched 0 is older
    assert happened == [("joined", 0, 0), ("severed", 0, 1, 0), ("split", 1, 0, 0, 1)]
    assert decision.cluster == 0


def test_the_oldest_node_counts_wherever_in_its_part_it_is(tell):
    # The edge cut is 1 – 2 and 1 is its older end; but 2's part holds 0.
    links = tell(angles(), *[polar(0)] * 2, polar(40), polar(36, 75), polar(55, 20))
    assert edges(links) == [(0, 2), (1, 2)]
    decision, happened = then(links, polar(64, -5))
    assert links.state().counts.tolist() == [2, 3, 1]
    assert happened == [("joined", 1, 0), ("severed", 1, 2, 0), ("split", 1, 2, 0, 1)]
    assert decision.cluster == 1


def test_a_split_cluster_stays_split_however_near_its_parts_come(tell):
    links = tell(angles(join=30), polar(0), polar(40), polar(55))
    assert links.n_clusters == 2
    for place in (30, 25, 20, 17):
        _, happened = then(links, polar(place))
        assert happened == [("joined", 1, 0)]
    assert similarity(links, 0, 1) > math.cos(math.radians(45))
    assert links.n_clusters == 2


def test_an_answer_once_given_stands_and_the_event_says_what_became_of_it(tell):
    links = tell(angles())
    answers = [links.add(polar(angle)).cluster for angle in (0, 40, 55)]
    assert answers == [0, 0, 0]
    assert links.labels().tolist() == [1, 0, 0]
    split = links.events()[-1]
    assert (split.kind, split.cluster, split.new_cluster) == ("split", 0, 1)


def test_an_id_is_never_used_again(tell):
    links = tell(angles(), polar(0), polar(40), polar(55))
    decision, _ = then(links, polar(180))
    assert decision.cluster == 2
