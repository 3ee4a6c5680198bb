"""`diagnose`: whether vectors fit the model of Links, and whether thresholds fit the vectors."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.errors import ArgumentError, VectorError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import MIN_IDENTITIES, PERPENDICULAR, Space, Survey, identities, survey
from linkstream.tuning import findings, groups, measurements, sample_runs
from linkstream.tuning.findings import Cone, Finding
from linkstream.tuning.groups import Groups
from linkstream.tuning.inputs import check_whole_number
from linkstream.tuning.measurements import Copies, Lengths, Rows, Similarities, Spectrum
from linkstream.tuning.sample_runs import Cliff, Growth

SAMPLE = 2000
_MARKS = {"ok": "ok     ", "note": "note   ", "warning": "WARNING"}
_WIDTH = 96
_INDENT = " " * 9


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Measurements of vectors and thresholds, with the findings in words.

    Attributes:
        vectors: number of vectors.
        dimension: dimension of the vectors.
        labelled: whether labels were given.
        centred: whether the given space has a mean vector.
        thresholds: the given thresholds, or None.
        findings: the findings with their advice, warnings first.
        lengths, copies, similarities, spectrum, cone, groups, cliff, growth: the measurements;
            `growth` is None without thresholds.
    """

    vectors: int
    dimension: int
    labelled: bool
    centred: bool
    thresholds: Thresholds | None
    findings: tuple[Finding, ...]
    lengths: Lengths
    copies: Copies
    similarities: Similarities
    spectrum: Spectrum
    cone: Cone
    groups: Groups
    cliff: Cliff
    growth: Growth | None

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings of severity "warning"."""
        return tuple(found for found in self.findings if found.severity == "warning")

    def to_dict(self) -> dict[str, Any]:
        """Return all measurements and findings as plain values for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return the findings as paragraphs, warnings first."""
        lines = [self.headline(), ""]
        for found in self.findings:
            lines.append(f"{_MARKS[found.severity]}  {found.title}")
            for words in (found.seen, found.advice):
                lines += textwrap.wrap(
                    words, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
                )
        return "\n".join(lines)

    def headline(self) -> str:
        """Return one line with the size of the input and the number of warnings."""
        who = "with labels" if self.labelled else "without labels"
        count = len(self.warnings)
        warned = "no warnings" if not count else f"{count} warning" + "s" * (count > 1)
        return f"{self.vectors:,} vectors of dimension {self.dimension}, {who}: {warned}"

    def picture(self, path: str | os.PathLike[str]) -> None:
        """Draw the measurements in six panels. Needs matplotlib.

        Args:
            path: the file to write: .png, .svg or .pdf.

        Raises:
            ArgumentError: the file cannot be written.
        """
        from linkstream.plots import save
        from linkstream.tuning.pictures import diagnosis_figure

        save(diagnosis_figure(self), path)

    __str__ = text


def diagnose(
    X: npt.ArrayLike,
    thresholds: Thresholds | Sequence[float] | None = None,
    *,
    y: npt.ArrayLike | None = None,
    space: Space | None = None,
    seed: int = 0,
    sample: int = SAMPLE,
) -> Diagnosis:
    """Test vectors against the model of Links, and thresholds against the vectors.

    It takes some seconds for 100,000 vectors.

    Args:
        X: vectors in order of arrival, one per row, as they will be given to Links.
        thresholds: `Thresholds`, or T_c, T_s and T_p. Without them, only the vectors are judged.
        y: the identity of each vector. With labels, the lemmas are tested on the identities;
            without, on groups made from neighbours, which look better than identities do.
        space: the space to be used with Links; None uses the vectors as given.
        seed: seed of the sample.
        sample: number of vectors to compare with each other; memory grows with its square.

    Raises:
        VectorError: there are fewer than three vectors, or some are not finite.
    """
    wanted = _thresholds(thresholds)
    given = door.vectors(X, dimension=None if space is None else space.dimension)
    labels = None if y is None else identities(y, len(given))
    _check(given, sample)
    lengths = measurements.lengths(given)
    rows = measurements.usable_rows(given)
    if labels is not None and len(rows) < len(given):
        labels = labels[np.any(given != 0.0, axis=1)]
    _check(rows, sample)
    seen = measurements.digests(rows)
    rows = measurements.unit_vectors(rows, space or Space())
    return _diagnosed(rows, seen, lengths, wanted, labels, space, seed, sample)


def _diagnosed(
    rows: Rows,
    digests: list[bytes],
    lengths: Lengths,
    thresholds: Thresholds | None,
    labels: npt.NDArray[np.intp] | None,
    space: Space | None,
    seed: int,
    sample: int,
) -> Diagnosis:
    """Measure unit vectors of the space, and derive the findings."""
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.permutation(len(rows))[:sample])
    who, nearest = measurements.neighbours(rows, drawn, rng)
    similarities = measurements.similarities(rows[drawn], nearest)
    surveyed = survey(rows, y=labels, seed=seed)
    if labels is None:
        chosen, named = groups.neighbourhoods(rows, drawn, who, surveyed.mean, rng)
    else:
        chosen = groups.sample_of_identities(labels, sample, rng)
        named = labels[chosen]
    lemmas = groups.measure_groups(
        rows[chosen], named, labelled=labels is not None, thresholds=thresholds, rng=rng
    )
    pair = similarities.neighbour if lemmas.pair is None else lemmas.pair
    made = Diagnosis(
        vectors=len(rows) + lengths.zeros,
        dimension=rows.shape[1],
        labelled=labels is not None,
        centred=space is not None and space.mean is not None,
        thresholds=thresholds,
        findings=(),
        lengths=lengths,
        copies=measurements.copies(digests, drawn, nearest),
        similarities=similarities,
        spectrum=measurements.spectrum(rows[drawn]),
        cone=_cone(surveyed, rows[chosen], named, rng),
        groups=lemmas,
        cliff=sample_runs.cliff(
            rows, thresholds, pair=pair, neighbour=similarities.neighbour, labels=labels
        ),
        growth=None if thresholds is None else sample_runs.growth(rows, thresholds),
    )
    return replace(made, findings=_findings(made))


def _findings(made: Diagnosis) -> tuple[Finding, ...]:
    found = [
        findings.on_cone(made.cone, centred=made.centred),
        findings.on_cliff(made.cliff, made.groups, made.thresholds),
        *findings.on_lemmas(made.groups, made.dimension),
        findings.on_spectrum(made.spectrum, made.dimension),
        findings.on_copies(made.copies, made.vectors),
        *findings.on_lengths(made.lengths, made.vectors),
    ]
    if made.thresholds is not None:
        found[2:2] = findings.on_thresholds(made.groups, made.thresholds)
        found[2:2] = findings.on_clusters(made.cliff)
    if made.growth is not None:
        found.append(findings.on_growth(made.growth))
    order = {"warning": 0, "note": 1, "ok": 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


def _cone(
    seen: Survey, sample: Rows, named: npt.NDArray[np.intp], rng: np.random.Generator
) -> Cone:
    """Return the survey of the space, with the similarities of the sample after centring."""
    warranted = seen.strangers >= PERPENDICULAR
    strangers = pair = None
    if warranted:
        strangers, pair = groups.similarities_after_centring(sample, named, seen.mean, rng)
    return Cone(
        length=seen.length,
        strangers=seen.strangers,
        centred_strangers=strangers,
        centred_pair=pair,
        identities=float(seen.identities),
        counted=seen.counted,
        warranted=warranted,
        wide_enough=seen.identities >= MIN_IDENTITIES,
    )


def _thresholds(given: Thresholds | Sequence[float] | None) -> Thresholds | None:
    if given is None or isinstance(given, Thresholds):
        return given
    values = tuple(given)
    if len(values) != 3:
        raise ArgumentError(
            f"{len(values)} thresholds",
            expected="three: T_c, T_s and T_p",
            remedy="Pass Thresholds(0.7, 0.6, 0.9), or a tuple of three.",
        )
    return Thresholds(*values)


def _check(rows: Rows, sample: int) -> None:
    remedy = "Give the number of vectors to compare with each other; 2000 is usual."
    check_whole_number("sample", sample, least=10, remedy=remedy)
    if len(rows) < 3:
        raise VectorError(
            f"{len(rows)} vectors to diagnose",
            expected="at least three",
            remedy="Give a few hundred vectors or more.",
        )
