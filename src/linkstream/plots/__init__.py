"""Pictures of IDs over time, of the graph of subclusters, and of a clusterer or store.

Every function returns a `matplotlib.figure.Figure` without a window and without global state;
write it with `save(figure, path)`. An ID has the same colour throughout a picture. Fragments, IDs
that are matched to no identity, are grey and hatched.
"""

from linkstream.plots.graphs import cluster_graphs, graph
from linkstream.plots.overviews import margins, sizes, stream
from linkstream.plots.reliability import confidence, reliability
from linkstream.plots.speakers import speakers
from linkstream.plots.style import FAINT, FRAGMENT, INK, PALETTE, new_figure, save
from linkstream.plots.timelines import demo_picture, timeline

__all__ = [
    "FAINT",
    "FRAGMENT",
    "INK",
    "PALETTE",
    "cluster_graphs",
    "confidence",
    "demo_picture",
    "graph",
    "margins",
    "new_figure",
    "reliability",
    "save",
    "sizes",
    "speakers",
    "stream",
    "timeline",
]
