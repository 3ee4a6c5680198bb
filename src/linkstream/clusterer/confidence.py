"""`links.confidence`: the model of probabilities of a clusterer, and whether it holds there."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linkstream.clusterer.checks import EVIDENCE
from linkstream.clusterer.margins import Margins
from linkstream.confidence import Check, Model, Setting
from linkstream.confidence.answers import FOUNDED, HELD, MARGINS, PAIR, TOLD, UNTOLD, Given
from linkstream.confidence.model import IDENTITIES, Answer
from linkstream.confidence.policy import Policy
from linkstream.engine.decisions import KINDS, NEW, Decision, Decisions, Kind
from linkstream.errors import ArgumentError
from linkstream.identity.review import NO_ODDS, Odds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from linkstream.clusterer.core import Core
    from linkstream.saving import Saved

LEARNS_AFTER = 10  # answers after which the model of a store learns from them
_NO_MODEL = "no model: the links of a tune() have one"


@dataclass(frozen=True, slots=True)
class Told:
    """What probabilities are told by, and why they may be unknown; as in `Confidence`.

    Attributes:
        model: the model, with what it has learnt from answers; None if there is none.
        why: why probabilities are unknown; empty if they are known.
        has_drifted: whether answers contradicted the probabilities since it learnt last.
        answered: of decisions that were judged, the probability told before, and what was right.
    """

    model: Model | None
    why: str
    has_drifted: bool = False
    answered: tuple[tuple[float, bool], ...] = ()

    def plot(self) -> Figure:
        """Draw what was told of judged decisions against what was right, and the curves."""
        # The one call upwards: a clusterer imports no room that draws.
        drawn: Figure = importlib.import_module("linkstream.plots").confidence(
            self.model, self.answered
        )
        return drawn

    def check(self) -> Check | None:
        """Compare what the tuning told with what people answered; as `Confidence.check`."""
        return None if self.model is None else self.model.check()

    def summary(self) -> dict[str, Any]:
        """Return why probabilities are unknown, and what the model rests on, as plain values."""
        model, check = self.model, self.check()
        return {
            "why": self.why,
            "identities": None if model is None else model.identities,
            "answers": None if model is None else len(model.answers),
            "check": None if check is None else check.to_dict(),
            "drifted": self.has_drifted,
        }


class Confidence:
    """How sure a clusterer is: the model that tells it, and why it may tell nothing.

    >>> from linkstream import Links
    >>> Links(0.7, 0.6, 0.9).confidence.why
    'no model: the links of a tune() have one'
    """

    def __init__(self, core: Core, saved: Saved) -> None:
        self._core = core
        self._model = model = saved.confidence
        self._encoder = saved.encoder  # what the model was fitted to; see `Epochs.encoder`
        self._learnt = saved.learnt  # numbers of answers: from the first to before the second
        self.alone = 0  # answers after which it learns by itself; 0: when `update` is called
        self.margins_of = Margins(saved.margins, tracked=saved.state.track_vectors)
        self._looked_at: tuple[object, ...] = ()
        self._holding: Model | None = None
        self._why = _NO_MODEL
        self.margins = model is not None  # whether the engine computes them

    @property
    def model(self) -> Model | None:
        """The model, also if it does not hold with the present settings; None if there is none.

        It has learnt from the answers so far, up to the last `update`.
        """
        if self._model is None:
            return None
        some = self._core.ledger.answers.between(*self.learnt)
        return self._model.answered(_plain(some)) if some else self._model

    @property
    def given_model(self) -> Model | None:
        """The model as it was given, with the answers of `update` but without those of the log."""
        return self._model

    @property
    def encoder(self) -> int:
        """The encoder whose vectors the model was fitted to: as `Epochs.encoder`."""
        return self._encoder

    @property
    def learnt(self) -> tuple[int, int]:
        """Which answers of the log the model has: from one number to before another."""
        first, end = self._learnt
        total = self._core.ledger.answers.total
        return first, total - total % self.alone if self.alone else min(end, total)

    @property
    def why(self) -> str:
        """Why probabilities are unknown; empty if they are known but for rare margins."""
        self._look()
        return self._why

    def told(self) -> Told:
        """Return model and reason as they are now."""
        own = [] if self._model is None else list(zip(*self._model.answered_odds(), strict=True))
        given = self._core.ledger.answers.given
        own += [
            (each.told / TOLD, each.right)
            for each in given
            if each.about != PAIR and each.told != UNTOLD
        ]
        answered = tuple((float(told), bool(right)) for told, right in own)
        return Told(self.model, self.why, self.has_drifted, answered)

    def plot(self) -> Figure:
        """Draw the reliability diagram of the decisions that were judged, and the curves.

        Each answer is compared with the probability that was told before the model learnt from it;
        a bar is one standard error. Needs matplotlib.
        """
        return self.told().plot()

    def use(self, model: Model | None) -> None:
        """Tell probabilities by a model from now on.

        Args:
            model: the model, such as `tune(X, y).confidence`; None tells none.
        """
        total = self._core.up_to_date_ledger().answers.total
        self._model, self._looked_at = check_model(model), ()
        self._learnt, self._encoder = (total, total), self._core.epochs.encoder
        self.set_margins(model is not None)

    def update(
        self, decisions: Decisions | Decision | None = None, right: npt.ArrayLike | None = None
    ) -> None:
        """Learn from what people have answered: `judge`, and answers to questions of the review.

        With decisions, learn from these as well, without an event of the log. A store learns by
        itself, after each 10 answers.

        A model of a tuning is corrected by them; a little by few, more by many. A clusterer without
        one, such as that of a preset, has a model of its own after 50 answers. Its decisions need
        cluster margins: call `set_margins(True)` before vectors are added. Answers to a model that
        does not hold with the present settings are dropped with it.

        Args:
            decisions: what `add` or `decide_many` returned; None: no more than the log has.
            right: whether each decision was right: for a vector that was given a cluster, whether
                most of the cluster is its identity; for a new cluster, whether the identity was
                not seen before.
        """
        more = [] if decisions is None and right is None else _judged(decisions, right)
        here, answers = setting(self._core), self._core.up_to_date_ledger().answers
        model, encoder = self._model, self._core.epochs.encoder
        if model is None or model.setting != here or self._encoder != encoder:
            self._model, first = Model.empty(here), 0 if model is None else answers.total
            self._learnt, self._encoder = (first, first), encoder
        self._learnt = self._learnt[0], answers.total
        if more:
            assert self._model is not None, "one was made above"
            self._model = self._model.answered(more)
        self._looked_at = ()
        self.set_margins(True)

    def told_of(self, about: int, margin: float, number: int = 0) -> int:
        """Return the probability of a margin in millionths, by the model in force; −1 if unknown.

        Args:
            about: HELD, FOUNDED or PAIR.
            margin: the cluster margin of a decision, or that of two clusters.
            number: the number of the vector of a decision; of two clusters, the vectors of the
                smaller one.
        """
        model = self._look()
        if model is None:
            return UNTOLD
        if about == PAIR:
            found = float(model.one_identity(np.array([margin]), [number])[0])
        else:
            kind = np.array([NEW if about == FOUNDED else NEW - 1], dtype=np.int8)
            found = float(model.probabilities(kind, np.array([margin]), [number])[0])
        return UNTOLD if found != found else round(found * TOLD)

    @property
    def has_drifted(self) -> bool:
        """Whether answers contradicted the probabilities since the model last learnt from them.

        The event `drifted` tells of it once; the next `update` ends it.
        """
        drift = max(self._core.ledger.answers.drifts)
        return drift > self.learnt[1]

    def check(self) -> Check | None:
        """Compare what the tuning told with what people answered; None with fewer than 20 answers.

        `check().has_drifted` says that the tuning no longer holds for this stream: tune again.
        """
        model = self.model
        return None if model is None else model.check()

    def set_margins(self, on: bool) -> None:
        """Compute the cluster margin of each decision from now on, or no longer.

        Args:
            on: whether to compute them; a model needs them.
        """
        self.margins = on
        if self._core.engine is not None:
            self._core.engine.set_cluster_margins(on or self._core.policy is not None)

    def holding(self) -> Model | None:
        """Return the model if it holds with the present settings and has learnt enough."""
        return self._look()

    def take(self, decisions: Decisions) -> Decisions:
        """Keep the margins of decisions for `judge`; return the decisions with probabilities."""
        self.keep(decisions)
        return self.tell(decisions)

    def keep(self, decisions: Decisions) -> None:
        """Keep the margins of decisions on vectors that were all added, none with weight 0."""
        first = decisions.first_sequence
        if first + len(decisions.kind) == self._core.n_vectors:
            self.margins_of.note(decisions)
        else:
            self.margins_of.skip(first)

    def take_one(self, decision: Decision) -> Decision:
        """Do the same with one decision."""
        self.margins_of.note_one(decision)
        return self.tell_one(decision)

    def fits(self, policy: Policy) -> bool:
        """Return whether a policy is valid for the present settings."""
        here = setting(self._core), self._core.epochs.encoder
        return (policy.setting, policy.encoder) == here

    def tell(self, decisions: Decisions) -> Decisions:
        """Return decisions with the probability that each is right."""
        if self._model is None:
            return decisions
        model = self._look()
        if model is None:
            return decisions
        number = np.arange(len(decisions.kind)) + decisions.first_sequence
        found = model.probabilities(decisions.tested, decisions.cluster_margin, number)
        return replace(decisions, probability=found)

    def told_last(self) -> Decisions | None:
        """Return the decisions of the last batch with probabilities; None if there was none."""
        last = self._core.last_decisions
        return None if last is None else self.tell(last)

    def tell_one(self, decision: Decision) -> Decision:
        """Return a decision with the probability that it is right."""
        return self.tell(decision.as_batch()).at(0)

    def told_of_kind(self, kind: Kind, margin: float | None) -> float | None:
        """Return the probability that a decision of a kind is right; None if it is unknown.

        Args:
            kind: the kind of the decision.
            margin: its cluster margin, or None.
        """
        model = self._look()
        if model is None or margin is None:
            return None
        kinds = np.array([KINDS.index(kind)], dtype=np.int8)
        here = self._core.n_vectors
        found = float(model.probabilities(kinds, np.array([margin]), here)[0])
        return None if found != found else found

    def told_at(
        self, vectors: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the cluster margins of the decisions on vectors, and their probabilities; or NaN.

        Args:
            vectors: the vectors, by number.
        """
        kind, margin = self.margins_of.columns(vectors)
        model = self._look()
        unknown = np.full(len(vectors), np.nan)
        return margin, unknown if model is None else model.probabilities(kind, margin, vectors)

    def one_identity(
        self, margins: npt.ArrayLike, sizes: Sequence[tuple[int, int]]
    ) -> list[float | None]:
        """Return the probability that two clusters are one identity, for each pair.

        Args:
            margins: similarity of two clusters as wholes less s~, as in `suggest_merges`.
            sizes: the numbers of their vectors.
        """
        given = np.asarray(margins, dtype=np.float64)
        model = self._look()
        if model is None:
            return [None] * len(given)
        told = model.one_identity(given, [min(two) for two in sizes])
        return [None if p != p else p for p in told.tolist()]

    def odds_of_pairs(self) -> Odds:
        """Return the odds that two clusters are one, by the tuning; the usual ones without."""
        model = self._look()
        curve = None if model is None or model.identities < IDENTITIES else model.same
        if curve is None or not curve.is_known or not curve.slope:
            return NO_ODDS
        return Odds(curve.even, 1.0 / curve.slope)

    def _look(self) -> Model | None:
        """Return the model if it holds; look again if a setting has changed."""
        core = self._core
        origin = core.origin
        settings = (
            *(origin.thresholds, origin.cluster_evidence, core.healing, core.space),
            *(core.ledger.answers, self._learnt, core.epochs.encoder),
        )
        if settings != self._looked_at:
            self._looked_at = settings
            self._holding, self._why = self._held()
        return self._holding

    def _held(self) -> tuple[Model | None, str]:
        """Return the model if it holds, and why probabilities are unknown."""
        model = self.model
        if model is None:
            return None, _NO_MODEL
        other = model.setting.difference(setting(self._core))
        if other:
            return None, f"fitted with other {other}; tune with these, or use those"
        if self._encoder != self._core.epochs.encoder:
            return None, "fitted to vectors of another encoder; tune on those of this one"
        if model.is_known:
            return model, model.why
        answers = self._core.ledger.answers
        waiting = sum(a.about != PAIR for a in answers.between(self.learnt[1], answers.total))
        more = f"; {waiting} more count after confidence.update()" if waiting else ""
        return None, model.why + (more if not self.alone else "")


def _judged(decisions: object, right: object) -> list[Answer]:
    """Return the answers to decisions; raise ArgumentError unless there is one for each."""
    batch = decisions.as_batch() if isinstance(decisions, Decision) else decisions
    hits = np.atleast_1d(np.asarray(right))
    n = len(batch.kind) if isinstance(batch, Decisions) else 0
    if hits.dtype != np.bool_ or hits.shape != (n,) or not isinstance(batch, Decisions):
        raise ArgumentError(
            f"{hits.size} answers of type {hits.dtype} to {n} decisions",
            expected="True or False for each decision",
            remedy="Pass whether each decision was right.",
        )
    abouts = np.where(batch.tested == NEW, FOUNDED, HELD)
    numbers = range(batch.first_sequence, batch.first_sequence + n)
    columns = (abouts.tolist(), batch.cluster_margin.tolist(), hits.tolist(), numbers)
    rows = zip(*columns, strict=True)
    return [each for each in rows if each[1] == each[1]]


def _plain(some: Iterable[Given]) -> list[Answer]:
    return [(each.about, each.margin / MARGINS, each.right, each.number) for each in some]


def check_model(model: Model | bool | None) -> Model | None:
    """Return a model; raise ArgumentError unless it is one, or None."""
    if model is None or model is False:
        return None
    if isinstance(model, Model):
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
