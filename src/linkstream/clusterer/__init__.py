"""The clusterer: one object, each of its sides in a file."""

from linkstream.clusterer.links import Links
from linkstream.clusterer.views import Cluster

__all__ = ["Cluster", "Links"]
