"""Answers of people to decisions and to questions on clusters, as the event log has them.

They are whole numbers, so that every machine reads the same from the same log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

HELD, FOUNDED, PAIR = range(3)  # what an answer is about: a cluster given, a new one, two clusters
KINDS = (0, 0, 1)  # and what is compared with it: the probabilities of decisions, or of pairs
KEPT = 1_000  # the newest answers
UNTOLD = -1
MARGINS, TOLD = 10**9, 10**6  # what stands for 1 in margins and in probabilities
WINDOW, FEWEST = 200, 20  # the newest answers that are compared with what was told; the fewest
DEVIATIONS = 3  # that chance does not explain


@dataclass(frozen=True, slots=True)
class Given:
    """One answer.

    Attributes:
        about: HELD, FOUNDED or PAIR.
        margin: the cluster margin of the decision, or that of the two clusters, in billionths.
        told: the probability that was told when the answer was given, in millionths, or UNTOLD.
        right: whether the decision was right, or whether the two clusters are one identity.
        of: the vector of the decision, or the number of the correction that is the answer.
        smaller: number of vectors of the smaller of two clusters; 0 for a decision.
    """

    about: int
    margin: int
    told: int
    right: bool
    of: int
    smaller: int = 0

    @property
    def number(self) -> int:
        """The number of vectors that gives the age of the answer."""
        return self.smaller if self.about == PAIR else self.of

    def to_plain(self) -> list[int]:
        """Return the numbers of the answer for JSON."""
        return [self.about, self.margin, self.told, int(self.right), self.of, self.smaller]

    @classmethod
    def from_plain(cls, numbers: Any) -> Given:
        """Return the answer of these numbers; raise ValueError if they cannot be those of one."""
        if not _whole(numbers, 6):
            raise ValueError(f"an answer of {numbers!r:.60}")
        about, margin, told, right, of, smaller = numbers
        fits = about in (HELD, FOUNDED, PAIR) and abs(margin) <= 3 * MARGINS and of >= 0 <= smaller
        if not (fits and UNTOLD <= told <= TOLD and right in (0, 1)):
            raise ValueError(f"an answer of {numbers!r:.60}")
        return cls(about, margin, told, bool(right), of, smaller)


def of_decision(member: int, margin: int, told: int, verdict: int) -> Given:
    """Return the answer of the numbers of a `judged` event."""
    return Given(FOUNDED if verdict > 1 else HELD, margin, told, bool(verdict % 2), member)


@dataclass(frozen=True, slots=True)
class Drift:
    """What was told of the newest answers, and what was right, in millionths."""

    answers: int
    told: int
    right: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers so far.

    Attributes:
        given: the newest KEPT, oldest first.
        total: how many were given in all.
        drifts: for decisions and for pairs, how many had been given when the probabilities were
            last found to have drifted; 0 if they never were.
    """

    given: tuple[Given, ...] = ()
    total: int = 0
    drifts: tuple[int, int] = (0, 0)

    def plus(self, answer: Given) -> Answers:
        """Return the answers with one more; it replaces an earlier one on the same decision."""
        pair = answer.about == PAIR
        rest = tuple(
            each for each in self.given if (each.about == PAIR, each.of) != (pair, answer.of)
        )
        total = self.total + 1 - (len(self.given) - len(rest))
        return replace(self, given=(*rest, answer)[-KEPT:], total=total)

    def without(self, correction: int) -> Answers:
        """Return the answers without the one that a correction gave."""
        rest = tuple(each for each in self.given if (each.about, each.of) != (PAIR, correction))
        return replace(self, given=rest, total=self.total - len(self.given) + len(rest))

    def drifted(self, kind: int) -> Answers:
        """Return the answers after a drift of decisions (0) or of pairs (1) was found."""
        drifts = (self.total, self.drifts[1]) if kind == 0 else (self.drifts[0], self.total)
        return replace(self, drifts=drifts)

    def between(self, first: int, end: int) -> tuple[Given, ...]:
        """Return the answers from number `first` to before `end`, as far as they are kept."""
        oldest = self.total - len(self.given)
        return self.given[max(first - oldest, 0) : max(end - oldest, 0)]

    def drift(self, kind: int) -> Drift | None:
        """Return how the newest answers since the last drift contradict what was told.

        None if chance explains the difference, by 3 standard deviations and one answer, or if
        there are fewer than 20 answers. The sums are exact.
        """
        since = self.between(self.drifts[kind], self.total)
        some = [each for each in since if KINDS[each.about] == kind and each.told != UNTOLD]
        some = some[-WINDOW:]
        if len(some) < FEWEST:
            return None
        told = sum(each.told for each in some)
        right = TOLD * sum(each.right for each in some)
        beyond = abs(right - told) - TOLD
        variance = sum(each.told * (TOLD - each.told) for each in some)
        if beyond <= 0 or beyond**2 <= DEVIATIONS**2 * variance:
            return None
        return Drift(len(some), told // len(some), right // len(some))

    def to_plain(self) -> dict[str, Any]:
        """Return the answers for JSON."""
        given = [each.to_plain() for each in self.given]
        return {"given": given, "total": self.total, "drifts": list(self.drifts)}

    @classmethod
    def from_plain(cls, plain: Any) -> Answers:
        """Return the answers; raise ValueError if the values cannot be those of answers."""
        if not isinstance(plain, dict) or set(plain) != {"given", "total", "drifts"}:
            raise ValueError("answers of other parts")
        given, total, drifts = plain["given"], plain["total"], plain["drifts"]
        if not isinstance(given, list) or not _whole([total], 1) or not _whole(drifts, 2):
            raise ValueError("answers of other parts")
        if not len(given) <= min(total, KEPT) or min(drifts) < 0:
            raise ValueError(f"{len(given)} answers of {total}")
        return cls(tuple(map(Given.from_plain, given)), total, (drifts[0], drifts[1]))


NO_ANSWERS = Answers()


def _whole(numbers: Any, n: int) -> bool:
    return isinstance(numbers, list) and len(numbers) == n and all(type(x) is int for x in numbers)
