"""A model of confidence that is known, and a stream that it tells probabilities of."""

from __future__ import annotations

from linkstream import Links, Thresholds
from linkstream.clusterer.confidence import setting
from linkstream.confidence import Curve, Model
from streams import make

STREAM = make("lobes", 0)
THRESHOLDS = Thresholds(*STREAM.thresholds)
HELD = Curve(1.0, 8.0, -0.4, 0.5, 0.99, 900, 90)
NEW = Curve(0.5, 5.0, -0.2, 1.0, 0.98, 300, 30)
SAME = Curve(-1.0, 9.0, -0.3, 0.1, 0.9, 40, 400)


def model_for(thresholds):
    """Return the model as if it were fitted with these thresholds."""
    return Model(setting(Links(*thresholds).core), HELD, NEW, SAME, 40)


MODEL = model_for(STREAM.thresholds)


def links(**options):
    """Return an empty clusterer with the model."""
    return Links.from_thresholds(THRESHOLDS, confidence=MODEL, **options)
