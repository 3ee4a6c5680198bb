"""Benchmarks of speed and quality: frozen workloads, with other libraries in the same run."""
