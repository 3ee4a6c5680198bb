"""linkstream clusters embeddings as they arrive, with Links: each vector gets an ID at once."""

from linkstream.clusterer import Cluster, Links
from linkstream.engine.contract import Decision
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

__all__ = ["Cluster", "Decision", "Links", "Space", "Thresholds"]
__version__ = "0.1.0"
