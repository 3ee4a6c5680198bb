"""The verbs of `Links` without memory, on a core built with the address sanitizer.

The engine's headers alone run under it with every other test (test_engine.py); this needs a build
of the whole core and takes minutes.
"""

from __future__ import annotations

import pytest

from agreement.test_sanitizers import ADDRESS, run_sanitized


@pytest.mark.long
def test_verbs_that_run_out_of_memory_hold_under_the_address_sanitizer():
    run_sanitized(ADDRESS, "tests/memory/test_links.py", "-m", "not long", "-k", "native")
