"""The mathematics of the paper as pure functions, each naming its equation."""
