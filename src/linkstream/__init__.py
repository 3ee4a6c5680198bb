"""linkstream."""
