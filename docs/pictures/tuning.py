"""Draw the pictures of docs/tuning.md in under a minute: `python docs/pictures/tuning.py`."""

from pathlib import Path

from linkstream.data import voice_halves
from linkstream.tuning import diagnose, tune

IMAGES = Path(__file__).parents[1] / "img"


def main() -> None:
    """Tune on five readers, and diagnose their vectors."""
    readers, _ = voice_halves()
    tuned = tune(readers.X, readers.y, trials=200)
    tuned.picture(IMAGES / "trials.png")
    diagnose(readers.X, tuned.thresholds, y=readers.y).picture(IMAGES / "diagnosis.png")


if __name__ == "__main__":
    main()
