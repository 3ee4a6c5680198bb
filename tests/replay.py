"""Events played back onto an empty map: subclusters, edges and cluster IDs, without an engine."""

from __future__ import annotations


class Replay:
    """What the events alone say; each event must also agree with the map it is played onto."""

    def __init__(self, events=()):
        self.subcluster = []  # of each vector
        self.cluster = {}  # of each subcluster
        self.edges = set()  # pairs, the older subcluster first
        self.rejoined_edges = set()  # edges no end of which was touched since they were re-joined
        self.sequence = 0
        self.play(events)

    def play(self, events):
        for event in events:
            assert event.sequence == self.sequence
            self.sequence += 1
            getattr(self, event.kind)(event)

    def labels(self):
        return [self.cluster[subcluster] for subcluster in self.subcluster]

    def created(self, event):
        assert event.subcluster not in self.cluster
        assert event.cluster not in self.cluster.values()
        self._arrive(event)
        self.cluster[event.subcluster] = event.cluster

    def joined(self, event):
        assert self.cluster[event.subcluster] == event.cluster
        self._arrive(event)
        self.rejoined_edges = {e for e in self.rejoined_edges if event.subcluster not in e}

    def linked(self, event):
        assert event.subcluster not in self.cluster
        assert self.cluster[event.partner] == event.cluster
        self._arrive(event)
        self.cluster[event.subcluster] = event.cluster
        self.edges.add(_edge(event.subcluster, event.partner))

    def merged(self, event):
        a, b = event.subcluster, event.absorbed
        assert self.cluster.pop(b) == self.cluster[a] == event.cluster
        self.edges.remove(_edge(a, b))
        self.rejoined_edges = {e for e in self.rejoined_edges if a not in e and b not in e}
        self.edges = {_edge(*(a if end == b else end for end in edge)) for edge in self.edges}
        self.subcluster = [a if owner == b else owner for owner in self.subcluster]

    def severed(self, event):
        assert self.cluster[event.subcluster] == event.cluster
        self.edges.remove(_edge(event.subcluster, event.partner))

    def rejoined(self, event):
        assert self.cluster[event.subcluster] == self.cluster[event.partner] == event.cluster
        self.edges.add(_edge(event.subcluster, event.partner))
        self.rejoined_edges.add(_edge(event.subcluster, event.partner))

    def split(self, event):
        assert event.new_cluster not in self.cluster.values()
        part = self.part(event.subcluster)
        assert event.partner not in part
        assert self.cluster[event.partner] == event.cluster
        for subcluster in part:
            assert self.cluster[subcluster] == event.cluster
            self.cluster[subcluster] = event.new_cluster

    def united(self, event):
        assert {self.cluster[event.subcluster], self.cluster[event.partner]} == {
            event.cluster,
            event.gone,
        }
        ends = (event.subcluster, event.partner)
        leaving = next(end for end in ends if self.cluster[end] == event.gone)
        for subcluster in self.part(leaving):
            assert self.cluster[subcluster] == event.gone
            self.cluster[subcluster] = event.cluster
        assert event.gone not in self.cluster.values()
        self.edges.add(_edge(event.subcluster, event.partner))

    def part(self, start):
        found, frontier = {start}, [start]
        while frontier:
            node = frontier.pop()
            new = {end for edge in self.edges if node in edge for end in edge} - found
            found |= new
            frontier += new
        return found

    def _arrive(self, event):
        assert event.vector == len(self.subcluster)
        self.subcluster.append(event.subcluster)


def _edge(a, b):
    return min(a, b), max(a, b)
