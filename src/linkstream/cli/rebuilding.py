"""The command `rebuild`: cluster all vectors of a store again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from linkstream.cli import screen, stores
from linkstream.cli.options import StorePath, VectorFileOptions
from linkstream.cli.outcome import usage_error

if TYPE_CHECKING:
    import numpy as np

    from linkstream.identity.rebuild_report import RebuildReport
    from linkstream.space import Space
    from linkstream.store import Store

NO_MEAN = "none"  # as --space: a space without a mean vector


def rebuild(
    store: StorePath,
    apply: Annotated[bool, "Move the vectors."] = False,
    thresholds: Annotated[
        tuple[float, float, float] | None,
        Option(help="T_c, T_s and T_p to cluster and to continue with.", show_default=False),
    ] = None,
    thresholds_from_clusters: Annotated[
        bool,
        Option(
            "--thresholds-from-clusters",
            help="Find the thresholds that fit the present clusters best.",
        ),
    ] = False,
    space: Annotated[
        str | None,
        "Centre the vectors anew: a mean vector as .npy, as tune --mean writes, or none.",
    ] = None,
    vectors: Annotated[
        str | None, "The same items by another encoder: row i is vector number i."
    ] = None,
    model: Annotated[str | None, "The name of the encoder; with --space or --vectors."] = None,
    *,
    options: VectorFileOptions,
) -> None:
    """Show what clustering all vectors again would change; --apply does it.

    The same set of vectors, corrections and groups gives the same clusters, whatever their order
    was. IDs and names stay with most of their vectors. Where two names compete for one cluster,
    history has a part, and a second rebuild may move more. With --thresholds, --space or --vectors,
    the store continues with these from then on. `linkstream undo` takes it back.

    Example: linkstream rebuild people.links
    """
    from linkstream.cli.outputs import share_bar
    from linkstream.identity.cluster_labels import FROM_CLUSTERS
    from linkstream.paper.thresholds import Thresholds

    wanted = None if thresholds is None else Thresholds(*thresholds)
    if wanted is not None and thresholds_from_clusters:
        raise usage_error(
            "--thresholds with --thresholds-from-clusters", "one of the two", "Leave one out."
        )
    rows = None if vectors is None else options.read(vectors)
    opening = stores.writing if apply else stores.reading
    with opening(store) as opened:
        entered = _space(opened, space, model, anew=rows is not None)
        given = {
            "apply": apply,
            "thresholds": FROM_CLUSTERS if thresholds_from_clusters else wanted,
            "space": entered,
            "vectors": rows,
        }
        with share_bar("rebuilding") as bar:
            found = stores.perform(opened, "rebuild", own={"progress": bar}, **given)
    _show(found)


def _show(found: RebuildReport) -> None:
    if screen.wrote_json([found.to_dict()]):
        return
    sys.stdout.write(f"{found}\n")
    if not found.applied and found.flows:
        sys.stdout.write("\nTo do it, add --apply.\n")


def _space(opened: Store, words: str | None, model: str | None, *, anew: bool) -> Space | None:
    """Return the space to change to; None if the command names none."""
    from linkstream.space import Space

    if words is None and model is not None and not anew:
        raise usage_error(
            f"--model {model} alone",
            "--vectors, or --space",
            "Give the vectors of this encoder, too: --vectors FILE.",
        )
    if words is None:
        return None if model is None else Space(model=model)
    known = model if anew or model is not None else opened.space.model
    return Space(None if words == NO_MEAN else mean_of(Path(words)), known)


def mean_of(path: Path) -> np.ndarray[Any, Any]:
    """Return the mean vector in a file."""
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        found = None
    if not isinstance(found, np.ndarray):
        raise usage_error(
            f"--space {path}, which is no .npy",
            "a mean vector in .npy, or none",
            "linkstream tune --mean writes one.",
        )
    return found
