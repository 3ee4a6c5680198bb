"""Events played back onto an empty map: subclusters, edges and cluster IDs, without an engine."""

from __future__ import annotations

from collections import Counter

TESTED, SETTLED, PINNED = range(3)
REBUILD = ("rebuilt", "parted", "transferred", "vanished", "replaced", "bound")


class Map:
    """Where each vector is, what ties the subclusters, what the clusters are called."""

    def __init__(self):
        self.subcluster = []  # of each vector; −1 for one that was removed
        self.cluster = {}  # of each subcluster
        self.edges = {}  # pairs, the older subcluster first → rule
        self.rejoined_edges = set()  # edges no end of which was touched since they were re-joined
        self.aliases = {}  # a cluster that is gone → the one that holds it; −1 for none
        self.names = {}
        self.ignored = set()
        self.flags = {}
        self.to_enrol = None  # name, and how many vectors are still to come
        self.rebuilding = False  # whether the rebuild that began is still going on


class Replay:
    """What the events alone say; each event must also agree with the map it is played onto.

    `whole_clusters`: edges of vectors that were linked are rule (evidence="cluster").
    """

    def __init__(self, events=(), *, whole_clusters=False):
        self.whole_clusters = whole_clusters
        self.map = Map()
        self.sequence = 0
        self.kinds = Counter()  # events played, by kind
        self.told = []  # every event, and the place of the one it follows: an undo goes back
        self.last = -1
        self.used = set()  # cluster IDs ever given: no later event may give one again
        self.used_subclusters = set()
        self.again = False  # playing what was played before, after an undo
        self.play(events)

    # What the map says.

    @property
    def subcluster(self):
        return self.map.subcluster

    @property
    def cluster(self):
        return self.map.cluster

    @property
    def edges(self):
        return self.map.edges

    @property
    def rejoined_edges(self):
        return self.map.rejoined_edges

    def labels(self):
        return [self.cluster[node] if node >= 0 else -1 for node in self.subcluster]

    def resolve(self, cluster):
        for _ in range(len(self.map.aliases) + 1):
            if cluster not in self.map.aliases:
                # One that an undo took back is gone: its ID is not given again.
                return cluster if cluster in self.cluster.values() else -1
            cluster = self.map.aliases[cluster]
        raise AssertionError("aliases go round in a circle")

    def part(self, start):
        found, frontier = {start}, [start]
        while frontier:
            node = frontier.pop()
            new = {end for edge in self.edges if node in edge for end in edge} - found
            found |= new
            frontier += new
        return found

    # Playing.

    def play(self, events):
        for event in events:
            assert event.sequence == self.sequence
            self.told.append((event, self.last))
            self.last = self.sequence
            self.sequence += 1
            self.kinds[event.kind] += 1
            self._play(event)

    def _play(self, event):
        self.map.rebuilding = self.map.rebuilding and event.kind in REBUILD
        getattr(self, event.kind)(event)

    def undone(self, event):
        """The map as it was before event `to`, told again from the beginning."""
        assert 0 <= event.to < event.sequence
        self._go_to(self.told[event.to][1])  # the event that `to` followed

    def redone(self, event):
        """The map as it was before the undo, told again from the beginning."""
        undone, before = self.told[event.undone]
        assert undone.kind == "undone"
        since = [each.kind for each, _ in self.told[undone.sequence : event.sequence]]
        assert set(since) <= {"undone", "redone"}
        self._go_to(before)

    def _go_to(self, before):
        """The map as it was after an event, told again from the beginning."""
        way, place = [], before
        while place >= 0:
            way.append(self.told[place][0])
            place = self.told[place][1]
        self.map, self.again, self.last = Map(), True, before
        for old in reversed(way):
            self._play(old)
        self.again = False

    # One vector.

    def created(self, event):
        self._new_node(event.subcluster)
        self._new_cluster(event.cluster)
        self._arrive(event)
        self.cluster[event.subcluster] = event.cluster
        self._enrol(event.cluster)

    def joined(self, event):
        assert self.cluster[event.subcluster] == event.cluster
        self._arrive(event)
        self._touch(event.subcluster)
        self._enrol(event.cluster)

    def linked(self, event):
        self._new_node(event.subcluster)
        assert self.cluster[event.partner] == event.cluster
        self._arrive(event)
        self.cluster[event.subcluster] = event.cluster
        rule = SETTLED if self.whole_clusters else TESTED
        self.edges[_edge(event.subcluster, event.partner)] = PINNED if self.map.to_enrol else rule
        self._enrol(event.cluster)

    def weighed(self, event):
        assert event.vector == len(self.subcluster)
        assert 0 < event.weight < 256

    def moved(self, event):
        assert self.subcluster[event.member] == -1
        self.subcluster[event.member] = event.subcluster
        if event.subcluster in self.cluster:
            assert self.cluster[event.subcluster] == event.cluster
            self._touch(event.subcluster)
            return
        self._new_node(event.subcluster)
        if event.partner < 0:
            self._new_cluster(event.cluster)
        else:
            assert self.cluster[event.partner] == event.cluster
            self.edges[_edge(event.subcluster, event.partner)] = PINNED
        self.cluster[event.subcluster] = event.cluster

    def removed(self, event):
        assert self.cluster[event.subcluster] == event.cluster
        if event.member >= 0:
            assert self.subcluster[event.member] == event.subcluster
            self.subcluster[event.member] = -1
        self._touch(event.subcluster)

    def vanished(self, event):
        node, heir = event.subcluster, event.heir
        assert self.cluster.pop(node) == event.cluster
        self.map.flags.pop(node, None)
        self._touch(node, heir)
        if heir >= 0 and self.map.rebuilding:
            assert node not in self.subcluster
            assert heir in self.cluster
            return
        if heir >= 0:
            self.map.subcluster = [-1 if owner == node else owner for owner in self.subcluster]
            del self.edges[_edge(node, heir)]
            self._take_over(heir, node)
            return
        # The whole cluster goes: it has no other node, or it is being forgotten.
        forgotten = event.cluster in self.map.aliases
        assert forgotten or not any(node in edge for edge in self.edges)
        assert forgotten or event.cluster not in self.cluster.values()
        self.map.edges = {edge: rule for edge, rule in self.edges.items() if node not in edge}
        self.map.subcluster = [-1 if owner == node else owner for owner in self.subcluster]
        if not forgotten:
            self._leave(event.cluster, -1)

    def forgotten(self, event):
        assert event.cluster in self.cluster.values()
        self._leave(event.cluster, -1)

    # The graph.

    def merged(self, event):
        a, b = event.subcluster, event.absorbed
        assert a < b
        assert self.cluster.pop(b) == self.cluster[a] == event.cluster
        del self.edges[_edge(a, b)]
        self._touch(a, b)
        self._take_over(a, b)
        self.map.flags[a] = self.map.flags.get(a, 0) | self.map.flags.pop(b, 0)
        self.map.subcluster = [a if owner == b else owner for owner in self.subcluster]

    def severed(self, event):
        assert self.cluster[event.subcluster] == event.cluster
        del self.edges[_edge(event.subcluster, event.partner)]

    def rejoined(self, event):
        assert self.cluster[event.subcluster] == self.cluster[event.partner] == event.cluster
        self.edges[_edge(event.subcluster, event.partner)] = TESTED
        self.rejoined_edges.add(_edge(event.subcluster, event.partner))

    def split(self, event):
        self._new_cluster(event.new_cluster)
        part = self.part(event.subcluster)
        assert event.partner not in part
        assert self.cluster[event.partner] == event.cluster
        for subcluster in part:
            assert self.cluster[subcluster] == event.cluster
            self.cluster[subcluster] = event.new_cluster

    def united(self, event, rule=SETTLED):
        ends = (event.subcluster, event.partner)
        assert {self.cluster[end] for end in ends} == {event.cluster, event.gone}
        leaving = next(end for end in ends if self.cluster[end] == event.gone)
        for subcluster in self.part(leaving):
            assert self.cluster[subcluster] == event.gone
            self.cluster[subcluster] = event.cluster
        assert event.gone not in self.cluster.values()
        self.edges[_edge(*ends)] = rule
        self._leave(event.gone, event.cluster)

    def tied(self, event):
        self.united(event, PINNED)

    def retied(self, event):
        del self.edges[_edge(event.old, event.old_partner)]
        assert event.partner not in self.part(event.subcluster)
        assert self.cluster[event.subcluster] == self.cluster[event.partner]
        self.edges[_edge(event.subcluster, event.partner)] = PINNED

    def held(self, event):
        edge = _edge(event.subcluster, event.partner)
        assert edge in self.edges
        self.edges[edge] = event.firmness

    def settled(self, event):
        if event.asked:
            self.map.edges = {edge: max(rule, SETTLED) for edge, rule in self.edges.items()}

    def flagged(self, event):
        assert event.subcluster in self.cluster
        self.map.flags[event.subcluster] = event.flags

    # A rebuild.

    def rebuilt(self, event):
        self.map.edges, self.map.rejoined_edges = {}, set()
        self.map.rebuilding = True

    def parted(self, event):
        assert event.cluster in self.cluster.values()
        self._new_cluster(event.new_cluster)

    def transferred(self, event):
        node = event.subcluster
        if event.member < 0:
            assert self.cluster[node] != event.cluster
            self.cluster[node] = event.cluster
            return
        assert self.subcluster[event.member] == event.origin != node
        self.subcluster[event.member] = node
        if node not in self.cluster:
            self._new_node(node)
            self.cluster[node] = event.cluster

    def replaced(self, event):
        assert event.gone not in self.cluster.values()
        assert event.cluster in self.cluster.values()
        self._leave(event.gone, event.cluster)

    def bound(self, event):
        assert event.partner not in self.part(event.subcluster)
        assert self.cluster[event.subcluster] == self.cluster[event.partner]
        self.edges[_edge(event.subcluster, event.partner)] = SETTLED

    # A person's word; what it does to the graph stands in the events that follow.

    def named(self, event):
        assert event.cluster in self.cluster.values()
        self.map.names.pop(event.cluster, None)
        if event.name is not None:
            self.map.names[event.cluster] = event.name

    def ignored(self, event):
        assert event.cluster in self.cluster.values()
        (self.map.ignored.add if event.on else self.map.ignored.discard)(event.cluster)

    def enrolled(self, event):
        self.map.to_enrol = event.name, event.size

    def same(self, event):
        """Nothing of the map changes yet."""

    different = pinned = relocated = dropped = grouped = retracted = same

    # What several of them have in common.

    def _arrive(self, event):
        assert event.vector == len(self.subcluster)
        self.subcluster.append(event.subcluster)

    def _new_node(self, node):
        assert self.again or node not in self.used_subclusters
        self.used_subclusters.add(node)

    def _new_cluster(self, cluster):
        assert self.again or cluster not in self.used
        self.used.add(cluster)

    def _enrol(self, cluster):
        """A prototype has come; the cluster of the first gets the name."""
        if self.map.to_enrol is not None:
            name, size = self.map.to_enrol
            if name is not None:
                self.map.names[cluster] = name
            self.map.to_enrol = (None, size - 1) if size > 1 else None

    def _leave(self, gone, heir):
        """A cluster's ID stands for another's from now on, or for none."""
        assert gone not in self.map.aliases
        self.map.aliases[gone] = heir
        name = self.map.names.pop(gone, None)
        if name is not None and heir >= 0:
            assert self.map.names.setdefault(heir, name) == name
        self.map.ignored.discard(gone)

    def _take_over(self, heir, gone):
        """Edges of a subcluster that is no more."""
        self.map.edges = {
            _edge(*(heir if end == gone else end for end in edge)): rule
            for edge, rule in self.edges.items()
        }

    def _touch(self, *nodes):
        """Edges of these were judged anew."""
        self.map.rejoined_edges = {
            edge for edge in self.rejoined_edges if not any(node in edge for node in nodes)
        }


def _edge(a, b):
    return min(a, b), max(a, b)
