"""Everything `make bench` runs."""

from benchmarks import bench_reference

bench_reference.main()
