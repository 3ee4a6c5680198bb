"""Beyond one machine: `linkstream.scaleout.spark`, on an engine that people already run.

Nothing is decided here: workers run `Links`, and exchange its snapshots.
"""
