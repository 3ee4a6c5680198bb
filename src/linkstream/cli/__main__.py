"""`python -m linkstream.cli`: the command line, where no script is installed."""

from linkstream.cli import main

main()
