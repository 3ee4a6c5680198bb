"""One Spark session for all tests of the folder: a JVM takes seconds to start."""

from __future__ import annotations

import pytest

from scaleout.driver import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    # A time zone far from UTC: times must be returned unchanged.
    made = session(
        "local[2]",
        **{
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            # Otherwise streams with expiry run empty batches without end.
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        },
    )
    yield made
    made.stop()
