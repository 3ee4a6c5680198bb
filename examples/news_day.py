"""A day of news (made-up vectors): `python examples/news_day.py [FOLDER]`.

Five stories begin at different hours and drift; 60 reports belong to no story. Each report gets its
story when it arrives. The flood is first split into two clusters; healing joins them later, and an
event reports it. Writes news_day.png.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from linkstream import Links, plots
from linkstream.engine.events import United

STORIES = (  # what, when it breaks (hours), how long it runs, how many reports
    ("Rail strike", 5.0, 9.0, 70),
    ("Election count", 0.5, 12.0, 110),
    ("River flood", 8.0, 12.0, 100),
    ("Cup final", 17.0, 5.0, 90),
    ("Chip merger", 10.0, 6.0, 50),
)
SINGLE = 60  # reports that belong to no story


def unit(rows: np.ndarray) -> np.ndarray:
    """Return the rows at unit length."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def reports(*, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return vectors in order of arrival, their hours, and the story of each."""
    rng = np.random.default_rng(seed)
    rows, hours = [unit(rng.normal(size=(SINGLE, 96)))], [rng.uniform(0, 24, SINGLE)]
    names = ["none"] * SINGLE
    for name, begins, lasts, n in STORIES:
        first, last = unit(rng.normal(size=(2, 96)))
        age = np.sort(rng.beta(1.2, 2.5, n))[:, None]  # much at first, then less
        two = (age < 0.3) & (name == "River flood")  # told in two ways at first: rain, and dam
        side = 0.55 * two * rng.choice([-1.0, 1.0], n)[:, None]
        centre = unit(first + 0.7 * age * last + side * unit(rng.normal(size=96)))
        rows.append(unit(centre + 0.6 * unit(rng.normal(size=(n, 96)))))
        hours.append(begins + lasts * age.ravel())
        names += [name] * n
    X, when = np.concatenate(rows), np.concatenate(hours)
    order = np.argsort(when)
    return X[order], when[order], [names[i] for i in order]


def main(folder: Path) -> Links:
    """Add the day report by report; print the stories; draw them hour by hour."""
    X, hours, truth = reports()
    links = Links(0.72, 0.66, 0.78, min_size=8, evidence="cluster", heal="settle")
    for x in X:
        links.add(x)
    for event in links.events():
        if isinstance(event, United):
            print(f"{hours[event.vector]:5.1f} h  story {event.gone} is story {event.cluster}")
    labels, told, counts = links.labels(), [], []
    for story in (cluster for cluster in links.clusters() if not cluster.pending):
        mine = np.flatnonzero(labels == story.id)
        told.append(Counter(truth[i] for i in mine).most_common(1)[0][0])
        counts.append(np.histogram(hours[mine], np.arange(25))[0])
        links.name(story.id, told[-1])
        print(f"{hours[mine[0]]:5.1f} h  story {story.id} begins, {told[-1]}: {story.size} reports")
    figure = plots.new_figure(9.0, 4.0)
    axes = figure.add_subplot()
    axes.stackplot(np.arange(24) + 0.5, counts, labels=told, colors=plots.PALETTE)
    axes.set(xlabel="hour of the day", ylabel="reports an hour", xlim=(0, 24))
    axes.legend(loc="upper left", frameon=False, ncols=2)
    plots.save(figure, folder / "news_day.png")
    return links


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
