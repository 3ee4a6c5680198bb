"""Run the command line as `python -m linkstream.cli`."""

from linkstream.cli import main

main()
