"""What people answer: events of the log, that probabilities learn from; drift; undo."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from linkstream import Links, saving
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model
from linkstream.confidence.answers import (
    FEWEST,
    FOUNDED,
    HELD,
    KEPT,
    MARGINS,
    PAIR,
    TOLD,
    UNTOLD,
    Answers,
    Given,
)
from linkstream.engine import snapshot
from linkstream.errors import ArgumentError, NotTrackedError, RemovedError, SnapshotError
from streams import ENGINES, make

SURE_HELD = Curve(1.0, 8.0, -0.4, 0.5, 0.99, 900, 90)
NEW = Curve(0.5, 5.0, -0.2, 1.0, 0.98, 300, 30)
SAME = Curve(-1.0, 9.0, -0.6, 0.3, 0.9, 40, 400)
STREAM = make("lobes", 9)


def clusterer(*, model=True, **options):
    links = Links(*STREAM.thresholds, **options)
    if model:
        links.confidence.use(Model(setting(links.core), SURE_HELD, NEW, SAME, 40))
    return links


def kinds_of(links):
    return [event.kind for event in links.events()]


def judge(links, vectors, right):
    for vector in vectors:
        links.judge(vector, right)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["paper", "best"])
def test_a_judgement_has_margin_and_probability_of_its_decision(engine, mode):
    links = clusterer(engine=engine, mode=mode)
    alone = [links.add(x) for x in STREAM.vectors[:60]]
    batch = links.decide_many(STREAM.vectors[60:120])
    for decision in (*alone, *map(batch.at, range(60))):
        if decision.cluster_margin is None:
            with pytest.raises(ArgumentError, match="without a cluster margin"):
                links.judge(decision.sequence, True)
            continue
        links.judge(decision.sequence, decision.sequence % 3 > 0)
        event = next(e for e in links.events()[::-1] if e.kind == "judged")
        assert event.member == decision.sequence
        assert event.margin / MARGINS == pytest.approx(decision.cluster_margin, abs=6e-9)
        told = UNTOLD if decision.probability is None else decision.probability * TOLD
        assert event.told == pytest.approx(told, abs=1)
        new = decision.kind == "new"
        assert event.verdict == 2 * new + (decision.sequence % 3 > 0)


def test_both_engines_write_the_same_answers():
    logs = []
    for engine in ENGINES:
        links = clusterer(engine=engine, mode="best")
        links.add_many(STREAM.vectors)
        for question in links.review_queue(8):
            (links.same if question.margin > -0.1 else links.different)(
                question.a, question.b, of=question.of
            )
        judge(links, range(1, 30), True)
        logs.append([each.to_dict() for each in links.events()])
        assert {"judged", "compared"} <= set(kinds_of(links))
    assert logs[0] == logs[1]


def test_answers_change_probabilities_only_after_update():
    links = clusterer()
    links.add_many(STREAM.vectors[:100])
    judge(links, range(40, 100), False)
    before = copy.copy(links)
    first = before.decide_many(STREAM.vectors[100:]).probability
    assert links.confidence.learnt == (0, 0)
    links.confidence.update()
    assert links.confidence.learnt == (0, 60)
    assert len(links.confidence.model.answers) == 60
    later = links.decide_many(STREAM.vectors[100:]).probability
    assert np.nanmean(later) < np.nanmean(first) - 0.1


def test_a_second_judgement_of_a_vector_replaces_the_first():
    links = clusterer()
    links.add_many(STREAM.vectors[:50])
    links.judge(20, True)
    links.judge(21, True)
    links.judge(20, False)
    answers = links.core.up_to_date_ledger().answers
    assert [(each.of, each.right) for each in answers.given] == [(21, True), (20, False)]
    assert answers.total == 2


def test_undo_and_redo_take_an_answer_back_and_bring_it_again():
    links = clusterer()
    links.add_many(STREAM.vectors[:50])
    links.judge(20, True)
    links.judge(30, False)
    links.confidence.update()
    model = links.confidence.model
    links.undo()
    assert [answer[2] for answer in links.confidence.model.answers] == [True]
    links.redo()
    assert links.confidence.model == model
    links.undo(to=0)
    assert links.confidence.model.answers == ()


def question_of(links):
    return next(each for each in links.review_queue() if each.kind == "join")


def test_an_answer_to_the_review_is_one_on_a_pair_and_undo_or_retract_take_it_back():
    links = clusterer()
    links.add_many(STREAM.vectors)
    question = question_of(links)
    event = links.n_events
    links.different(question.a, question.b, of=question.of)
    compared = next(e for e in links.events() if e.kind == "compared")
    assert compared.margin / MARGINS == pytest.approx(question.margin, abs=1e-6)
    assert compared.told / TOLD == pytest.approx(question.probability, abs=1e-5)
    assert compared.same == 0
    (answer,) = links.core.up_to_date_ledger().answers.given
    assert (answer.about, answer.right) == (PAIR, False)
    assert answer.of == links.corrections()[0].number
    links.retract(links.corrections()[0].number)
    assert links.core.up_to_date_ledger().answers == Answers()
    links.undo(to=event)
    links.same(question.a, question.b, of=question.of)
    assert links.core.up_to_date_ledger().answers.given[0].right
    links.undo()
    assert links.core.up_to_date_ledger().answers == Answers()
    assert links.core.oldest_event() == 0


def test_corrections_that_were_not_asked_for_teach_nothing():
    links = clusterer()
    links.add_many(STREAM.vectors)
    labels = links.labels()
    one, other = np.unique(labels)[:2].tolist()
    links.different(one, other, of="clusters")
    vector = int(np.flatnonzero(labels == other)[0])
    links.undo()
    links.move(vector, one)
    inside = np.flatnonzero(links.labels() == one)[:2].tolist()
    links.different(*inside)
    links.remove(int(inside[0]))
    assert not {"judged", "compared"} & set(kinds_of(links))


def test_without_margins_the_review_leaves_no_answer():
    links = clusterer(model=False)
    links.add_many(STREAM.vectors)
    question = question_of(links)
    links.different(question.a, question.b, of=question.of)
    assert "compared" not in kinds_of(links)
    with pytest.raises(ArgumentError, match="set_margins"):
        links.judge(3, True)


def test_answers_alone_make_a_model_of_decisions_and_one_of_pairs():
    links = Links(*STREAM.thresholds, confidence=True)
    links.add_many(STREAM.vectors)
    assert "50 answers, of which there are 0" in links.confidence.why
    some = (
        *(Given(HELD, i * MARGINS // 1000, UNTOLD, i % 7 > 0, i + 100) for i in range(-100, 100)),
        *(Given(PAIR, i * MARGINS // 500, UNTOLD, i > -20, i + 60) for i in range(-50, 0)),
    )
    links.core.ledger.answers = Answers(some, len(some))
    links.confidence.update()
    assert "joined and linked" not in links.confidence.why
    told = links.decide_many(STREAM.vectors[:80]).probability
    assert np.isfinite(told).any()
    assert question_of(links).probability is not None


def test_a_drift_is_told_once_until_the_model_has_learnt():
    links = clusterer()
    links.add_many(STREAM.vectors)
    judge(links, range(1, 140), False)
    drifts = [event for event in links.events() if event.kind == "drifted"]
    assert len(drifts) == 1
    assert links.confidence.has_drifted
    assert (drifts[0].about, drifts[0].answers >= FEWEST) == (0, True)
    assert drifts[0].right == 0 < drifts[0].told
    links.confidence.update()
    assert not links.confidence.has_drifted
    twin = Links.from_bytes(links.to_bytes())
    assert twin.confidence.learnt == links.confidence.learnt
    assert not twin.confidence.has_drifted


def test_no_drift_is_found_where_the_probabilities_hold():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(100):
        answers = Answers()
        for i in range(300):
            p = float(rng.choice([0.6, 0.9, 0.97, 0.99]))
            given = Given(HELD, 0, round(p * TOLD), bool(rng.random() < p), i)
            answers = answers.plus(given)
            if answers.drift(0) is not None:
                found += 1
                break
    assert found <= 5


def test_a_drift_is_found_soon():
    rng = np.random.default_rng(1)
    after = []
    for _ in range(50):
        answers = Answers()
        for i in range(KEPT):
            given = Given(FOUNDED, 0, round(0.9 * TOLD), bool(rng.random() < 0.7), i)
            answers = answers.plus(given)
            if answers.drift(0) is not None:
                break
        after.append(i)
    assert np.median(after) < 60


def test_answers_on_pairs_do_not_hide_a_drift_of_decisions():
    answers = Answers()
    for i in range(60):
        answers = answers.plus(Given(HELD, 0, TOLD // 2, False, i))
        answers = answers.plus(Given(PAIR, 0, TOLD // 2, True, i))
    assert answers.drift(0).right == 0
    assert answers.drift(1).right == TOLD
    assert answers.drifted(0).drift(0) is None
    assert answers.drifted(0).drift(1) is not None


def test_snapshots_keep_margins_answers_and_what_was_learnt():
    links = clusterer()
    links.add_many(STREAM.vectors[:90])
    judge(links, range(30, 60), True)
    links.confidence.update()
    judge(links, range(60, 70), False)
    for twin in (Links.from_bytes(links.to_bytes()), copy.deepcopy(links)):
        assert twin.confidence.model == links.confidence.model
        assert twin.core.ledger.answers == links.core.ledger.answers
        twin.judge(80, True)
        assert twin.state_hash() == links.state_hash()
        twin.confidence.update()
        assert twin.confidence.learnt == (0, 41)
    assert links.without_vectors().core.confidence.margins_of.first(90) is None


def test_a_model_that_is_used_later_does_not_learn_from_earlier_answers():
    links = clusterer()
    links.add_many(STREAM.vectors[:50])
    judge(links, range(20, 40), False)
    model = links.confidence.model
    links.confidence.use(model)
    links.confidence.update()
    assert links.confidence.model.answers == ()
    links.judge(45, False)
    links.confidence.update()
    assert len(links.confidence.model.answers) == 1


@pytest.mark.parametrize(
    ("vector", "right", "error"),
    [
        (10**6, True, "vector"),
        (True, True, "vector"),
        (3, 1, "right"),
        (3, None, "right"),
    ],
)
def test_judgements_that_cannot_be_are_refused(vector, right, error):
    links = clusterer()
    links.add_many(STREAM.vectors[:20])
    before = links.n_events
    with pytest.raises(ArgumentError, match=error):
        links.judge(vector, right)
    assert links.n_events == before


def test_without_tracking_there_is_no_judgement():
    links = clusterer(track_vectors=False)
    links.add_many(STREAM.vectors[:20])
    with pytest.raises(NotTrackedError):
        links.judge(3, True)


def test_a_vector_that_was_removed_is_not_judged():
    links = clusterer()
    links.add_many(STREAM.vectors[:20])
    links.remove(3)
    with pytest.raises(RemovedError):
        links.judge(3, False)
    links.undo()
    links.judge(3, False)


def test_prototypes_have_no_margin():
    links = clusterer()
    links.add_many(STREAM.vectors[:20])
    links.undo(to=0)
    links.enrol("Ann", STREAM.vectors[:5])
    links.add(STREAM.vectors[5])
    with pytest.raises(ArgumentError, match="without a cluster margin"):
        links.judge(3, True)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"given": [], "total": 1},
        {"given": [[0, 0, 0, 1, 0]], "total": 0, "drifts": [0, 0]},
        {"given": [[3, 0, 0, 1, 0]], "total": 1, "drifts": [0, 0]},
        {"given": [[0, 0, 0, 2, 0]], "total": 1, "drifts": [0, 0]},
        {"given": [[0, 0.5, 0, 1, 0]], "total": 1, "drifts": [0, 0]},
        {"given": [[0, 0, 0, 1, 0]], "total": 1, "drifts": [0]},
    ],
)
def test_wrong_answers_in_a_snapshot_are_refused(wrong):
    links = clusterer()
    links.add_many(STREAM.vectors[:20])
    data = links.to_bytes()
    meta, arrays = snapshot.decode(data, meta=saving._META, arrays=saving._ARRAYS)
    ledger = meta["ledger"] | {"answers": wrong}
    with pytest.raises(SnapshotError):
        Links.from_bytes(snapshot.encode(meta | {"ledger": ledger}, arrays))
    for other in ({"learnt": [3, 1]}, {"learnt": 3}, {"learnt": [0.0, 1]}):
        with pytest.raises(SnapshotError, match="learnt"):
            Links.from_bytes(snapshot.encode(meta | other, arrays))
    for array in (np.zeros(21, np.int32), np.zeros(3, np.int64)):
        with pytest.raises(SnapshotError, match="margins"):
            Links.from_bytes(snapshot.encode(meta, arrays | {"margins": array}))


def test_vectors_of_weight_zero_shift_no_margin():
    links = clusterer()
    links.add_many(STREAM.vectors[:20])
    links.add(STREAM.vectors[20], weight=0.0)
    decision = links.add(STREAM.vectors[21])
    links.judge(20, True)
    event = next(e for e in links.events() if e.kind == "judged")
    assert event.margin / MARGINS == pytest.approx(decision.cluster_margin, abs=6e-9)
    links.add_many(STREAM.vectors[22:25], weight=[1.0, 0.0, 1.0])
    with pytest.raises(ArgumentError, match="without a cluster margin"):
        links.judge(22, True)
