"""A driver that tests start, kill and start again: `python driver.py FOLDER MASTER`.

Reads FOLDER/in file by file, clusters by key, writes FOLDER/out under the checkpoint
FOLDER/checkpoint, and when all is read writes what a reader of the sink sees to FOLDER/seen.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from linkstream import Thresholds

THRESHOLDS = Thresholds(0.6, 0.5, 0.8)


def session(master: str, **settings: str):
    """Return a quiet session on this machine."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from linkstream.scaleout.environment import PROVIDER, ROCKSDB

    brief = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # JVMs that live for seconds
    chosen = {
        "spark.driver.extraJavaOptions": brief,
        "spark.executor.extraJavaOptions": brief,
        PROVIDER: ROCKSDB,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **settings,
    }
    builder = SparkSession.builder.master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def main(folder: Path, master: str) -> None:
    from linkstream.scaleout.spark import cluster_by_key

    spark = session(master)
    stream = (
        spark.readStream.schema("key LONG, sequence LONG, vector ARRAY<FLOAT>")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "in"))
    )
    ids = cluster_by_key(stream, "key", "vector", order="sequence", thresholds=THRESHOLDS)
    query = (
        ids.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seen = spark.read.parquet(str(folder / "out"))
    seen.coalesce(1).write.mode("overwrite").parquet(str(folder / "seen"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
