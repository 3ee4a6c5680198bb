"""Options that several commands share, and the wrapper that turns a function into a command."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option
from typer.core import TyperCommand

from linkstream.cli import outcome
from linkstream.cli.outcome import usage_error

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkstream.clusterer.tuned import Tuned
    from linkstream.io import Source
    from linkstream.paper.thresholds import Thresholds

StorePath = Annotated[Path, Argument(metavar="STORE", help="The store, such as people.links.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
Of = Annotated[str, "What A and B are: vectors, subclusters or clusters."]
Limit = Annotated[int, Option(min=1, help="How many to show.")]
Picture = Annotated[Path | None, "Draw a picture to a .png, .svg or .pdf."]
ClusterName = Annotated[str, Argument(metavar="CLUSTER", help="Its ID, or its name.")]
TokenFile = Annotated[Path | None, "The file of tokens; else DATA/tokens.json."]
Seed = Annotated[int, Option(min=0, help="Seed of the random numbers.")]
Mode = Annotated[str | None, "The algorithm of the paper (paper), or the most accurate one (best)."]
Heal = Annotated[str | None, "Correct clusters while vectors arrive: join or settle."]
Column = Annotated[str | None, "The column of vectors in a .parquet, .arrow, .jsonl or .csv."]
Key = Annotated[str | None, Option(help="Name of the array in a .npz.", show_default="X")]

_Json = Annotated[bool, Option("--json", help="Write JSON lines, as into a pipe.")]
_Format = Annotated[
    str | None,
    Option(
        "--format",
        metavar="text|json",
        help="Write text, or JSON lines.",
        show_default="text on a terminal, JSON lines into a pipe",
    ),
]
FORMATS = ("text", "json")
_THRESHOLDS = ("--cluster-similarity", "--subcluster-similarity", "--pair-similarity-max")


@dataclass(frozen=True)
class ClustererOptions:
    """Thresholds and settings of the clusterer that a command makes."""

    cluster_similarity: Annotated[float | None, "T_c, in (0, 1)."] = None
    subcluster_similarity: Annotated[float | None, "T_s, in (0, 1)."] = None
    pair_similarity_max: Annotated[float | None, "T_p, in [T_c², 1]."] = None
    preset: Annotated[str | None, "Instead of thresholds: an encoder, such as arcface."] = None
    granularity: Annotated[
        str | None, "Level of the preset, such as topics, or 0 (coarse) to 1 (fine)."
    ] = None
    tuned: Annotated[Path | None, "Instead of thresholds: the file that tune --save wrote."] = None
    mode: Mode = None
    evidence: Annotated[
        str | None, "Compare a vector with the nearest subcluster (nearest) or the whole (cluster)."
    ] = None
    heal: Heal = None
    no_track: Annotated[
        bool, "Do not track vectors: memory is bounded, but no vector can be undone or moved."
    ] = False
    max_subclusters: Annotated[
        int | None, Option(min=1, help="Above this number, forget the least recently used.")
    ] = None
    max_idle: Annotated[
        int | None, Option(min=1, help="Forget a subcluster after this many vectors elsewhere.")
    ] = None

    @functools.cached_property
    def _found(self) -> Tuned:
        """The settings in the file of --tuned."""
        from linkstream.clusterer.tuned import Tuned

        assert self.tuned is not None, "callers ask whether the option was given"
        return Tuned.load(self.tuned)

    def _check_only_tuned(self) -> None:
        """Raise ArgumentError if thresholds or a preset were given beside --tuned."""
        others = self._given().removeprefix(f"--tuned {self.tuned}").removeprefix(" and ")
        if others:
            raise usage_error(
                f"--tuned {self.tuned} and {others}",
                "one of them",
                "The file has thresholds: leave the others out.",
            )

    @property
    def _given_thresholds(self) -> list[float]:
        return [value for value in self._three if value is not None]

    @property
    def _three(self) -> tuple[float | None, ...]:
        return self.cluster_similarity, self.subcluster_similarity, self.pair_similarity_max

    def thresholds(self) -> Thresholds | None:
        """Return the three thresholds, or None if a preset was given.

        Raises:
            ArgumentError: there are both, neither, or fewer than three thresholds; or there is a
                granularity without a preset.
        """
        from linkstream.paper.thresholds import Thresholds

        if self.tuned is not None:
            self._check_only_tuned()
            return self._found.thresholds

        if self.granularity is not None and self.preset is None:
            raise usage_error(
                f"--granularity {self.granularity} without --preset",
                "--preset NAME, whose levels it chooses from",
                "linkstream presets lists the presets and their levels.",
            )
        three = self._given_thresholds
        if self.preset is not None and not three:
            return None
        if self.preset is not None or len(three) < len(_THRESHOLDS):
            raise usage_error(
                self._given() or "no thresholds",
                f"--preset NAME, or all of {', '.join(_THRESHOLDS)}",
                "linkstream presets lists the presets; tune and calibrate find thresholds.",
            )
        return Thresholds(*three)

    def thresholds_for_store(self) -> Thresholds | None:
        """Return the same for a store, which has thresholds if it exists already."""
        return self.thresholds() if self._given() else None

    def or_preset(self, preset: str) -> ClustererOptions:
        """Return these options with a preset, if they have neither thresholds nor a preset."""
        return self if self._given() else replace(self, preset=preset)

    def settings(self) -> dict[str, Any]:
        """Return the keyword arguments of `Links` that were given."""
        names = ("granularity", "mode", "evidence", "heal", "max_subclusters", "max_idle")
        given = {name: getattr(self, name) for name in names}
        given["track_vectors"] = False if self.no_track else None
        own = {} if self.tuned is None else self._found.arguments()
        own.pop("thresholds", None)
        return own | {name: value for name, value in given.items() if value is not None}

    def check_dimension(self, source: Source) -> None:
        """Raise DimensionError if the preset is for vectors of another dimension.

        Call it before a store is made, so that no store with the wrong preset is left.
        """
        from linkstream import presets

        if self.tuned is not None:
            self._check_only_tuned()
        if self.preset is None or self._given_thresholds:
            return
        chosen = presets.preset(self.preset, self.granularity)
        if source.dimension not in (None, chosen.dimension):
            seen = f"{source.name}: vectors of dimension {source.dimension}"
            raise presets.other_dimension(seen, chosen.space)

    def _given(self) -> str:
        named = {"--tuned": self.tuned, "--preset": self.preset}
        named["--granularity"] = self.granularity
        given = [f"{flag} {value}" for flag, value in named.items() if value is not None]
        three = zip(_THRESHOLDS, self._three, strict=True)
        return " and ".join(given + [flag for flag, value in three if value is not None])


@dataclass(frozen=True)
class RowOptions:
    """The columns of a file that a store keeps beside each vector."""

    payload: Annotated[str | None, "Columns to keep beside each vector, as text,file."] = None
    id_column: Annotated[str | None, "Column of the vectors' own keys: texts, each different."] = (
        None
    )
    time_column: Annotated[
        str | None, "Column of times: ISO 8601 with a zone, or seconds since 1970."
    ] = None

    def columns(self) -> dict[str, Any]:
        """Return the arguments of `open_vectors`."""
        names = [] if self.payload is None else [name.strip() for name in self.payload.split(",")]
        return {"payload": names, "id_column": self.id_column, "time_column": self.time_column}

    def given(self) -> str | None:
        """Return the first of these options that was given; None if none was."""
        flags = (f"--{name.replace('_', '-')}" for name, value in asdict(self).items() if value)
        return next(flags, None)


@dataclass(frozen=True)
class VectorFileOptions:
    """Where in a file the vectors are."""

    column: Column = None
    key: Key = None
    dimension: Annotated[
        int | None, Option(min=1, help="Numbers in a vector, if the source does not say.")
    ] = None

    def open(self, file: str | Path, kept: RowOptions | None = None) -> Source:
        """Open a file, stdin or a database, with the columns to keep beside the vectors."""
        from linkstream.io import open_vectors

        return open_vectors(file, **asdict(self), **({} if kept is None else kept.columns()))

    def read(self, file: str) -> npt.NDArray[Any]:
        """Read all vectors of a file, or of stdin if it is -."""
        from linkstream.io import read_vectors

        return read_vectors(file if file == "-" else Path(file), **asdict(self))


def command_with(tuned: Path) -> str:
    """Return the command that clusters with what a file of `tune --save` has."""
    return f"linkstream cluster FILE --store people.links --tuned {shlex.quote(str(tuned))}"


def cluster_command(thresholds: Thresholds, **options: str) -> str:
    """Return the command that clusters with some thresholds and options of the same names."""
    given = zip(_THRESHOLDS, asdict(thresholds).values(), strict=True)
    flags = [f"{flag} {value:.6g}" for flag, value in given]
    words = " ".join(flags + [f"--{name} {value}" for name, value in options.items()])
    return f"linkstream cluster FILE --store people.links {words}"


class Command(TyperCommand):
    """A command that records its arguments, so that errors can name its options."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        run = outcome.current()
        run.command = ctx.command_path.partition(" ")[2]
        longest = {each.name: max(each.opts, key=len, default="") for each in self.params}
        run.flags = {name: flag for name, flag in longest.items() if flag.startswith("-")}
        run.values = dict(ctx.params)
        return super().invoke(ctx)


def as_command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the signature that Typer needs.

    A text in `Annotated` is the help of an option, or of an argument if there is no default. A bool
    becomes a flag. A group of options becomes one parameter for each option. --json and --format
    are added; they override the format that a pipe or a terminal would get.
    """
    declared = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        each.name: each.annotation for each in declared if is_dataclass(each.annotation)
    }

    @functools.wraps(function)
    def run(**given: Any) -> Any:
        outcome.current().format = _format(given.pop("format_"), as_json=given.pop("as_json"))
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        return function(**given)

    whole = inspect.Signature([new for each in declared for new in _expanded(each)] + _EVERYWHERE)
    vars(run)["__signature__"] = whole
    run.__annotations__ = {each.name: each.annotation for each in whole.parameters.values()}
    return run


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind, note = annotation.__origin__, annotation.__metadata__[0]
    if isinstance(note, str):
        note = Argument(help=note) if default is inspect.Parameter.empty else Option(help=note)
    if kind is bool and note.default is ...:  # without a name, Typer would add --no-name as well
        note = Option(f"--{name.replace('_', '-')}", help=note.help)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, note], default=default
    )


_EVERYWHERE = [_parameter("as_json", _Json, False), _parameter("format_", _Format, None)]


def _expanded(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    group = parameter.annotation
    if not is_dataclass(group):
        yield _parameter(parameter.name, group, parameter.default)
        return
    hints = get_type_hints(group, include_extras=True)
    yield from (_parameter(each.name, hints[each.name], each.default) for each in fields(group))


def _format(chosen: str | None, *, as_json: bool) -> str | None:
    if chosen is not None and chosen not in FORMATS:
        raise usage_error(f"--format {chosen}", " or ".join(FORMATS), "Try --format json.")
    if chosen == "text" and as_json:
        raise usage_error("--json and --format text", "one of them", "Leave one out.")
    return "json" if as_json else chosen
