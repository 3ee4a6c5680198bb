"""`links.confidence`: the model of probabilities of a clusterer, and whether it holds there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import EVIDENCE
from linkstream.confidence import Check, Model, Setting
from linkstream.engine.decisions import NEW, Decision, Decisions
from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from linkstream.clusterer.core import Core

_NO_MODEL = "no model: the links of a tune() have one"


@dataclass(frozen=True, slots=True)
class Told:
    """What probabilities are told by, and why they may be unknown; as in `Confidence`."""

    model: Model | None
    why: str


class Confidence:
    """How sure a clusterer is: the model that tells it, and why it may tell nothing.

    >>> from linkstream import Links
    >>> Links(0.7, 0.6, 0.9).confidence.why
    'no model: the links of a tune() have one'
    """

    def __init__(self, core: Core, model: Model | None = None) -> None:
        self._core = core
        self._model = model
        self._looked_at: tuple[object, ...] = ()
        self._holding: Model | None = None
        self._why = _NO_MODEL
        self.margins = model is not None  # whether the engine computes them

    @property
    def model(self) -> Model | None:
        """The model, also if it does not hold with the present settings; None if there is none."""
        return self._model

    @property
    def why(self) -> str:
        """Why probabilities are unknown; empty if they are known but for rare margins."""
        self._look()
        return self._why

    def told(self) -> Told:
        """Return model and reason as they are now."""
        return Told(self._model, self.why)

    def use(self, model: Model | None) -> None:
        """Tell probabilities by a model from now on.

        Args:
            model: the model, such as `tune(X, y).confidence`; None tells none.
        """
        self._model, self._looked_at = check_model(model), ()
        self.set_margins(model is not None)

    def update(self, decisions: Decisions | Decision, right: npt.ArrayLike) -> None:
        """Learn from decisions that a person has judged.

        A model of a tuning is corrected by them; a little by few, more by many. A clusterer without
        one, such as that of a preset, has a model of its own after 200 answers. Its decisions need
        cluster margins: call `set_margins(True)` before vectors are added. Answers to a model that
        does not hold with the present settings are dropped with it.

        Args:
            decisions: what `add` or `decide_many` returned.
            right: whether each decision was right: for a vector that was given a cluster, whether
                most of the cluster is its identity; for a new cluster, whether the identity was
                not seen before.
        """
        batch = decisions.as_batch() if isinstance(decisions, Decision) else decisions
        hits = np.atleast_1d(np.asarray(right))
        if hits.dtype != np.bool_ or hits.shape != batch.kind.shape:
            raise ArgumentError(
                f"{hits.size} answers of type {hits.dtype} to {len(batch.kind)} decisions",
                expected="True or False for each decision",
                remedy="Pass whether each decision was right.",
            )
        columns = (batch.kind == NEW, batch.cluster_margin, hits)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        answers = [each for each in rows if each[1] == each[1]]
        here = setting(self._core)
        old = self._model if self._model and self._model.setting == here else Model.empty(here)
        self.use(old.answered(answers))

    def check(self) -> Check | None:
        """Compare what the tuning told with what people answered; None with fewer than 20 answers.

        `check().has_drifted` says that the tuning no longer holds for this stream: tune again.
        """
        return None if self._model is None else self._model.check()

    def set_margins(self, on: bool) -> None:
        """Compute the cluster margin of each decision from now on, or no longer.

        Args:
            on: whether to compute them; a model needs them.
        """
        self.margins = on
        if self._core.engine is not None:
            self._core.engine.set_cluster_margins(on)

    def holding(self) -> Model | None:
        """Return the model if it holds with the present settings and has learnt enough."""
        return self._look()

    def tell(self, decisions: Decisions) -> Decisions:
        """Return decisions with the probability that each is right."""
        if self._model is None:
            return decisions
        model = self._look()
        if model is None:
            return decisions
        found = model.probabilities(decisions.kind, decisions.cluster_margin)
        return replace(decisions, probability=found)

    def told_last(self) -> Decisions | None:
        """Return the decisions of the last batch with probabilities; None if there was none."""
        last = self._core.last_decisions
        return None if last is None else self.tell(last)

    def tell_one(self, decision: Decision) -> Decision:
        """Return a decision with the probability that it is right."""
        return self.tell(decision.as_batch()).at(0)

    def one_identity(self, margins: npt.ArrayLike) -> list[float | None]:
        """Return the probability that two clusters are one identity, by the margin of each pair.

        Args:
            margins: similarity of two clusters as wholes less s~, as in `suggest_merges`.
        """
        given = np.asarray(margins, dtype=np.float64)
        model = self._look()
        if model is None:
            return [None] * len(given)
        return [None if p != p else p for p in model.one_identity(given).tolist()]

    def _look(self) -> Model | None:
        """Return the model if it holds; look again if a setting has changed."""
        core = self._core
        origin = core.origin
        settings = (origin.thresholds, origin.cluster_evidence, core.healing, core.space)
        if settings != self._looked_at:
            self._looked_at = settings
            self._holding, self._why = self._held()
        return self._holding

    def _held(self) -> tuple[Model | None, str]:
        """Return the model if it holds, and why probabilities are unknown."""
        model = self._model
        if model is None:
            return None, _NO_MODEL
        other = model.setting.difference(setting(self._core))
        if other:
            return None, f"fitted with other {other}; tune with these, or use those"
        return model if model.is_known else None, model.why


def check_model(model: Model | None) -> Model | None:
    """Return a model; raise ArgumentError unless it is one, or None."""
    if model is None or isinstance(model, Model):
        return model
    raise ArgumentError(
        f"a model of type {type(model).__name__}",
        expected="a model of confidence, or None",
        remedy="Pass tune(X, y).confidence, or links.confidence.model of other links.",
    )


def model_of(plain: object) -> Model:
    """Return the model that `Model.to_plain` wrote; raise ArgumentError if it cannot be one."""
    try:
        return Model.from_plain(plain)
    except ValueError as error:
        raise ArgumentError(
            f"a model of confidence that cannot be ({error})",
            expected="what Model.to_plain() returns",
            remedy="Send the model of a tune() as it is.",
        ) from None


def setting(core: Core) -> Setting:
    """Return the settings that a model is valid for."""
    t, healing, space = core.origin.thresholds, core.healing, core.space
    mean = b"" if space.mean is None else space.mean.astype("<f8").tobytes()
    return Setting(
        (t.cluster_similarity, t.subcluster_similarity, t.pair_similarity_max),
        EVIDENCE[core.origin.cluster_evidence],
        "none" if healing is None else json.dumps(healing.to_dict(), sort_keys=True),
        hashlib.sha256(repr(space.model).encode() + mean).hexdigest()[:16],
    )
