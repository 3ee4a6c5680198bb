"""Run the benchmarks of `make bench`."""

import sys

from benchmarks.report import main

sys.exit(main())
