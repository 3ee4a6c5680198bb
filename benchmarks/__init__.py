"""Speed and quality, measured: frozen workloads, peers in the same run, ratios with a spread."""
