"""Use linkstream from other libraries: `sklearn`, `river`, `bertopic`, `diarization`.

Each adapter is a module of its own and needs only the packages of its library.
"""
