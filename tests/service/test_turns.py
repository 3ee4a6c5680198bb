"""Recordings over HTTP: segments in, who spoke when out, at once, as a stream, after a restart."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from confidence.sure import HELD, NEW, SAME
from linkstream import Links
from linkstream.adapters.diarization import Diarizer
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Model
from linkstream.data import voice_halves
from linkstream.turn_model import TimeModel
from service.calling import Stream
from service.internals import recordings_of, session_of
from service.server import ProcessService, ThreadService, until

STREAM = voice_halves()[1]
N = 120
TIMES = [[round(t, 3), round(t + 1.6, 3)] for t in STREAM.t[:N].tolist()]
X = STREAM.X[:N]
PRESET = {"preset": "ge2e-turns"}
A, B = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]


@pytest.fixture
def path(service):
    """Return the path of a namespace for voices."""
    return voices(service, f"v{next(NUMBERS)}")


NUMBERS = iter(range(1000))


def voices(service, name):
    path = f"/v1/namespaces/{name}"
    assert service.put(path, PRESET).status == 201
    return path


def expected():
    """Return a diarizer that heard everything, and what each segment made final."""
    diarizer = Diarizer(Links.preset("ge2e-turns"), uri="monday", gap=0.5, delay=1.0)
    final = [diarizer.add(*span, x) for span, x in zip(TIMES, X, strict=True)]
    return diarizer, final


def record(turn):
    times = {"start": round(turn.start, 3), "end": round(turn.end, 3)}
    return {**times, "speaker": turn.speaker, "cluster": turn.cluster}


def records(turns):
    return [record(turn) for turn in turns]


def body(first, last, **more):
    return {"vectors": X[first:last].tolist(), "times": TIMES[first:last], **more}


def add(service, path, first, last, *, name="monday", key=None, **more):
    headers = {} if key is None else {"Idempotency-Key": key}
    target = f"{path}/turns/{name}"
    answer = service.post(target, body(first, last, **more), headers=headers)
    assert answer.status == 200, answer.body
    return answer.json


def test_segments_become_final_as_with_the_diarizer(service, path):
    diarizer, final = expected()
    for first in range(0, N, 7):
        told = add(service, path, first, min(first + 7, N))
        assert told["final"] == records([t for each in final[first : first + 7] for t in each])
        assert told["segments"] == min(first + 7, N)
    found = service.get(f"{path}/turns/monday").json
    assert found["turns"] == records(diarizer.final())
    assert found["pending"] == records(diarizer.pending())
    assert (found["segments"], found["finished"], found["delay"]) == (N, False, 1.0)
    for moment in ("current", "instant"):
        found = service.get(f"{path}/turns/monday?moment={moment}").json
        assert found["turns"] == records(diarizer.turns(moment))
    rest = service.post(f"{path}/turns/monday/finish", {}).json["final"]
    assert rest == records(diarizer.finish())
    assert service.post(f"{path}/turns/monday/finish", {}).json["final"] == rest
    assert service.get(f"{path}/turns/monday").json["finished"] is True
    text = service.get(f"{path}/turns/monday?rttm=true&moment=current").body.decode()
    assert text == diarizer.rttm()


def test_parameters_are_those_of_the_first_request(service, path):
    model = {"hold": 2.0, "least": 0.5}
    add(service, path, 0, 60, delay=2.0, gap=0.0, overlaps="keep", model=model)
    add(service, path, 60, N)
    found = service.get(f"{path}/turns/monday").json
    assert (found["delay"], found["gap"], found["overlaps"]) == (2.0, 0.0, "keep")
    assert found["model"] == asdict(TimeModel(hold=2.0, least=0.5))
    other = service.post(f"{path}/turns/monday", body(0, 1, delay=1.0))
    assert (other.status, other.json["error"]["kind"]) == (409, "exists")
    assert found["segments"] == N


def test_without_a_delay_speakers_of_one_moment_are_different(service, namespace):
    both = {"vectors": [A, [1.0, 0.1, 0.0]], "times": [[0, 1], [0, 1]], "groups": ["0", "0"]}
    target = f"{namespace}/turns/talk"
    told = service.post(target, {**both, "delay": None, "overlaps": "keep"}).json
    assert len({turn["cluster"] for turn in told["final"]}) == 2
    refused = service.post(f"{namespace}/turns/other", both)
    assert refused.status == 400
    assert "delay" in refused.json["error"]["remedy"]
    assert service.get(f"{namespace}/turns/other").status == 404


def test_a_stream_tells_what_became_final_and_what_may_change(service, path):
    _, final = expected()
    add(service, path, 0, 40)
    told = [turn for each in final for turn in each]
    with Stream(service.port, f"{path}/turns/monday/stream") as stream:
        for first in range(40, N, 20):
            add(service, path, first, first + 20)
        service.post(f"{path}/turns/monday/finish", {})
        messages = []
        for message in stream:
            messages.append(message)
            if message.event == "finished":
                break
    numbered = [message for message in messages if message.id is not None]
    assert [int(message.id) for message in numbered] == list(range(len(numbered)))
    assert [m.data["start"] for m in numbered][: len(told)] == [t["start"] for t in records(told)]
    assert messages[-1].data == {"kind": "finished", "final": len(numbered)}
    pending = [message.data["turns"] for message in messages if message.event == "pending"]
    assert pending[0]
    assert pending[-1] == []
    with Stream(service.port, f"{path}/turns/monday/stream", last="4") as stream:
        (message,) = stream.take(1)
        assert (message.id, message.data) == ("5", numbered[5].data)
    with Stream(service.port, f"{path}/turns/monday/stream?since=7") as stream:
        assert stream.take(1)[0].id == "7"


def test_a_stream_tells_of_corrections(service, path):
    first = add(service, path, 0, 15)["final"][0]
    with Stream(service.port, f"{path}/turns/monday/stream?since=1000") as stream:
        assert stream.take(1)[0].event == "pending"
        service.post(f"{path}/name", {"cluster": first["cluster"], "name": "Ann Lee"})
        assert stream.take(1)[0].data == {"kind": "changed"}
    found = service.get(f"{path}/turns/monday").json
    assert found["turns"][0]["speaker"] == "Ann Lee"
    assert {turn["speaker"] for turn in found["pending"]} == {"Ann Lee"}
    assert "Ann%20Lee" in service.get(f"{path}/turns/monday?rttm=true").body.decode()


def test_a_request_with_a_key_counts_once(service, path):
    once = add(service, path, 0, 30, key="a")
    more = add(service, path, 30, 50, key="b")
    assert add(service, path, 0, 30, key="a")["final"] == once["final"]
    assert add(service, path, 30, 50, key="b") == more
    other = service.post(f"{path}/turns/monday", body(50, 60), headers={"Idempotency-Key": "b"})
    assert (other.status, other.json["error"]["kind"]) == (409, "idempotency")
    assert service.get(f"{path}").json["vectors"] == 50


@pytest.mark.parametrize(
    "wrong",
    [
        {"vectors": [A]},
        {"vectors": [], "times": []},
        {"vectors": [A], "times": [[1, 0]]},
        {"vectors": [A], "times": [[0, 1, 2]]},
        {"vectors": [A, B], "times": [[1, 2], [0, 1]]},
        {"vectors": [A, B], "times": [[0, 1]]},
        {"vectors": [A, [0, 0, 0]], "times": [[0, 1], [1, 2]]},
        {"vectors": [A, [1, 2]], "times": [[0, 1], [1, 2]]},
        {"vectors": [A, B], "times": [[0, 1], [1, 2]], "groups": ["a"]},
        {"vectors": [A], "times": [[0, 1]], "delay": -1},
        {"vectors": [A], "times": [[0, 1]], "model": {"hold": 0}},
        {"vectors": [A], "times": [[0, 1]], "overlaps": "both"},
        {"vectors": [A] * 257, "times": [[0, 1]] * 257},
    ],
)
def test_a_request_that_is_refused_changes_nothing(service, namespace, wrong):
    answer = service.post(f"{namespace}/turns/talk", wrong)
    assert answer.status == 400, answer.body
    assert service.get(namespace).json["vectors"] == 0
    assert service.get(f"{namespace}/turns/talk").status == 404
    assert service.get(f"{namespace}/turns").json == {"recordings": []}


def test_vectors_of_another_dimension_and_late_segments_are_refused_as_a_whole(service, namespace):
    target = f"{namespace}/turns/talk"
    assert service.post(target, {"vectors": [A], "times": [[5, 6]]}).status == 200
    for wrong in (
        {"vectors": [[1.0, 0.0]], "times": [[6, 7]]},
        {"vectors": [A, A], "times": [[6, 7], [4, 5]]},
        {"vectors": [A], "times": [[4, 5]]},
    ):
        assert service.post(target, wrong).status == 400
    assert service.get(namespace).json["vectors"] == 1
    assert service.get(target).json["segments"] == 1


@pytest.mark.parametrize("name", [".a", "a%20b", "a%2Fb", "%3Cscript%3E", "x" * 101])
def test_a_name_that_cannot_be_one_is_refused(service, namespace, name):
    target = f"{namespace}/turns/{name}"
    assert service.post(target, {"vectors": [A], "times": [[0, 1]]}).status == 404
    assert service.get(target).status == 404


def test_names_hold_in_the_next_recording(service, path):
    told = add(service, path, 0, 60)
    service.post(f"{path}/name", {"cluster": told["final"][0]["cluster"], "name": "Ann"})
    again = add(service, path, 0, 60, name="tuesday")
    assert again["final"][0]["speaker"] == "Ann"
    names = [each["recording"] for each in service.get(f"{path}/turns").json["recordings"]]
    assert names == ["tuesday", "monday"]


def test_a_recording_goes_on_after_an_undo_and_without_removed_vectors(service, path):
    add(service, path, 0, 50)
    service.post(f"{path}/undo", {"to": None})
    assert service.get(f"{path}/turns/monday").json["segments"] == 49
    service.post(f"{path}/remove", {"vector": 20})
    add(service, path, 49, 60)
    found = service.get(f"{path}/turns/monday").json
    assert found["segments"] == 60
    whole = service.get(f"{path}/turns/monday?moment=current").json["turns"]
    assert whole[-1]["end"] == TIMES[59][1]
    service.post(f"{path}/undo", {"to": None})
    service.post(f"{path}/redo", {})
    assert service.get(f"{path}/turns/monday").json["segments"] == 59


def test_recordings_are_bounded_and_unused_ones_leave_the_memory(tmp_path):
    with ThreadService(tmp_path / "data", recordings_max=2, recording_idle_seconds=86_400) as held:
        path = voices(held, "people")
        for name in ("a", "b"):
            add(held, path, 0, 20, name=name)
        full = held.post(f"{path}/turns/c", body(0, 5))
        assert (full.status, full.json["error"]["kind"]) == (503, "busy")
        before = held.get(f"{path}/turns/a?moment=current").json["turns"]
        held.post(f"{path}/turns/a/finish", {})
        add(held, path, 0, 20, name="c")
        held.post(f"{path}/turns/b/finish", {})
        assert held.get(f"{path}/turns/a?moment=current").json["turns"] == before
        for each in recordings_of(held).of(session_of(held, path)):
            each.used -= 90_000
        until(lambda: held.get(f"{path}/turns").json == {"recordings": []})
        assert held.get(f"{path}/turns/c").json["segments"] == 20


def test_a_recording_is_made_again_from_the_store_after_a_kill(nest, tmp_path):
    with ProcessService(nest, tmp_path / "data") as held:
        path = voices(held, "people")
        add(held, path, 0, 60, key="first", delay=2.0, gap=0.25)
        told = held.get(f"{path}/turns/monday?moment=current").json
        held.kill()
        held.start()
        assert held.get(f"{path}/turns").json == {"recordings": []}
        again = held.get(f"{path}/turns/monday?moment=current").json
        assert again["turns"] == told["turns"]
        assert (again["delay"], again["gap"], again["pending"]) == (2.0, 0.25, [])
        assert add(held, path, 0, 60, key="first")["segments"] == 60
        assert add(held, path, 60, N, key="second")["segments"] == N
        assert held.get(path).json["vectors"] == N
        with Stream(held.port, f"{path}/turns/monday/stream", last="9") as stream:
            assert stream.take(1)[0].id == "10"


def test_a_namespace_without_tracked_vectors_has_no_recordings(service):
    path = service.namespace("untracked", track_vectors=False)
    answer = service.post(f"{path}/turns/a", {"vectors": [A], "times": [[0, 1]]})
    assert (answer.status, answer.json["error"]["kind"]) == (409, "not-tracked")


def test_vectors_of_segments_have_keys_and_times(service, path):
    add(service, path, 0, 3)
    found = service.get(f"{path}/vectors?id=turns/monday/1").json
    assert found["payload"] == {"recording": "monday", "start": TIMES[1][0], "end": TIMES[1][1]}
    assert np.isfinite(found["cluster"])


def test_a_vector_with_the_key_of_a_segment_that_was_added_by_hand_is_no_segment(
    service, namespace
):
    for payload in (None, {"recording": "q", "start": 2, "end": 1}, [1]):
        name = f"q{NUMBERS.__next__()}"
        one = {"vector": A, "id": f"turns/{name}/0"} | (
            {} if payload is None else {"payload": payload}
        )
        assert service.post(f"{namespace}/vectors", one).status == 200
        target = f"{namespace}/turns/{name}"
        missing = service.get(target)
        assert (missing.status, missing.json["error"]["kind"]) == (404, "not-found")
        assert service.post(f"{target}/finish", {}).status == 404
        for start in (0, 1):
            answer = service.post(
                target, {"vectors": [A], "times": [[start, start + 1]], "gap": 0.25}
            )
            assert (answer.status, answer.json["segments"]) == (200, start + 1)
        session = session_of(service, namespace.rpartition("/")[2])
        recordings_of(service)._live.clear()
        found = service.get(target)
        assert (found.status, found.json["segments"], found.json["gap"]) == (200, 2, 0.25)
        assert session.store.number(f"turns/{name}/2") > session.store.number(f"turns/{name}/1")


@pytest.mark.parametrize("recalled", [False, True])
def test_a_key_is_bound_to_the_vectors_and_the_number_of_segments_of_its_request(
    service, path, recalled
):
    once = add(service, path, 0, 6, key="a")
    if recalled:
        recordings_of(service)._live.clear()
    headers, target = {"Idempotency-Key": "a"}, f"{path}/turns/monday"
    others = [
        {**body(0, 6), "vectors": X[50:56].tolist()},
        body(0, 9),
        body(0, 2),
        {**body(0, 6), "times": [[a, b - 0.1] for a, b in TIMES[:6]]},
    ]
    for other in others:
        answer = service.post(target, other, headers=headers)
        assert (answer.status, answer.json["error"]["kind"]) == (409, "idempotency"), answer.body
    assert add(service, path, 0, 6, key="a")["segments"] == once["segments"] == 6
    assert service.get(path).json["vectors"] == 6


def test_held_segments_of_a_recording_are_there_after_a_restart(tmp_path):
    path = "/v1/namespaces/held"
    kind = setting(Links.preset("ge2e-turns").core)
    model = Model(kind, HELD, NEW, SAME, 40).to_plain()
    with ThreadService(tmp_path / "data") as service:
        assert service.put(path, {**PRESET, "confidence": model}).status == 201
        told = service.post(f"{path}/accept", {"probability": 0.95, "new": 0.0})
        assert told.status == 200, told.body
        add(service, path, 0, N)
        held = len(service.get(f"{path}/held?limit=200").json["held"])
        before = service.get(f"{path}/turns/monday?moment=current").json
    assert 0 < held < N
    with ThreadService(tmp_path / "data") as service:
        found = service.get(f"{path}/turns/monday?moment=current").json
        again = add(service, path, N - 1, N, name="tuesday")
    assert (found["segments"], again["segments"]) == (N, 1)
    assert sum(t["end"] - t["start"] for t in found["turns"]) == pytest.approx(
        sum(t["end"] - t["start"] for t in before["turns"])
    )
