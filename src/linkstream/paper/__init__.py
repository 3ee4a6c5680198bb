"""The paper: the algorithm as one class (algorithm.py), and its equations as pure functions."""
