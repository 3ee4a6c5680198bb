"""Faces of a photo library (made-up vectors): `python examples/photo_library.py [FOLDER]`.

Six people appear in 300 photos, with one to four faces in each. Mia and Noa are sisters who look
alike and are often in one photo. `add_group` states that faces in one photo are different people.
People are named once, after the first 100 photos. Writes photo_library.png.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from linkstream import Links, plots
from linkstream.metrics import accuracy

PEOPLE = ("Mia", "Noa", "Ann", "Ben", "Cleo", "Dev")
OFTEN = np.array([5, 5, 3, 3, 2, 2]) / 20  # the share of each person


def unit(rows: np.ndarray) -> np.ndarray:
    """Return the rows at unit length."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def photos(n: int = 300, *, seed: int = 1) -> list[tuple[list[str], np.ndarray]]:
    """Return the people and face vectors of each photo; each person has three looks."""
    rng = np.random.default_rng(seed)
    people = unit(rng.normal(size=(6, 128)))
    people[1] = unit(0.85 * people[0] + 0.53 * people[1])  # Noa looks like Mia
    looks = unit(people[:, None] + 0.35 * unit(rng.normal(size=(6, 3, 128))))
    library = []
    for _ in range(n):
        who = rng.choice(6, rng.integers(1, 5), replace=False, p=OFTEN)
        seen = looks[who, rng.integers(3, size=len(who))]
        faces = unit(seen + 0.55 * unit(rng.normal(size=seen.shape)))
        library.append(([PEOPLE[i] for i in who], faces))
    return library


def draw(axes: Any, links: Links, truth: list[str], title: str) -> None:
    """Draw a bar for each cluster, coloured by person."""
    clusters, who, below = links.clusters(), np.array(truth), np.zeros(links.n_clusters)
    names = [cluster.name or f"cluster {cluster.id}" for cluster in clusters]
    for person, colour in zip(PEOPLE, plots.PALETTE, strict=False):
        faces = [sum(who[links.labels() == cluster.id] == person) for cluster in clusters]
        axes.barh(names, faces, left=below, color=colour, label=person)
        below += faces
    axes.set(title=title, xlabel="faces", xlim=(0, 360))


def main(folder: Path) -> tuple[Links, float, float]:
    """Cluster with and without groups, name people, draw; return both accuracies."""
    library = photos()
    truth = [name for who, _ in library for name in who]
    alone, together = Links(0.66, 0.78, 0.72), Links(0.66, 0.78, 0.72)
    for n, (_, faces) in enumerate(library):
        alone.add_many(faces)
        together.add_group(faces)
        if n == 99:  # a person names the largest clusters
            biggest = sorted(together.clusters(), key=lambda cluster: -cluster.size)
            for cluster in biggest[: len(PEOPLE)]:
                shown = np.flatnonzero(together.labels() == cluster.id)
                together.name(cluster.id, Counter(truth[i] for i in shown).most_common(1)[0][0])
    scores = [accuracy(truth, links.labels()) for links in (alone, together)]
    print(f"accuracy: {scores[0]:.3f} face by face, {scores[1]:.3f} photo by photo")
    figure = plots.new_figure(9.0, 3.6)
    draw(figure.add_subplot(1, 2, 1), alone, truth, "face by face")
    draw(figure.add_subplot(1, 2, 2), together, truth, "photo by photo, and named")
    figure.axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    plots.save(figure, folder / "photo_library.png")
    return together, *scores


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
