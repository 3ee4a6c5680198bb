"""Thresholds for an encoder, and whether its vectors suit the model.

`tune` searches with labels, `calibrate` makes do with less, `diagnose` says what vectors are like.
"""

from __future__ import annotations

from linkstream.tuning.calibration import Calibration, calibrate
from linkstream.tuning.diagnosis import Diagnosis, diagnose
from linkstream.tuning.findings import Finding
from linkstream.tuning.search import tune
from linkstream.tuning.tuned import Tuned

__all__ = ["Calibration", "Diagnosis", "Finding", "Tuned", "calibrate", "diagnose", "tune"]
