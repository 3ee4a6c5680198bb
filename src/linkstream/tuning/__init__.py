"""Thresholds for an encoder, and a check that its vectors fit the model.

`tune` searches thresholds with labels, `calibrate` finds them with few labels or none, `levels`
shows vectors at several levels of granularity, and `diagnose` tests vectors and thresholds.
"""

from __future__ import annotations

from linkstream.clusterer.tuned import Tuned
from linkstream.tuning.calibration import Calibration, calibrate
from linkstream.tuning.diagnosis import Diagnosis, diagnose
from linkstream.tuning.findings import Finding
from linkstream.tuning.level_table import Level, Levels, levels
from linkstream.tuning.result import TuneResult
from linkstream.tuning.search import tune

__all__ = [
    "Calibration",
    "Diagnosis",
    "Finding",
    "Level",
    "Levels",
    "TuneResult",
    "Tuned",
    "calibrate",
    "diagnose",
    "levels",
    "tune",
]
