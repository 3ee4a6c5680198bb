"""The clusterer: `Links`, its core, and one module of functions for each capability."""

from linkstream.clusterer.links import Links
from linkstream.clusterer.views import Cluster

__all__ = ["Cluster", "Links"]
