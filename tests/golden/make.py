"""Writes the stores of this version that all later ones must open: `python tests/golden/make.py`.

Each is a small store, and beside it a JSON file with what it answers: its hash, its labels, and the
IDs of a further batch. Files of a release are never written again. To add those of a new release,
run this with its folder as argument, and commit what it writes.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from linkstream import Space
from linkstream.identity.settling import Healing
from linkstream.paper.thresholds import Thresholds
from linkstream.store import Store

HERE = Path(__file__).parent
THRESHOLDS = Thresholds(0.75, 0.9, 0.9)
DIMENSION = 6
FURTHER = 40  # vectors that come after


def vectors(seed, n):
    """Vectors of a small crowd; every release makes the same ones."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(11).standard_normal((5, DIMENSION))
    rows = centres[rng.integers(5, size=n)] + 0.35 * rng.standard_normal((n, DIMENSION))
    return np.float32(np.round(rows, 3))  # what NumPy rounds in its last place cannot matter


def plain(store):
    for start in range(0, 60, 12):
        store.add_many(vectors(1, 60)[start : start + 12])
    store.add(vectors(2, 1)[0])


def corrected(store):
    """Something of every verb."""
    rows = vectors(3, 60)
    payloads = [None, 5, "text", {"file": "Dünya.jpg", "box": [1, 2.5]}] * 5
    store.add_many(rows[:20], payloads=payloads, idempotency_key="batch-1")
    store.add_many(rows[20:30], weight=[1.0, 0.5, 0.0, 0.25, 1.0] * 2)
    store.add_group(rows[30:33], group="photo", payloads=["a", "b", "c"])
    store.add(rows[33], group="photo")
    store.enrol("Ann", rows[34:36])
    store.enrol("Bob", rows[36:37], locked=False)
    labels = store.labels()
    store.name(int(labels[0]), "Cid", claim=True)
    store.different(0, int(np.flatnonzero(labels != labels[0])[0]))
    alike = np.flatnonzero(labels == labels[0])
    store.same(int(alike[0]), int(alike[-1]))
    store.ignore(int(labels[5]))
    store.remove(7)
    store.add_many(rows[37:45], payloads=list(range(8)))
    for _ in range(3):
        store.undo()
    store.settle(apply=True)
    store.rename(store.named("Bob"), "Eve")
    store.move(int(np.flatnonzero(store.labels() != store.named("Eve"))[2]), store.named("Eve"))
    store.add_many(rows[45:], idempotency_key="batch-2")


def compacted(store):
    corrected(store)
    store.remove(12)
    store.forget(store.resolve(int(store.labels()[3])))
    store.compact()
    store.add_many(vectors(4, 10), payloads=list("abcdefghij"))


def streamed(store):
    """Of one that tracks no vectors."""
    for start in range(0, 60, 12):
        store.add_many(vectors(1, 60)[start : start + 12], payloads=list(range(12)))
    store.name(0, "Ann")


STORES = {
    "plain": (plain, {}),
    "corrected": (corrected, {}),
    "compacted": (compacted, {}),
    "untracked": (streamed, {"track_vectors": False, "max_subclusters": 8}),
    "centred": (
        plain,
        {
            "space": Space(mean=[0.1, -0.2, 0.0, 0.05, 0.1, 0.0], model="encoder-7"),
            "evidence": "cluster",
            "heal": Healing("settle", steadiness=None),
            "min_size": 2,
        },
    ),
    "healed": (corrected, {"evidence": "cluster", "heal": "settle"}),
}


def expected(store):
    """What a store answers now, and to what comes next; it is changed by that."""
    tracked = store.info()["track_vectors"]
    live = np.flatnonzero(store.labels() >= 0).tolist() if tracked else range(store.n_vectors)
    return {
        "state_hash": store.state_hash(),
        "labels": store.labels().tolist() if tracked else None,
        "clusters": [[view.id, view.size, view.name] for view in store.clusters()],
        "events": len(store.events()),
        "payloads": store.payloads(list(live)),
        "vectors": store.vectors(live).astype(float).round(3).tolist() if tracked else None,
        "next_ids": store.add_many(vectors(9, FURTHER)).tolist(),
        "next_hash": store.state_hash(),
    }


def main(folder):
    folder.mkdir(exist_ok=True)
    for name, (fill, options) in STORES.items():
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / f"{name}.links"
            with Store.open(path, thresholds=THRESHOLDS, threads=1, **options) as store:
                fill(store)
            # Mostly empty pages; without a time, so that the same store is the same file.
            (folder / f"{name}.links.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            with Store.open(path, threads=1) as store:
                text = json.dumps(expected(store), indent=None, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "0.1")
