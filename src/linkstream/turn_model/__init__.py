"""Evidence of time: a speaker mostly goes on speaking.

Clusters know single vectors. A chain of hidden states adds that the person of one window is most
likely the person of the next: `chain` has its parameters and its arithmetic, `live` labels windows
with a delay while they arrive and `speakers` decides which clusters are speakers, `whole` labels
all windows of a recording again and `chapters` those alone whose surroundings changed.
"""

from linkstream.turn_model.chain import TimeModel, fixed_point
from linkstream.turn_model.chapters import Chapters
from linkstream.turn_model.live import LiveLabels
from linkstream.turn_model.speakers import Window
from linkstream.turn_model.whole import Windows, reestimate

__all__ = [
    "Chapters",
    "LiveLabels",
    "TimeModel",
    "Window",
    "Windows",
    "fixed_point",
    "reestimate",
]
