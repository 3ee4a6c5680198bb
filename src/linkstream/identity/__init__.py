"""Identities that last: what ties clusters, cuts them, and says which ID goes on."""
