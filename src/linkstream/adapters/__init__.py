"""Adapters: linkstream from the tools people already have. They hold no algorithm.

Each is a module of its own, so that what one needs is not asked of the others: `sklearn`, `river`,
`bertopic`, `diarization`.
"""
