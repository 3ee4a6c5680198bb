"""Findings of a diagnosis: one for each measurement, in words, with advice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from linkstream.paper.thresholds import Thresholds
from linkstream.space import MIN_IDENTITIES
from linkstream.tuning.groups import Groups
from linkstream.tuning.measurements import Copies, Lengths, Spectrum
from linkstream.tuning.sample_runs import Cliff, Growth

Severity = Literal["ok", "note", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a diagnosis.

    Attributes:
        severity: "ok", "note" or "warning".
        title: the finding in a few words.
        seen: the figures behind it.
        advice: what to do, or an empty string.
    """

    severity: Severity
    title: str
    seen: str
    advice: str


@dataclass(frozen=True, slots=True)
class Cone:
    """Whether all vectors lie in a cone, so that strangers are similar, and the effect of centring.

    Attributes:
        length: length of the mean vector, in which all identities weigh about the same.
        strangers: mean similarity of two vectors of different identities.
        centred_strangers, centred_pair: mean similarity of strangers, and of two vectors of one
            group, on this sample after centring; None if not measured.
        identities: number of identities in the sample.
        counted: whether `identities` is counted from labels; otherwise it is estimated.
        warranted: whether strangers are similar enough for centring to help.
        wide_enough: whether the sample has enough identities to fit the mean.
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
    """Report zero vectors, and whether lengths vary."""
    found = []
    if lengths.zeros:
        found.append(
            Finding(
                "warning",
                "There are zero vectors",
                f"{lengths.zeros} of {vectors} vectors are zero.",
                "Links refuses zero vectors. Drop them; often they come from empty inputs.",
            )
        )
    seen = (
        f"Lengths run from {lengths.least:.3g} to {lengths.most:.3g}, median {lengths.median:.3g}"
    )
    if lengths.spread > 1.5:
        advice = (
            "Links normalises vectors, so lengths are lost. With many encoders a short vector "
            "comes from a poor picture or a noisy sound: check the shortest vectors, and consider "
            "dropping them."
        )
        seen += f"; the 95th percentile is {lengths.spread:.2g} times the 5th."
        return [*found, Finding("warning", "Lengths vary widely", seen, advice)]
    return [*found, Finding("ok", "Lengths are similar", seen + ".", "")]


def on_copies(copies: Copies, vectors: int) -> Finding:
    """Report duplicate vectors."""
    share = copies.exact / vectors
    seen = (
        f"{copies.exact} of {vectors} vectors ({share:.1%}) repeat an earlier one exactly; "
        f"{copies.near:.1%} of the sample have a near copy (similarity 0.999 or more)."
    )
    if share > 0.01 or copies.near > 0.05:
        advice = (
            "Copies count as new evidence in centroids and counts. Drop them unless they are "
            "intended, and do not tune on them."
        )
        return Finding("warning" if share > 0.1 else "note", "There are copies", seen, advice)
    return Finding("ok", "Hardly any copies", seen, "")


def on_cone(cone: Cone, *, centred: bool) -> Finding:
    """Report whether strangers have similarity 0 on average (lemma 1)."""
    if not cone.warranted:
        return Finding(
            "ok",
            "Strangers are perpendicular on average",
            f"Two strangers have similarity {cone.strangers:.2f}; the model expects 0.",
            "",
        )
    seen = (
        f"Two strangers have similarity {cone.strangers:.2f}, the model expects 0: the vectors lie "
        f"in a cone around a mean of length {cone.length:.2f}."
    )
    if centred:
        advice = "The space does not fit these vectors. Check that it is of the same encoder."
        return Finding("warning", "Strangers are similar despite the space", seen, advice)
    about = "" if cone.counted else "about "
    who = f"{about}{cone.identities:.0f} identities"
    if not cone.wide_enough:
        advice = (
            f"Try a Space, but do not fit it on these {who}: the mean of fewer than "
            f"{MIN_IDENTITIES} often makes clusters worse. Take a sample with more identities of "
            "the same encoder: Space.fit(wide_sample)."
        )
    else:
        advice = f"Try a Space: Links(…, space=Space.fit(X)); these {who} are enough."
        if cone.centred_strangers is not None and cone.centred_pair is not None:
            advice += (
                f" Strangers would have similarity {cone.centred_strangers:.2f}, two vectors of "
                f"one group {cone.centred_pair:.2f}. Tune again with the space, and keep it if it "
                "is better on identities held out; it was for half of our sets."
            )
    severity: Severity = "warning" if cone.strangers >= 0.15 else "note"
    return Finding(severity, "Strangers are similar: a cone", seen, advice)


def on_lemmas(groups: Groups, dimension: int) -> list[Finding]:
    """Report the spread in lemma 1, and lemmas 2 and 3."""
    basis = "" if groups.labelled else " (On groups made from neighbours, not on labels.)"
    found = []
    if groups.strangers is not None and groups.strangers.dimensions is not None:
        found.append(_strangers(groups, dimension, basis))
    if groups.angles is None or groups.residuals is None or groups.pair is None:
        seen = "No group of five or more vectors in the sample."
        advice = "Pass labels y, or a larger sample, to test the angles to the centre."
        return [*found, Finding("note", "Lemmas 2 and 3 not tested", seen, advice)]
    degrees, spread = math.degrees(groups.angles.mean), math.degrees(groups.angles.spread)
    t_c = math.sqrt(max(groups.pair, 0.0))
    seen = (
        f"Vectors lie {degrees:.0f}° ± {spread:.0f}° from the centre of their group; two of one "
        f"group have similarity {groups.pair:.2f}, so cos θ_c is about {t_c:.2f}.{basis}"
    )
    if groups.angles.beyond > 0.1:
        advice = (
            "Groups are not equally wide, and one T_c must fit them all: choose it for the wide "
            "ones, and expect tight groups to be separated less well than they could be."
        )
        found.append(Finding("note", "Angles to the centre vary (lemma 2)", seen, advice))
    else:
        advice = "One T_c fits all groups. Choose it somewhat below cos θ_c, or tune."
        found.append(Finding("ok", "Angles to the centre are constant (lemma 2)", seen, advice))
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
            "Some strangers are very similar, such as relatives or related topics. Thresholds must "
            "lie above their similarity: find them by tuning on labelled data, not by the model."
        )
        return Finding("note", "Some strangers are similar (lemma 1)", seen, advice)
    return Finding("ok", "All strangers are dissimilar (lemma 1)", seen, "")


def _residuals(groups: Groups, dimension: int, basis: str) -> Finding:
    lemma = groups.residuals
    assert lemma is not None
    even = float(dimension) if lemma.dimensions is None else lemma.dimensions
    seen = f"Vectors of a group vary around its centre as in {even:.0f} dimensions.{basis}"
    if even < min(30.0, 0.5 * dimension):
        advice = (
            "Groups are long in a few directions (such as moods, poses or channels). T_p below 1 "
            "allows for this: tune it with the others."
        )
        return Finding("note", "Groups are elongated (lemma 3)", seen, advice)
    return Finding("ok", "Groups are round enough (lemma 3)", seen, "")


def on_spectrum(spectrum: Spectrum, dimension: int) -> Finding:
    """Report how many directions are in use."""
    seen = f"The vectors vary as in {spectrum.effective_dimension:.0f} of {dimension} dimensions."
    if spectrum.effective_dimension < min(10.0, 0.5 * dimension):
        advice = (
            "Few directions can separate only few identities. A sample of few identities explains "
            "this; otherwise expect identities to be merged."
        )
        return Finding("warning", "Few directions in use", seen, advice)
    return Finding("ok", "Enough directions in use", seen, "")


def on_cliff(cliff: Cliff, groups: Groups, thresholds: Thresholds | None) -> Finding:
    """Report whether T_s is so high that most vectors join no subcluster."""
    pair = "" if groups.pair is None else f" Two vectors of one group have {groups.pair:.2f}."
    run = cliff.at
    if thresholds is None or run is None:
        seen = f"Without thresholds, only the vectors are judged.{pair}"
        advice = "Keep T_s at or below the similarity of two vectors of one group."
        if cliff.edge is not None:
            advice += f" From {cliff.edge:.2f} on, most vectors would join no subcluster."
        return Finding("note", "No thresholds given", seen, advice)
    made, begun = round(run.subclusters * cliff.vectors), round(run.clusters * cliff.vectors)
    seen = (
        f"At T_s = {run.subcluster_similarity:.3g} the first {cliff.vectors:,} vectors make "
        f"{made:,} subclusters ({run.subclusters:.0%} of their number) in {begun:,} clusters.{pair}"
    )
    if run.alone is None:
        advice = "Almost every vector starts a cluster: all are strangers, or T_c is too high."
        return Finding("warning", "Hardly any vector finds its cluster", seen, advice)
    lower = "Lower T_s" + ("." if groups.pair is None else f", to {groups.pair:.2f} or less.")
    if run.alone >= 0.5:
        advice = (
            f"{run.alone:.0%} of the vectors that found their cluster still start a subcluster of "
            f"their own: memory and time grow with the stream. {lower}"
        )
        return Finding("warning", "T_s is too high", seen, advice)
    if run.alone >= 0.2:
        return Finding("note", "T_s is almost too high", seen, f"It costs memory and time. {lower}")
    return Finding("ok", "T_s is low enough", seen, "")


def on_clusters(cliff: Cliff) -> list[Finding]:
    """Report whether there are about as many clusters as identities."""
    if cliff.at is None or cliff.identities is None:
        return []
    begun = round(cliff.at.clusters * cliff.vectors)
    seen = (
        f"{begun:,} clusters for the {cliff.identities:,} identities of the first "
        f"{cliff.vectors:,} vectors."
    )
    if begun < 0.7 * cliff.identities:
        advice = "Strangers share clusters. Raise T_c first, or use a Space; then tune."
        return [Finding("warning", "Identities are merged", seen, advice)]
    if begun > 2.0 * cliff.identities:
        advice = "Identities are split. Lower T_c or T_p; splits are easier to repair than merges."
        severity: Severity = "warning" if begun > 5.0 * cliff.identities else "note"
        return [Finding(severity, "Identities are split", seen, advice)]
    return [Finding("ok", "About as many clusters as identities", seen, "")]


def on_thresholds(groups: Groups, thresholds: Thresholds) -> list[Finding]:
    """Report the thresholds against each other and against the groups."""
    t_c, t_s = thresholds.cluster_similarity, thresholds.subcluster_similarity
    found = []
    if t_s > t_c * t_c + 0.1:
        seen = f"T_s = {t_s:.3g}, and T_c² = {t_c * t_c:.3f}."
        advice = (
            "In the model, two vectors of one cluster have similarity T_c², so few vectors join a "
            "subcluster at this T_s. Lower T_s, or raise T_c if clusters are that tight."
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
        advice = f"They will start clusters of their own. T_c = {t_c:.3g} is too high: lower it."
        return Finding("warning", "T_c rejects a group's own vectors", seen, advice)
    return Finding("ok", "T_c accepts a group's own vectors", seen, "")


def _passing(share: float, t_c: float, labelled: bool) -> Finding:
    who = "strangers" if labelled else "vectors of different groups"
    seen = (
        f"{share:.1%} of pairs of {who} reach T_c² = {t_c * t_c:.3f}, the threshold between two "
        "single vectors."
    )
    if share <= 0.02:
        return Finding("ok", "Strangers stay below the lowest threshold", seen, "")
    advice = "Strangers will be linked at first; some are severed later, some are not. "
    if labelled:
        advice += "Raise T_c, or use a Space first."
        severity: Severity = "warning" if share > 0.1 else "note"
        return Finding(severity, "Strangers pass the lowest threshold", seen, advice)
    advice += "Some of these pairs may be of one identity: labels would tell."
    return Finding("note", "Strangers may pass the lowest threshold", seen, advice)


def _lobes(fail: float, groups: Groups, t_p: float) -> Finding:
    least = min(groups.lobes)
    seen = (
        f"If halved along the longest direction, {fail:.0%} of {len(groups.lobes)} big groups have "
        f"halves that would not be linked. The lowest similarity is {least:.2f}; T_p = {t_p:.3g}."
    )
    if fail > 0.1:
        advice = "Such a group stays split once both halves are big. Lower T_p."
        return Finding("warning", "T_p is above the similarity of two halves", seen, advice)
    return Finding("ok", "T_p keeps the halves of groups together", seen, "")


def on_growth(growth: Growth) -> Finding:
    """Report the forecast of memory and time."""
    seen = (
        f"{growth.subclusters[-1]:,} subclusters after {growth.vectors[-1]:,} vectors; they grow "
        f"as the number of vectors to the power {growth.exponent:.2f} at the end."
    )
    if growth.forecasts:
        last = growth.forecasts[-1]
        seen += (
            f" At {last.vectors:,} vectors: {last.subclusters:,} ({last.low:,} to {last.high:,}), "
            f"{size(last.bytes_held)} of memory, {size(last.bytes_scanned)} read for each vector."
        )
    if growth.exponent > 0.8 and growth.vectors[-1] >= 200:
        advice = (
            "Memory and time grow almost as fast as the stream. Either T_s is too high, or new "
            "identities keep arriving; then plan for the growth."
        )
        return Finding("warning", "Subclusters grow with the stream", seen, advice)
    advice = "The forecast holds if later vectors are like the first."
    return Finding("ok", "Cost of the stream", seen, advice)


def size(count: float) -> str:
    """Return a number of bytes in a readable unit.

    >>> size(2_732_000)
    '2.7 MB'
    """
    for unit in ("bytes", "kB", "MB"):
        if count < 1000.0:
            return f"{count:.0f} {unit}" if count >= 10.0 else f"{count:.1f} {unit}"
        count /= 1000.0
    return f"{count:,.1f} GB"
