"""One session for all tests of the directory that need one: a JVM takes seconds to begin."""

from __future__ import annotations

import pytest

from scaleout.driver import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    # A session of a time zone far from UTC: times have to come out as they went in.
    made = session(
        "local[2]",
        **{
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            # Otherwise streams whose state expires run empty batches for ever.
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        },
    )
    yield made
    made.stop()
