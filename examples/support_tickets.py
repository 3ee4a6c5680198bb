"""Support tickets (made-up vectors): `python examples/support_tickets.py [FOLDER]`.

Two weeks of tickets go into a store that survives restarts, with one call a day. Each call has its
own key, so that a day that is sent twice counts once. Topics keep their IDs. On the ninth day a new
topic appears. Two topics that mean the same to the team are joined by hand, once. Writes
tickets.links (new each time) and support_tickets.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from linkstream import Thresholds, plots
from linkstream.store import Store

TOPICS = ("refund", "money back", "password", "late parcel", "invoice", "app crash")
DAILY = np.array([6, 5, 9, 7, 4, 0])  # tickets a day
DAYS, BREAKS = 14, 9
THRESHOLDS = Thresholds(0.72, 0.7, 0.8)


def unit(rows: np.ndarray) -> np.ndarray:
    """Return the rows at unit length."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def days(*, seed: int = 0) -> list[tuple[np.ndarray, list[str]]]:
    """Return vectors and subjects of each day; refund and money back are somewhat similar."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(len(TOPICS), 96)))
    centres[1] = unit(0.5 * centres[0] + 0.87 * centres[1])
    told = []
    for day in range(DAYS):
        n = rng.poisson(DAILY + (np.array(TOPICS) == "app crash") * 14 * (day >= BREAKS))
        who = rng.permutation(np.repeat(np.arange(len(TOPICS)), n))
        X = unit(centres[who] + 0.6 * unit(rng.normal(size=(len(who), 96))))
        told.append((X.astype(np.float32), [TOPICS[i] for i in who]))
    return told


def main(folder: Path) -> list[tuple[int, str]]:
    """Add the days; print new topics; join two topics; draw the tickets of each day."""
    path, news, when = folder / "tickets.links", [], []
    path.unlink(missing_ok=True)
    for day, (X, subjects) in enumerate(days()):
        with Store.open(path, thresholds=THRESHOLDS) as store:  # opened again each day
            known = {topic.id for topic in store.clusters()}
            for _ in range(2):  # the second call adds nothing
                ids = store.add_many(X, payloads=subjects, idempotency_key=f"day {day}")
            when += [day] * len(ids)
            for new in sorted(set(ids.tolist()) - known):
                news.append((day, subjects[ids.tolist().index(new)]))
                print(f"day {day}: topic {new} is new; its first ticket: {news[-1][1]}")
            if day == 3:  # these two mean the same to the team
                one, other = (ids[subjects.index(name)] for name in TOPICS[:2])
                store.same(one, other, of="clusters")
    with Store.open(path) as store:
        labels, topics = store.labels(), store.clusters()
        all_subjects = np.array(store.payloads(range(len(labels))))
    names = [" / ".join(np.unique(all_subjects[labels == topic.id])) for topic in topics]
    counts = [np.bincount(np.array(when)[labels == topic.id], minlength=DAYS) for topic in topics]
    figure = plots.new_figure(9.0, 4.0)
    axes = figure.add_subplot()
    for count, name, colour, below in zip(
        counts, names, plots.PALETTE, np.cumsum(counts, axis=0) - counts, strict=False
    ):
        axes.bar(np.arange(DAYS), count, bottom=below, label=name, color=colour)
    axes.set(xlabel="day", ylabel="tickets", xticks=np.arange(DAYS))
    axes.legend(loc="upper left", frameon=False)
    plots.save(figure, folder / "support_tickets.png")
    return news


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
