"""How sure a decision is: calibrated probabilities, and "unknown" where there are none.

`curve.py` fits the probability that decisions of one kind are right to their cluster margins;
`model.py` has a curve for vectors that were given a cluster and one for new clusters.
"""

from linkstream.confidence.curve import Curve
from linkstream.confidence.model import Check, Examples, Model, Pairs, Setting
from linkstream.confidence.policy import Policy

__all__ = ["Check", "Curve", "Examples", "Model", "Pairs", "Policy", "Setting"]
