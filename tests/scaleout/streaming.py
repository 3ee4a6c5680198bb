"""A stream for tests: files in, a query with a checkpoint, files out."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from linkstream.scaleout.spark import cluster_by_key

ROWS = "key STRING, n INT, vector ARRAY<FLOAT>"


class Stream:
    """Files in, a query with a checkpoint, files out."""

    def __init__(self, spark, folder, schema):
        self.spark, self.folder, self.schema, self.files = spark, folder, schema, 0
        (folder / "in").mkdir(parents=True)

    def put(self, table):
        path = self.folder / "in" / f"{self.files:03}.parquet"
        pq.write_table(table, path)
        self.files += 1
        os.utime(path, (self.files, self.files))  # Spark reads files in the order of their times
        return path

    def run(self, *args, **options):
        """Run a query over all new files."""
        source = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        answers = cluster_by_key(source.parquet(str(self.folder / "in")), *args, **options)
        query = (
            answers.writeStream.format("parquet")
            .option("path", str(self.folder / "out"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return self.seen()

    def seen(self):
        return ds.dataset(self.folder / "out", format="parquet").to_table().to_pylist()


def table(keys, numbers, rows):
    values = pa.array(list(rows), pa.list_(pa.float32()))
    return pa.table({"key": list(keys), "n": pa.array(list(numbers), pa.int32()), "vector": values})
