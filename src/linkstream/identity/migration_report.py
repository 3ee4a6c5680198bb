"""Status and report of a migration to another encoder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from linkstream.identity.disagreements import Disagreement
from linkstream.identity.rebuild_report import RebuildReport

MANY = 0.25  # share of answers that translation changes above which a report warns
_WARNING = "Translation changes more than a quarter of the answers. Re-embed more before finish."


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """How far a migration is.

    Attributes:
        n_vectors: number of vectors that are in clusters.
        reencoded: how many of them the other encoder has seen.
        missing: how many it has not.
        dimension: dimension of the other encoder; None until it is known.
        model: model tag of the other encoder's space; None if it has none.
        pairs: where vectors are not kept, how many came with their vector of the old encoder.
        held: how many more vectors are held; the migration cannot end before they are decided on.
    """

    n_vectors: int
    reencoded: int
    missing: int
    dimension: int | None = None
    model: str | None = None
    pairs: int = 0
    held: int = 0

    @property
    def share(self) -> float:
        """The share of vectors that were re-embedded; 1 if there are none."""
        return self.reencoded / self.n_vectors if self.n_vectors else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "share": self.share}

    def __str__(self) -> str:
        model = "" if self.model is None else f" by {self.model}"
        dimension = "" if self.dimension is None else f", dimension {self.dimension}"
        pairs = f", {self.pairs:,} with their old vector" if self.pairs else ""
        held = f"; {self.held:,} held, to be decided on before the end" if self.held else ""
        return (
            f"{self.reencoded:,} of {self.n_vectors:,} vectors re-embedded{model} "
            f"({self.share:.1%}), {self.missing:,} missing{dimension}{pairs}{held}"
        )


@dataclass(frozen=True, slots=True)
class TranslationLoss:
    """What is lost by translation, measured on pairs held out of the fit.

    A pair is a vector in both encoders; where vectors are not kept, it may be the sum of a
    subcluster, of which the other encoder may have seen a part.

    Attributes:
        n_pairs: number of pairs that the map was fitted on.
        cosine: mean cosine of what was translated and what the other encoder makes of it.
        changed: share of pairs for which the present clusters give another answer to the one
            than to the other.
    """

    n_pairs: int
    cosine: float
    changed: float

    def __str__(self) -> str:
        return (
            f"translation from {self.n_pairs:,} pairs: mean cosine {self.cosine:.3f} on pairs held "
            f"out, {self.changed:.1%} of answers differ"
        )


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What the end of a migration would change, or has changed.

    Attributes:
        status: how far the migration is.
        rebuild: which vectors change their cluster.
        loss: what is lost by translation; None if nothing is translated.
        disagreements: where the encoders disagree, with the margins of both, by vectors.
    """

    status: MigrationStatus
    rebuild: RebuildReport = field(default_factory=RebuildReport)
    loss: TranslationLoss | None = None
    disagreements: tuple[Disagreement, ...] = ()

    @property
    def applied(self) -> bool:
        """Whether the change was made."""
        return self.rebuild.applied

    def text(self) -> str:
        """Return status, loss, changes and disagreements, one a line; warn of a great loss."""
        told = [str(self.status), *([] if self.loss is None else [str(self.loss)])]
        if self.loss is not None and self.loss.changed > MANY and not self.applied:
            told.append(_WARNING)
        return "\n".join([*told, self.rebuild.text(), *map(str, self.disagreements)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        loss = None if self.loss is None else asdict(self.loss)
        rebuild = self.rebuild.to_dict()
        return {
            "status": self.status.to_dict(),
            "loss": loss,
            "rebuild": rebuild,
            "disagreements": [each.to_dict() for each in self.disagreements],
        }

    def __str__(self) -> str:
        return self.text()
