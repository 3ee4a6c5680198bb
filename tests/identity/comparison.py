"""Checks after each operation of the identity machine, on both engines."""

from __future__ import annotations

from identity.graph_model import TESTED
from linkstream.engine.contract import Decision
from linkstream.engine.event_values import from_dict
from linkstream.paper.algorithm import Answer


class Comparison:
    """Both engines (`links`) beside the `model`, and a `replay` of the events so far."""

    def check(self):
        for links in self.links:
            self.check_graph(links, links.state())
        assert len({links.state_hash() for links in self.links}) == 1
        self.check_events()
        self.check_laws()
        self.check_ids()
        self.check_edges()

    def check_graph(self, links, state):
        """Check that sums, edges, edge rules and IDs equal those of the model exactly."""
        model = self.model
        nodes = sorted(model.members)
        assert links.labels().tolist() == model.labels()
        assert state.numbers.tolist() == nodes
        assert state.clusters.tolist() == [model.cluster[node] for node in nodes]
        assert state.counts.tolist() == [model.count(node) for node in nodes]
        assert state.sums.tolist() == [model.sum(node).tolist() for node in nodes]
        assert state.flags.tolist() == [model.flags.get(node, 0) for node in nodes]
        assert state.missing_weight.tolist() == [model.missing_weight_of(node) for node in nodes]
        seen = zip(state.first_seen.tolist(), state.last_seen.tolist(), strict=True)
        assert list(seen) == [model.seen[node] for node in nodes]
        assert edges_of(state) == model.edges
        # A forest whose trees are the clusters.
        state.check()
        assert len(state.edges) == len(nodes) - links.n_clusters
        for node in nodes:
            assert model.part(node) == set(model.nodes_of(model.cluster[node]))
        for view in links.clusters():
            assert list(view.subclusters) == model.nodes_of(view.id)
            assert (view.size, view.name) == (
                model.size(view.subclusters),
                model.names.get(view.id),
            )
            assert view.ignored == (view.id in model.ignored)

    def check_events(self):
        """Check that the log equals that of the model, and that its replay gives the graph."""
        new = [links.events(self.replay.sequence) for links in self.links]
        assert all(events == new[0] for events in new)
        assert all(from_dict(event.to_dict()) == event for event in new[0])
        assert plain_events(new[0]) == self.model.events[self.replay.sequence :]
        self.replay.play(new[0])
        assert self.replay.labels() == self.model.labels()
        assert self.replay.cluster == self.model.cluster
        assert self.replay.edges == self.model.edges
        assert self.replay.map.names == self.model.names
        assert self.replay.map.ignored == self.model.ignored

    def check_laws(self):
        """Check that no group and no pair of pins violates a constraint."""
        labels, cluster = self.model.labels(), self.model.cluster
        for group in self.model.groups:
            there = [labels[member] for member in group if labels[member] >= 0]
            assert len(there) == len(set(there))
        assert all(cluster[a] != cluster[b] for a, b in self.model.barred_pairs())
        assert all(cluster[a] == cluster[b] for a, b in self.model.pairs(True))

    def check_ids(self):
        """Check that every ID resolves to a live cluster or to none, as in the model."""
        live = self.model.live()
        self.ids |= live
        assert self.ids <= self.replay.used
        for cluster in self.replay.used:
            answers = {links.resolve(cluster) for links in self.links}
            answers |= {self.replay.resolve(cluster), self.model.resolve(cluster)}
            assert len(answers) == 1
            assert answers <= live | {-1}

    def check_edges(self):
        """Check that each tested edge has passed equation 22 since one of its ends changed.

        A weighted vector is tested before rounding; its share differs slightly.
        """
        for (a, b), rule in self.model.edges.items():
            if rule == TESTED and (a, b) not in self.model.unjudged:
                assert self.model.margin(a, b) >= -1e-6


def edges_of(state):
    return dict(zip(map(tuple, state.edges.tolist()), state.edge_rules.tolist(), strict=True))


def plain_events(events):
    rows = (tuple(event.to_dict().values()) for event in events)
    return [(kind, *rest) for kind, _version, _sequence, *rest in rows]


def plain(answer):
    """Return decisions and answers of the model as plain values, and arrays as lists."""
    if isinstance(answer, Decision):
        shown = answer.kind, answer.similarity, answer.threshold, answer.cluster, answer.subcluster
        return tuple(shown)
    if isinstance(answer, Answer):
        return tuple(answer)
    return answer.tolist() if hasattr(answer, "tolist") else answer
