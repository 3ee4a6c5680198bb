"""Run linkstream on several machines: `linkstream.scaleout.spark`. Workers run `Links`."""
