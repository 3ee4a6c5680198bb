"""What a diagnosis says in words: one finding for each thing measured, with what to do about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from linkstream.paper.thresholds import Thresholds
from linkstream.space import MIN_IDENTITIES
from linkstream.tuning.groups import Groups
from linkstream.tuning.measurements import Copies, Lengths, Spectrum
from linkstream.tuning.trial import Cliff, Growth

Severity = Literal["ok", "note", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a diagnosis found: how bad, what, the figures, and what to do (if anything)."""

    severity: Severity
    title: str
    seen: str
    advice: str


@dataclass(frozen=True, slots=True)
class Cone:
    """Whether strangers are perpendicular, and what taking the mean away would do.

    Attributes:
        length: of the mean vector, every identity weighing about the same.
        strangers: mean similarity of two vectors of different identities.
        centred_strangers, centred_pair: what the mean similarities of strangers and of two vectors
            of one group become on this sample with the mean taken away; None if not measured.
        identities: how many the sample holds; an estimate unless `counted`.
        warranted: whether strangers are similar enough for centring to help.
        wide_enough: whether the sample may serve to fit the mean.
    """

    length: float
    strangers: float
    centred_strangers: float | None
    centred_pair: float | None
    identities: float
    counted: bool
    warranted: bool
    wide_enough: bool


def on_lengths(lengths: Lengths, vectors: int) -> list[Finding]:
    """Zero vectors, and lengths that may have meant something."""
    found = []
    if lengths.zeros:
        found.append(
            Finding(
                "warning",
                "Vectors without a direction",
                f"{lengths.zeros} of {vectors} vectors are zero.",
                "Links refuses them. Drop them; often a silent or empty input is behind them.",
            )
        )
    seen = (
        f"Lengths run from {lengths.least:.3g} to {lengths.most:.3g}, median {lengths.median:.3g}"
    )
    if lengths.spread > 1.5:
        advice = (
            "Links normalises and forgets them. With many encoders a short vector is a poor "
            "picture or a noisy sound: look at the shortest ones, and perhaps leave them out."
        )
        seen += f"; a long one is {lengths.spread:.2g} times a short one."
        return [*found, Finding("warning", "Lengths vary widely", seen, advice)]
    advice = ""
    return [*found, Finding("ok", "Lengths are alike", seen + ".", advice)]


def on_copies(copies: Copies, vectors: int) -> Finding:
    """Vectors that are there twice."""
    share = copies.exact / vectors
    seen = (
        f"{copies.exact} of {vectors} vectors ({share:.1%}) repeat an earlier one exactly; "
        f"{copies.near:.1%} of the sample have a near copy (similarity 0.999 or more)."
    )
    if share > 0.01 or copies.near > 0.05:
        advice = (
            "Copies pull centroids and counts as if they were new evidence. Drop them unless they "
            "are meant; do not tune on them."
        )
        return Finding("warning" if share > 0.1 else "note", "There are copies", seen, advice)
    return Finding("ok", "Hardly any copies", seen, "")


def on_cone(cone: Cone, *, centred: bool) -> Finding:
    """Lemma 1 on average: do strangers have similarity 0?"""
    if not cone.warranted:
        return Finding(
            "ok",
            "Strangers are perpendicular on average",
            f"Two strangers have similarity {cone.strangers:.2f}; the model expects 0.",
            "",
        )
    seen = (
        f"Two strangers have similarity {cone.strangers:.2f}, the model expects 0: the vectors sit "
        f"in a cone around a mean of length {cone.length:.2f}."
    )
    if centred:
        advice = "The space given does not fit these vectors: was it fitted for another encoder?"
        return Finding("warning", "Strangers are alike, in spite of the space", seen, advice)
    about = "" if cone.counted else "about "
    who = f"{about}{cone.identities:.0f} identities"
    if not cone.wide_enough:
        advice = (
            f"Try a Space, but not of these {who}: the mean of fewer than {MIN_IDENTITIES} often "
            "makes things worse. Take a wide sample of the same encoder: Space.fit(wide_sample)."
        )
    else:
        advice = f"Try a Space: Links(…, space=Space.fit(X)); these {who} are enough."
        if cone.centred_strangers is not None and cone.centred_pair is not None:
            advice += (
                f" Strangers would come to {cone.centred_strangers:.2f}, two vectors of one "
                f"group to {cone.centred_pair:.2f}. Tune anew with it, and keep it if it does "
                "better on identities held out; on our sets it did for half."
            )
    severity: Severity = "warning" if cone.strangers >= 0.15 else "note"
    return Finding(severity, "Strangers are alike: a cone", seen, advice)


def on_lemmas(groups: Groups, dimension: int) -> list[Finding]:
    """The spread in lemma 1, and lemmas 2 and 3."""
    basis = "" if groups.labelled else " (On groups made from neighbours, not on labels.)"
    found = []
    if groups.strangers is not None and groups.strangers.dimensions is not None:
        found.append(_strangers(groups, dimension, basis))
    if groups.angles is None or groups.residuals is None or groups.pair is None:
        seen = "No group of five or more vectors in the sample."
        advice = "Pass labels y, or a larger sample, to see whether angles to the centre are alike."
        return [*found, Finding("note", "Lemmas 2 and 3 not tested", seen, advice)]
    degrees, spread = math.degrees(groups.angles.mean), math.degrees(groups.angles.spread)
    t_c = math.sqrt(max(groups.pair, 0.0))
    seen = (
        f"Vectors lie {degrees:.0f}° ± {spread:.0f}° from the centre of their group; two of one "
        f"group have similarity {groups.pair:.2f}, so cos θ_c is about {t_c:.2f}.{basis}"
    )
    if groups.angles.beyond > 0.1:
        advice = (
            "Groups are not equally wide, and one T_c must serve them all: lean to the wide ones, "
            "and expect tight ones to be told apart less well than they could be."
        )
        found.append(Finding("note", "The angle to the centre varies (lemma 2)", seen, advice))
    else:
        advice = "One T_c fits all groups. Choose it somewhat below cos θ_c, or tune."
        found.append(Finding("ok", "The angle to the centre is steady (lemma 2)", seen, advice))
    return [*found, _residuals(groups, dimension, basis)]


def _strangers(groups: Groups, dimension: int, basis: str) -> Finding:
    lemma = groups.strangers
    assert lemma is not None
    assert lemma.dimensions is not None
    seen = (
        f"Similarities of strangers spread by {lemma.spread:.2f}, as in {lemma.dimensions:.0f} "
        f"dimensions; one pair in a hundred is above {lemma.delta:.2f}.{basis}"
    )
    if lemma.dimensions < min(50.0, 0.5 * dimension):
        advice = (
            "Some strangers are much alike, as families of topics or kin are. Thresholds must lie "
            "above them: expect them from tuning on labelled data, not from the model."
        )
        return Finding("note", "Some strangers are alike (lemma 1)", seen, advice)
    return Finding("ok", "Strangers differ evenly (lemma 1)", seen, "")


def _residuals(groups: Groups, dimension: int, basis: str) -> Finding:
    lemma = groups.residuals
    assert lemma is not None
    even = float(dimension) if lemma.dimensions is None else lemma.dimensions
    seen = f"Vectors of a group leave its centre as in {even:.0f} dimensions.{basis}"
    if even < min(30.0, 0.5 * dimension):
        advice = (
            "Groups are long in a few directions (lobes: moods, poses, channels). T_p below 1 "
            "allows for it: tune it with the others."
        )
        return Finding("note", "Groups are elongated (lemma 3)", seen, advice)
    return Finding("ok", "Groups are round enough (lemma 3)", seen, "")


def on_spectrum(spectrum: Spectrum, dimension: int) -> Finding:
    """How many directions are in use."""
    seen = f"The vectors vary as in {spectrum.effective_dimension:.0f} of {dimension} dimensions."
    if spectrum.effective_dimension < min(10.0, 0.5 * dimension):
        advice = (
            "Few directions hold few strangers apart. If this is a sample of few identities, that "
            "is why; else expect identities to run together."
        )
        return Finding("warning", "Few directions in use", seen, advice)
    return Finding("ok", "Enough directions in use", seen, "")


def on_cliff(cliff: Cliff, groups: Groups, thresholds: Thresholds | None) -> Finding:
    """Whether anything ever joins a subcluster."""
    pair = "" if groups.pair is None else f" Two vectors of one group have {groups.pair:.2f}."
    run = cliff.at
    if thresholds is None or run is None:
        seen = f"Without thresholds only the vectors are judged.{pair}"
        advice = "Keep T_s at or below the similarity of two vectors of one group."
        if cliff.edge is not None:
            advice += f" From {cliff.edge:.2f} on, most vectors would join nothing."
        return Finding("note", "No thresholds given", seen, advice)
    made, begun = round(run.subclusters * cliff.vectors), round(run.clusters * cliff.vectors)
    seen = (
        f"At T_s = {run.subcluster_similarity:.3g} the first {cliff.vectors:,} vectors make "
        f"{made:,} subclusters ({run.subclusters:.0%} of their number) in {begun:,} clusters.{pair}"
    )
    if run.alone is None:
        advice = "Nearly all found clusters of their own: all strangers, or thresholds too strict."
        return Finding("warning", "Hardly any vector finds its cluster", seen, advice)
    lower = "Lower T_s" + ("." if groups.pair is None else f", to {groups.pair:.2f} or less.")
    if run.alone >= 0.5:
        advice = (
            f"{run.alone:.0%} of the vectors that found their cluster become a subcluster of their "
            f"own all the same: memory and time grow with the stream. {lower}"
        )
        return Finding("warning", "T_s is over the cliff", seen, advice)
    if run.alone >= 0.2:
        return Finding("note", "T_s is near the cliff", seen, f"It costs memory and time. {lower}")
    return Finding("ok", "T_s is on safe ground", seen, "")


def on_clusters(cliff: Cliff) -> list[Finding]:
    """Whether the trial run found about as many clusters as there are identities."""
    if cliff.at is None or cliff.identities is None:
        return []
    begun = round(cliff.at.clusters * cliff.vectors)
    seen = f"{begun:,} clusters for the {cliff.identities:,} identities of the trial run."
    if begun < 0.7 * cliff.identities:
        advice = "Strangers are taken for one. Raise T_c first, or take a cone away; then tune."
        return [Finding("warning", "Identities run together", seen, advice)]
    if begun > 2.0 * cliff.identities:
        advice = "Identities come in pieces. Lower T_c or T_p; fragments hurt less than mergers do."
        severity: Severity = "warning" if begun > 5.0 * cliff.identities else "note"
        return [Finding(severity, "Identities fall apart", seen, advice)]
    return [Finding("ok", "About as many clusters as identities", seen, "")]


def on_thresholds(groups: Groups, thresholds: Thresholds) -> list[Finding]:
    """The thresholds against each other and against the groups."""
    t_c, t_s = thresholds.cluster_similarity, thresholds.subcluster_similarity
    found = []
    if t_s > t_c * t_c + 0.1:
        seen = f"T_s = {t_s:.3g}, and T_c² = {t_c * t_c:.3f}."
        advice = (
            "By the model two vectors of one cluster have similarity T_c², so few would join at "
            "this T_s. Bring them together: lower T_s, or raise T_c if clusters are that tight."
        )
        found.append(Finding("warning", "T_s lies well above T_c²", seen, advice))
    if groups.members_fail is not None:
        found.append(_members(groups.members_fail, t_c, groups.labelled))
    if groups.strangers_pass is not None:
        found.append(_passing(groups.strangers_pass, t_c, groups.labelled))
    if groups.lobes_fail is not None:
        found.append(_lobes(groups.lobes_fail, groups, thresholds.pair_similarity_max))
    return found


def _members(fail: float, t_c: float, labelled: bool) -> Finding:
    basis = "" if labelled else " (on groups made from neighbours, which are tight)"
    seen = f"{fail:.0%} of vectors fail the test against the rest of their own group{basis}."
    if fail > 0.2:
        advice = f"They will found clusters of their own. T_c = {t_c:.3g} is too strict: lower it."
        return Finding("warning", "T_c turns a group's own vectors away", seen, advice)
    return Finding("ok", "T_c lets a group's own vectors in", seen, "")


def _passing(share: float, t_c: float, labelled: bool) -> Finding:
    who = "strangers" if labelled else "vectors of different groups"
    seen = (
        f"{share:.1%} of pairs of {who} reach T_c² = {t_c * t_c:.3f}, all that a lone vector asks."
    )
    if share <= 0.02:
        return Finding("ok", "Strangers stay below the lowest threshold", seen, "")
    advice = "Early on, strangers will be linked; some part again as counts grow, some do not. "
    if labelled:
        advice += "Raise T_c, or take a cone away first."
        severity: Severity = "warning" if share > 0.1 else "note"
        return Finding(severity, "Strangers pass the lowest threshold", seen, advice)
    advice += "Some of these pairs are no strangers: labels would tell."
    return Finding("note", "Strangers may pass the lowest threshold", seen, advice)


def _lobes(fail: float, groups: Groups, t_p: float) -> Finding:
    least = min(groups.lobes)
    seen = (
        f"Cut along the longest direction, {fail:.0%} of {len(groups.lobes)} big groups have "
        f"halves that would not be linked. The least alike have {least:.2f}; T_p = {t_p:.3g}."
    )
    if fail > 0.1:
        advice = "Once both halves are big such a group splits for good. Lower T_p."
        return Finding("warning", "T_p lies above the similarity of two lobes", seen, advice)
    return Finding("ok", "T_p keeps lobes together", seen, "")


def on_growth(growth: Growth) -> Finding:
    """What the stream will cost."""
    seen = (
        f"{growth.subclusters[-1]:,} subclusters after {growth.vectors[-1]:,} vectors, growing as "
        f"their number to the power {growth.exponent:.2f} at the end."
    )
    if growth.forecasts:
        last = growth.forecasts[-1]
        seen += (
            f" At {last.vectors:,} vectors: {last.subclusters:,} ({last.low:,} to {last.high:,}), "
            f"{size(last.bytes_held)} of memory, {size(last.bytes_scanned)} read for each vector."
        )
    if growth.exponent > 0.8 and growth.vectors[-1] >= 200:
        advice = (
            "Memory and time grow almost with the stream. Either T_s is too high, or new "
            "identities keep coming; then plan for it."
        )
        return Finding("warning", "Subclusters grow with the stream", seen, advice)
    advice = "This holds if the stream goes on as it began."
    return Finding("ok", "What the stream will cost", seen, advice)


def size(count: float) -> str:
    """Bytes in a unit that people read.

    >>> size(2_732_000)
    '2.7 MB'
    """
    for unit in ("bytes", "kB", "MB"):
        if count < 1000.0:
            return f"{count:.0f} {unit}" if count >= 10.0 else f"{count:.1f} {unit}"
        count /= 1000.0
    return f"{count:,.1f} GB"
