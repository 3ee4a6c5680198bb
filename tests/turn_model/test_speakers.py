"""Test which clusters are speakers while a recording goes on."""

from itertools import permutations

import numpy as np

from linkstream.turn_model import TimeModel, Windows, fixed_point
from linkstream.turn_model.speakers import Speakers, Window

MODEL = TimeModel()
ANN, BOB, CAT = np.eye(8)[:3]


class Heard:
    """Speakers, and the windows that they were told of."""

    def __init__(self, model=MODEL):
        self.rows, self.clusters, self.asked = [], [], []
        self.speakers = Speakers(model, self.windows)

    def windows(self, places):
        self.asked.append(len(places))
        rows = np.array([self.rows[place] for place in places.tolist()])
        return Windows(rows, np.full(len(rows), 400.0), np.full(len(rows), 0.4))

    def window(self, place):
        return Window(place, self.rows[place], 400, 0.4, 1.6 + 0.4 * place)

    def hear(self, vector, cluster, times=1):
        for _ in range(times):
            self.rows.append(fixed_point(np.asarray(vector, dtype=float)[None])[0])
            self.clusters.append(cluster)
            self.speakers.move(self.window(len(self.rows) - 1), None, cluster)
            self.speakers.judge(())

    def move(self, place, new):
        self.speakers.move(self.window(place), self.clusters[place], new)
        self.clusters[place] = new

    def present(self, known=()):
        return self.speakers.present(known)


def two_people():
    heard = Heard()
    heard.hear(ANN, 0, 20)
    heard.hear(BOB, 1, 20)
    return heard


def test_a_new_person_is_a_speaker_from_the_first_window():
    heard = two_people()
    assert heard.present() == [0, 1]
    heard.hear(CAT, 2)
    assert heard.present() == [0, 1, 2]


def test_windows_between_two_people_are_not_a_speaker():
    heard = two_people()
    heard.hear(ANN + BOB, 2, 3)
    assert heard.present() == [0, 1]


def test_a_variant_of_a_known_voice_is_no_speaker_until_it_has_a_second_of_evidence():
    heard = two_people()
    seen = []
    for _ in range(40):
        heard.hear(ANN + 0.9 * CAT, 2)
        seen.append(2 in heard.present())
    assert not any(seen[:5])
    assert seen[-1]
    assert seen == sorted(seen)


def test_a_cluster_with_a_name_is_a_speaker():
    heard = two_people()
    heard.hear(ANN + BOB, 2, 2)
    assert heard.present([2, 9]) == [0, 1, 2]


def test_without_least_evidence_every_cluster_is_a_speaker():
    heard = Heard(TimeModel(least=0.0))
    heard.hear(ANN, 0, 20)
    heard.hear(ANN + 0.5 * BOB, 1)
    assert heard.present() == [0, 1]


def test_a_cluster_that_lost_its_windows_is_no_speaker():
    heard = two_people()
    for place in range(20):
        heard.move(place, 1)
    assert heard.present() == [1]
    for place in range(40):
        heard.move(place, None)
    assert heard.present() == []


def test_asking_does_not_decide():
    """What `judge` decides does not depend on calls of `present` before it."""
    asked, quiet = two_people(), two_people()
    for heard in (asked, quiet):
        for vector, cluster in ((ANN + BOB, 2), (CAT, 3), (ANN + BOB, 2), (CAT, 3)):
            heard.rows.append(fixed_point(vector[None])[0])
            heard.clusters.append(cluster)
            heard.speakers.move(heard.window(len(heard.rows) - 1), None, cluster)
            if heard is asked:
                heard.present()
        heard.speakers.judge(())
    assert asked.present() == quiet.present() == [0, 1, 3]


def test_numbers_of_clusters_do_not_matter():
    for numbers in permutations([3, 8, 5]):
        heard = Heard()
        heard.hear(ANN, numbers[0], 20)
        heard.hear(BOB, numbers[1], 21)
        heard.hear(ANN + BOB, numbers[2], 2)
        assert heard.present() == sorted(numbers[:2])


def test_only_clusters_whose_windows_changed_are_judged():
    heard = two_people()
    heard.hear(ANN, 0, 10)
    for place in range(30):
        heard.hear(np.eye(8)[3 + place % 4] + ANN + BOB, 10 + place)
    heard.asked.clear()
    heard.hear(ANN, 0, 5)  # established: not judged at all
    assert heard.asked == []
    heard.hear(CAT, 2, 4)
    assert heard.asked == [1, 2, 3, 4]
