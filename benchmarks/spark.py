"""Measure Spark: `python -m benchmarks.spark FOLDER [--only streams|corpus|units]`.

*Streams*: 200 keys of 256-d vectors, read from files batch by batch and written to files, in turn:
passed through unchanged; sent to a worker by key and back, with an empty state; clustered. Rates
are those of the batches after the first three.

*Corpus*: 1,000,000 × 256-d of 20,000 identities, each with three looks, clustered by
`cluster_corpus` with one worker and with two, in turn, each in a session of its own; and by one
`Links` without Spark. One worker is measured twice: with all cores of the machine, where Spark's
own threads run beside it, and with one core for everything, as a worker has on a cluster.
Accuracy is that of the current IDs.

*Units*: the cost of sending a row of that corpus from file to worker, and a clusterer from worker
to worker, on one core; benchmarks/billion.py uses them.

Files are written to the given folder (3 GB). The command prints JSON lines, then a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import machine
from benchmarks.workloads import around, random_units
from linkstream import Links, Thresholds
from linkstream.metrics import accuracy

DIMENSION = 256
KEYS, PEOPLE, BATCHES, WARM = 200, 5, 12, 3
SIZES = (10_000, 50_000)  # rows of a batch
IDENTITIES, LOOKS, VECTORS, FILES, SHARDS = 20_000, 3, 1_000_000, 16, 8
THRESHOLDS = Thresholds(0.65, 0.55, 0.75)
TRIES = 3

Vectors = npt.NDArray[np.float32]


def say(what: str, **figures: object) -> dict[str, Any]:
    """Print one line of JSON, and return it."""
    line = {"what": what, **figures}
    print(json.dumps(line), flush=True)
    return line


def session(cores: int) -> Any:
    """Return a local session with this number of workers."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from linkstream.scaleout.environment import PROVIDER, ROCKSDB

    builder = SparkSession.builder.master(f"local[{cores}]")
    settings = {
        PROVIDER: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.memory": "6g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def write(path: Path, columns: dict[str, Any], vectors: Vectors) -> None:
    """Write a file of rows with their vectors."""
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    rows = pa.table({**columns, "vector": flat.cast(pa.list_(pa.float32()))})
    pq.write_table(rows, path, compression="NONE")


# Streams


def batches(size: int) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Vectors]]:
    """Yield keys, numbers and vectors of each batch."""
    rng = np.random.default_rng(301)
    people = random_units(KEYS * PEOPLE, DIMENSION, rng).reshape(KEYS, PEOPLE, DIMENSION)
    for batch in range(BATCHES):
        keys = np.arange(size, dtype=np.int64) % KEYS
        numbers = np.arange(size, dtype=np.int64) // KEYS + batch * (size // KEYS)
        of = people[keys, rng.integers(0, PEOPLE, size)]
        yield keys, numbers, around(of, 0.85, rng).astype(np.float32)


def by_key(stream: Any) -> Any:
    """Send each row to the worker of its key and back, with an empty state."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Nothing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("nothing", "bytes BINARY")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802
            self.state.get()
            frame = pd.concat(list(rows))
            self.state.update((b"",))
            yield frame[["key", "sequence"]]

        def close(self) -> None:
            pass

    schema = "key LONG, sequence LONG"
    return stream.groupBy("key").transformWithStateInPandas(Nothing(), schema, "Append", "None")


def clustered(stream: Any) -> Any:
    """Return each row with its ID."""
    from linkstream.scaleout.spark import cluster_by_key

    return cluster_by_key(stream, "key", "vector", order="sequence", thresholds=THRESHOLDS)


MODES = {"passed through": lambda stream: stream, "by key": by_key, "clustered": clustered}


def rate(spark: Any, folder: Path, mode: str) -> float:
    """Return rows per second of the batches after the first three."""
    for name in ("out", "checkpoint"):
        shutil.rmtree(folder / name, ignore_errors=True)
    stream = spark.readStream.schema("key LONG, sequence LONG, vector ARRAY<FLOAT>")
    stream = stream.option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = (
        MODES[mode](stream)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    steady = [each for each in query.recentProgress if each["numInputRows"]][WARM:]
    seconds = sum(each["batchDuration"] for each in steady) / 1000
    return float(sum(each["numInputRows"] for each in steady) / seconds)


def streams(folder: Path) -> list[dict[str, Any]]:
    """Measure the three modes in turn, for batches of several sizes."""
    spark, lines = session(2), []
    for size in SIZES:
        place = folder / "stream"
        shutil.rmtree(place, ignore_errors=True)
        (place / "in").mkdir(parents=True)
        for number, (keys, numbers, vectors) in enumerate(batches(size)):
            write(
                place / "in" / f"{number:03}.parquet", {"key": keys, "sequence": numbers}, vectors
            )
        tries: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in track(range(TRIES), f"batches of {size}", console=Console(stderr=True)):
            for mode, seen in tries.items():
                seen.append(rate(spark, place, mode))
        ratios = [c / p for c, p in zip(tries["clustered"], tries["passed through"], strict=True)]
        best = {mode: round(max(seen)) for mode, seen in tries.items()}
        share = best["clustered"] / best["passed through"]
        spread = [round(min(ratios), 2), round(max(ratios), 2)]
        lines.append(say("streams", batch=size, **best, ratio=round(share, 2), pairs=spread))
        shutil.rmtree(place)
    spark.stop()
    return lines


# Corpus


def looks() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the centres of the looks, and the look of each vector."""
    rng = np.random.default_rng(302)
    identities = np.repeat(random_units(IDENTITIES, DIMENSION, rng), LOOKS, axis=0)
    return around(identities, 0.85, rng), rng.integers(0, IDENTITIES * LOOKS, VECTORS)


def part(number: int) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return IDs and vectors of one file."""
    centres, chosen = looks()
    ids = np.arange(number * VECTORS // FILES, (number + 1) * VECTORS // FILES)
    rng = np.random.default_rng(303 + number)
    return ids, around(centres[chosen[ids]], 0.8, rng).astype(np.float32)


def truth() -> npt.NDArray[np.int64]:
    """Return the identity of each vector."""
    return looks()[1] // LOOKS


def on_spark(folder: Path, cores: int, *, pinned: bool) -> None:
    """Measure one run with this number of workers: seconds from frame to table, and accuracy."""
    from linkstream.scaleout.spark import cluster_corpus

    if pinned:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = session(cores)
    frame = spark.read.parquet(str(folder / "corpus"))
    few = frame.where(f"id < {500 * cores}").repartition(cores)
    cluster_corpus(
        few, "id", "vector", thresholds=THRESHOLDS, shards=cores
    ).ids.count()  # starts all workers
    start = time.perf_counter()
    made = cluster_corpus(frame, "id", "vector", thresholds=THRESHOLDS, shards=SHARDS)
    made.ids.write.mode("overwrite").parquet(str(folder / "table"))
    seconds = time.perf_counter() - start
    table = spark.read.parquet(str(folder / "table")).toPandas().sort_values("id")
    assert np.array_equal(table["id"].to_numpy(), np.arange(VECTORS)), "each vector once"
    right = accuracy(truth(), table["cluster"].to_numpy())
    figures = {"seconds": round(seconds, 1), "accuracy": round(right, 4)}
    say("spark", workers=cores, pinned=pinned, **figures)


def alone(threads: int) -> None:
    """Measure the same vectors with one Links, without the time to read them."""
    links, seconds = Links.from_thresholds(THRESHOLDS, threads=threads, keep_vectors=False), 0.0
    for number in range(FILES):
        vectors = part(number)[1]
        start = time.perf_counter()
        links.add_many(vectors)
        seconds += time.perf_counter() - start
    right = accuracy(truth(), links.labels())
    say("one machine", threads=threads, seconds=round(seconds, 1), accuracy=round(right, 4))


def run(folder: Path, *words: str) -> dict[str, Any]:
    """Run the command in a process of its own; return its last line."""
    command = [sys.executable, "-m", "benchmarks.spark", str(folder), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    line = done.stdout.strip().splitlines()[-1]
    print(line, flush=True)
    return dict(json.loads(line))


def written(folder: Path) -> None:
    """Write the missing files of the corpus."""
    place = folder / "corpus"
    place.mkdir(parents=True, exist_ok=True)
    for number in track(range(FILES), "writing", console=Console(stderr=True)):
        path = place / f"{number:03}.parquet"
        if not path.exists():
            ids, vectors = part(number)
            write(path, {"id": ids}, vectors)


def corpus(folder: Path) -> list[dict[str, Any]]:
    """Measure one worker and two in turn, then without Spark."""
    written(folder)
    ways = {"one, one core": "1 --pinned", "one, all cores": "1", "two": "2"}
    seen: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(TRIES):
        for way, words in ways.items():
            seen[way].append(run(folder, "--workers", *words.split())["seconds"])
    lines = []
    for way in list(ways)[:2]:
        ratios = [round(one / two, 2) for one, two in zip(seen[way], seen["two"], strict=True)]
        best = {way: min(seen[way]), "two": min(seen["two"])}
        ratio = round(best[way] / best["two"], 2)
        lines.append(say("corpus", **best, ratio=ratio, pairs=sorted(ratios)))
    return [*lines, *(run(folder, "--threads", str(threads)) for threads in (1, 2))]


# Units


def units(folder: Path) -> None:
    """Measure, on one core, the cost of sending a row and the rate of sending snapshots."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    spark = session(1)
    rows = spark.read.parquet(str(folder / "corpus"))
    rows = rows.selectExpr(f"pmod(xxhash64(id), {SHARDS}) AS shard", "*")
    rows = rows.repartition(SHARDS, "shard").sortWithinPartitions("id")
    row = min(_seconds(rows.mapInArrow(_counted, "n LONG")) for _ in range(TRIES)) / VECTORS
    size, parts = _parts(spark, folder)
    rounds = [parts := _passed_on(parts) for _ in range(3)]
    # The first includes the constant cost; each further one adds a round.
    took = [min(_seconds(several) for _ in range(TRIES)) for several in rounds]
    speed = SHARDS * size / ((took[2] - took[0]) / 2)
    say("units", row_microseconds=round(1e6 * row, 1), snapshot_mb_a_second=round(speed / 1e6))


def unit_costs(folder: Path) -> list[dict[str, Any]]:
    """Measure the unit costs in a process that has one core."""
    written(folder)
    return [run(folder, "--units")]


def _seconds(frame: Any) -> float:
    start = time.perf_counter()
    frame.count()
    return time.perf_counter() - start


def _counted(batches: Iterator[Any]) -> Iterator[Any]:
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def _parts(spark: Any, folder: Path) -> tuple[int, Any]:
    """Return the size of a shard's clusterer, and a frame of eight of them."""
    from linkstream.scaleout.corpus import PIECE_SCHEMA, ShardGroup

    links = Links.from_thresholds(THRESHOLDS, threads=1, keep_vectors=False)
    links.add_many(np.concatenate([part(number)[1] for number in range(FILES // SHARDS)]))
    path = str(folder / "shard.links")
    links.without_vectors().save(path)

    def made(batches: Iterator[Any]) -> Iterator[Any]:
        for number in (number for batch in batches for number in batch["id"].to_pylist()):
            yield from ShardGroup.of_shard(number, Links.load(path)).pieces()

    parts = spark.range(SHARDS, numPartitions=SHARDS).mapInArrow(made, PIECE_SCHEMA).persist()
    parts.count()
    return os.path.getsize(path), parts


def _passed_on(parts: Any) -> Any:
    """Send each part to another worker, which unpacks and packs it again."""
    from linkstream.scaleout.corpus import PIECE_SCHEMA, read_groups

    def passed(batches: Iterator[Any]) -> Iterator[Any]:
        for each in read_groups(batches):
            yield from each.pieces()

    return parts.repartition(SHARDS // 2, "part").mapInArrow(passed, PIECE_SCHEMA)


MEASURED = {"streams": streams, "corpus": corpus, "units": unit_costs}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=list(MEASURED))
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--pinned", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--units", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.units:
        units(asked.folder)
        return 0
    if asked.workers:
        on_spark(asked.folder, asked.workers, pinned=asked.pinned)
        return 0
    if asked.threads:
        alone(asked.threads)
        return 0
    asked.folder.mkdir(parents=True, exist_ok=True)
    say("machine", **machine.describe(""))
    wanted = [asked.only] if asked.only else list(MEASURED)
    lines = [line for name in wanted for line in MEASURED[name](asked.folder)]
    table = Table("what", "figures")
    for line in lines:
        table.add_row(
            line.pop("what"), ", ".join(f"{name} {value}" for name, value in line.items())
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
