"""Pictures: who was given which ID when, the graph of subclusters, a store as a whole.

Every function returns a `matplotlib.figure.Figure` that belongs to no window and no global state;
write it with `save(figure, path)` or `figure.savefig(path)`. One colour is one ID throughout a
picture. Grey, hatched, are the IDs that stand for nobody: fragments.
"""

from linkstream.plots.canvas import FAINT, FRAGMENT, INK, PALETTE, Clustering, new_figure, save
from linkstream.plots.demo import demo_picture
from linkstream.plots.islands import islands
from linkstream.plots.lanes import timeline
from linkstream.plots.nodes import graph
from linkstream.plots.whole import margins, sizes, stream

__all__ = [
    "FAINT",
    "FRAGMENT",
    "INK",
    "PALETTE",
    "Clustering",
    "demo_picture",
    "graph",
    "islands",
    "margins",
    "new_figure",
    "save",
    "sizes",
    "stream",
    "timeline",
]
