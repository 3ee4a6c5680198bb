"""`linkstream demo`: cluster a real stream of voices as if it were live."""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from typer import Option

from linkstream import metrics, plots
from linkstream.cli import outcome, screen
from linkstream.clusterer import Links
from linkstream.data import VoiceStream, voice_halves
from linkstream.engine.contract import Decision
from linkstream.paper.thresholds import Thresholds

# Found by examples/tune_demo.py on the first five speakers alone: there, instant and current
# accuracy are both 0.9705.
THRESHOLDS = Thresholds(
    cluster_similarity=0.766, subcluster_similarity=0.645, pair_similarity_max=0.738
)
WINDOW_STEP = 0.4  # seconds from one window of speech to the next
PACE_ON_A_TERMINAL = 0.008
SOURCE = "Voices: LibriSpeech (Panayotov et al., 2015), CC BY 4.0; embeddings: GE2E, Resemblyzer."
SPLIT = (
    "The ten speakers of the stream are split in two groups. Thresholds were tuned on five of them "
    "(random search, examples/tune_demo.py). The five shown here were held out."
)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a stream: labels at arrival, labels now, and the accuracy of both."""

    links: Links
    instant_ids: list[int]
    instant: float
    current: float

    @classmethod
    def of(cls, stream: VoiceStream, links: Links, ids: list[int]) -> Result:
        """Return the result of a stream: these IDs at arrival, this clusterer afterwards."""
        current = metrics.accuracy(stream.y, links.labels())
        return cls(links, ids, metrics.accuracy(stream.y, ids), current)


def demo(
    output: Annotated[Path, "The picture: .png, .svg or .pdf."] = Path("linkstream-demo.png"),
    pace: Annotated[
        float | None, Option(min=0.0, help="Seconds between two windows; 0.4 is live, 0 no wait.")
    ] = None,
) -> None:
    """Cluster a real stream of voices as if live, and draw the result.

    Five speakers take turns; each window of speech gets an ID when it arrives. At the end: the
    accuracy, the clusters, and a picture.

    Example: linkstream demo --output voices.png
    """
    screen.check_target(output, screen.PICTURES)
    to_json = screen.speaks_json()
    console = screen.console(stderr=to_json)
    if pace is None:
        pace = PACE_ON_A_TERMINAL if console.is_terminal else 0.0
    tuning, held_out = voice_halves()
    links = Links.from_thresholds(THRESHOLDS)
    tuned = Result.of(tuning, links, links.add_many(tuning.X).tolist())
    shown = _as_if_live(held_out, console, to_json=to_json, pace=pace)
    _draw(held_out, shown, output)
    if to_json:
        screen.write_json({"summary": _summary(held_out, tuned, shown, output)})
    _show(console, held_out, tuned, shown, output)


def _letters(stream: VoiceStream) -> list[str]:
    """Return speakers as letters, in order of appearance."""
    order = {speaker: chr(ord("A") + n) for n, speaker in enumerate(dict.fromkeys(stream.y))}
    return [order[speaker] for speaker in stream.y]


def _as_if_live(stream: VoiceStream, console: Console, *, to_json: bool, pace: float) -> Result:
    links = Links.from_thresholds(THRESHOLDS)
    ids = []
    view = _View(len(stream.X))
    with _live(view, console):
        for vector, speaker in zip(stream.X, _letters(stream), strict=True):
            decision = links.add(vector)
            ids.append(decision.cluster)
            view.show(decision, speaker, links.n_clusters)
            if to_json:
                plain = decision.to_dict()
                screen.write_json({"vector": plain.pop("sequence"), "speaker": speaker, **plain})
            if pace:
                time.sleep(pace)
    return Result.of(stream, links, ids)


class _View:
    """A progress bar and the latest decisions."""

    def __init__(self, n_vectors: int) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[clusters]} IDs"),
        )
        self._task = self._progress.add_task("voices", total=n_vectors, clusters=0)
        self._latest: deque[tuple[str, ...]] = deque(maxlen=8)

    def show(self, decision: Decision, speaker: str, n_clusters: int) -> None:
        seconds = f"{decision.sequence * WINDOW_STEP:.1f} s"
        margin = "—" if decision.margin is None else f"{decision.margin:+.3f}"
        row = (seconds, speaker, str(decision.cluster), decision.kind, margin)
        self._latest.append(row)
        self._progress.update(self._task, advance=1, clusters=n_clusters)

    def __rich__(self) -> Group:
        rows = screen.table("", "heard at", "speaker", "ID given", "how", "margin")
        for row in self._latest:
            rows.add_row(*row, style="bold green" if row[3] == "new" else None)
        return Group(self._progress, rows)


def _live(view: _View, console: Console) -> AbstractContextManager[Any]:
    if not console.is_terminal:
        return nullcontext()
    return Live(view, console=console, refresh_per_second=15, transient=True)


def _draw(stream: VoiceStream, result: Result, path: Path) -> None:
    letters = [f"speaker {letter}" for letter in _letters(stream)]
    figure = plots.demo_picture(
        letters,
        result.instant_ids,
        result.links,
        times=WINDOW_STEP * np.arange(len(letters)),
        vectors=stream.X,
        matched=metrics.match(letters, result.instant_ids),
        title="Five voices: each window of speech gets an ID at once, "
        f"{result.instant:.0%} of them right",
        subtitle=SOURCE + " Thresholds tuned on five other speakers.",
    )
    plots.save(figure, path)
    outcome.note_change(f"{path} is written")


def _summary(stream: VoiceStream, tuned: Result, shown: Result, picture: Path) -> dict[str, Any]:
    return {
        "vectors": len(stream.X),
        "engine": shown.links.engine,
        "thresholds": asdict(THRESHOLDS),
        "split": SPLIT,
        "held_out_speakers": {"instant": shown.instant, "current": shown.current},
        "tuned_on_speakers": {"instant": tuned.instant, "current": tuned.current},
        "clusters": _clusters(stream, shown),
        "state_hash": shown.links.state_hash(),
        "picture": str(picture),
        "source": SOURCE,
    }


def _clusters(stream: VoiceStream, result: Result) -> list[dict[str, Any]]:
    letters, labels = np.array(_letters(stream)), result.links.labels()
    clusters = []
    for cluster in result.links.clusters():
        speakers, counts = np.unique(letters[labels == cluster.id], return_counts=True)
        clusters.append(
            {
                "id": cluster.id,
                "size": cluster.size,
                "subclusters": len(cluster.subclusters),
                "speaker": str(speakers[np.argmax(counts)]),
                "share": float(counts.max() / cluster.size),
                "first_heard_s": round(cluster.first_seen * WINDOW_STEP, 1),
            }
        )
    return clusters


def _show(
    console: Console, stream: VoiceStream, tuned: Result, shown: Result, picture: Path
) -> None:
    seconds = len(stream.X) * WINDOW_STEP
    console.print(f"{len(stream.X)} windows of speech ({seconds:.0f} s), one by one. {SPLIT}\n")
    rows = screen.table("Accuracy", "speakers", "instant", "current")
    rows.add_row("five held out", f"{shown.instant:.3f}", f"{shown.current:.3f}", style="bold")
    rows.add_row("five tuned on", f"{tuned.instant:.3f}", f"{tuned.current:.3f}")
    console.print(rows)
    console.print("instant: the ID given at arrival; current: the ID the vector has now.\n")
    names = ("ID", "vectors", "subclusters", "mostly speaker", "share", "first heard")
    rows = screen.table("Clusters", *names)
    for c in _clusters(stream, shown):
        share, heard = f"{c['share']:.0%}", f"{c['first_heard_s']:.1f} s"
        numbers = (c["id"], c["size"], c["subclusters"], c["speaker"])
        rows.add_row(*map(str, numbers), share, heard)
    console.print(rows)
    console.print(f"\nPicture: {picture}\n{SOURCE}")
    sys.stdout.flush()
