"""Reword errors of the library for the command line: commands and options instead of Python.

`tests/cli/test_messages.py` reads every error of the library and fails if Python words are left:
then add a line to a table below.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from linkstream.cli import outcome
from linkstream.cli.outcome import Run
from linkstream.errors import LinkstreamError

# Options of `Links` and `Store` as they are typed, whatever the command.
FLAGS = {
    name: "--" + name.replace("_", "-")
    for name in (
        *("cluster_similarity", "subcluster_similarity", "pair_similarity_max"),
        *("max_subclusters", "max_idle", "conflation_weight", "fracture_weight"),
    )
} | {"T_c": "T_c", "of": "--of"}

# The values of --thresholds.
_THREE = {
    "cluster_similarity": "T_c",
    "subcluster_similarity": "T_s",
    "pair_similarity_max": "T_p",
}

# Whole phrases of the library, and those of the command line. STORE stands for the store that the
# command was given.
PHRASES = {
    # expected
    "track_vectors=True and keep_vectors=True": "a store made without --no-track",
    "track_vectors=True": "a store made without --no-track",
    "keep_vectors=True": "a store that keeps its vectors",
    "a file that Store.open wrote": "a linkstream store",
    "one that was given by name() or enrol()": "a name that a cluster has",
    "a file written by tune(), or a new name": "a file that linkstream tune wrote, or a new name",
    "True or False": "yes or no",
    "an array saved by numpy.save or numpy.savez": "an array in .npy or .npz",
    "an archive by numpy.savez or numpy.savez_compressed": "a plain or compressed .npz",
    "an array by numpy.save": "an array in .npy",
    "real numbers (floating point or integers)": "real numbers",
    "rows of vectors, shape (n, dimension)": "one vector a row",
    "one vector, shape (dimension,)": "one vector",
    "a whole number of 1 or more, or None": "a whole number of 1 or more",
    "pairs of row numbers, shape (m, 2), whole numbers": "two row numbers a line",
    "as there are in X": "as there are in the file",
    "a list or 1-D array of keys, one for each vector": "one key for each vector",
    "whole numbers or strings; −1 or None for none": "whole numbers or words; −1 for none",
    "a list or 1-D array of whole numbers or strings": "whole numbers or words",
    "a 1-D array of whole numbers or strings; pickled objects are never read": (
        "one whole number or word for each vector, without pickled objects"
    ),
    "strings, finite numbers, booleans, None, and lists and dicts of these": "plain JSON",
    "the path of a file; or, for `linkstream cluster` and open_vectors,": (
        "the path of a file; or, for linkstream cluster,"
    ),
    "one of held()": "one that linkstream held STORE lists",
    "a vector that was added alone or in a batch, and compared with clusters, while margins were "
    "computed": "a vector that was added to a store with a model, and compared with clusters",
    # remedies
    "The first vector was compared with none. Before others are added, use a model or "
    "links.confidence.set_margins(True).": (
        "The first vector was compared with none. Make the store with --tuned FILE."
    ),
    "Nothing was decided yet: assign() decides, and remove() drops it.": (
        "Nothing was decided yet: linkstream assign decides, linkstream forget --vector drops it."
    ),
    "assign() puts it into a cluster, remove() drops it.": (
        "linkstream assign puts it into a cluster, linkstream forget --vector drops it."
    ),
    "assign() for each, or accept() for all.": (
        "linkstream assign for each, or linkstream accept STORE for all."
    ),
    "move() puts a vector of a cluster elsewhere.": (
        "linkstream move puts a vector of a cluster elsewhere."
    ),
    "accept() without a probability takes": "linkstream accept STORE without a probability takes",
    "Call accept() without a probability, which takes them, or decide on each.": (
        "linkstream accept STORE without a probability takes them; or decide on each."
    ),
    "Use unsure='weigh', or keep vectors.": "Use --unsure weigh, or keep vectors.",
    "No decision is certain; new=0 takes every new cluster.": (
        "No decision is certain; --new 0 takes every new cluster."
    ),
    "=; new=0 takes every new cluster. More": ", or --new 0, which takes every new cluster. More",
    "or Space(dimension=…).": "or make the store with --dimension.",
    "clusters() lists those that are there.": (
        "linkstream inspect STORE lists those that are there."
    ),
    "undo that to restore it.": "linkstream undo STORE --list shows what can be undone.",
    "IDs come from add(), add_many(), labels() or clusters().": (
        "linkstream inspect STORE lists the clusters."
    ),
    "Speak of subclusters or clusters, or track vectors.": (
        "Name subclusters or clusters instead, or make the store without --no-track."
    ),
    "Keep vectors, or pass the vector itself where it is asked for.": (
        "Make a new store without --no-track."
    ),
    "Make the store with keep_vectors=True.": "Make a new store without --no-track.",
    "Keep the IDs that add_many() returns, or track vectors.": (
        "Keep the IDs that --output writes, or make the store without --no-track."
    ),
    "Save snapshots, and go back to one of them.": (
        "Make stores without --no-track, or copy them first: linkstream backup STORE COPY."
    ),
    "clusters() shows them; merges make some disappear.": (
        "linkstream inspect STORE --cluster ID shows those of a cluster; merges make some vanish."
    ),
    "forget() its cluster, or pass the very vector that was added.": (
        "Forget its cluster instead: linkstream forget STORE CLUSTER."
    ),
    "rename(cluster, None) takes a name away.": (
        "linkstream name STORE CLUSTER --clear takes a name away."
    ),
    "It is there already; same() keeps it there.": "It is there already.",
    "Use rename() to change it.": "Add --rename to change the name.",
    "clusters() shows the names there are.": "linkstream inspect STORE shows the names.",
    "Vectors seen together stay apart; remove() or move() one of them.": (
        "Vectors seen together stay apart; put one of them elsewhere: linkstream move STORE VECTOR "
        "CLUSTER."
    ),
    "Prototypes of one name stay together; forget() their cluster, or undo enrol().": (
        "Vectors enrolled under one name stay together; linkstream forget STORE CLUSTER."
    ),
    "corrections() shows them.": "linkstream retract STORE shows them.",
    "without order= all go by ID": "without an order all go by ID",
    "events() shows them; what an undo took back cannot be undone again.": (
        "linkstream events STORE shows them; what an undo took back cannot be undone again."
    ),
    "Pass thresholds= or preset= to make a new one.": (
        "Check the path. To make a new store: linkstream cluster FILE --store STORE --preset NAME."
    ),
    "a store with search=True": "a store with a search index",
    "Make the index once: Store.open(path, search=True), or set_search(True).": (
        "Make it once: linkstream search STORE --on."
    ),
    'Search for words, as search("red car"), or fields, as where={"file": "a.jpg"}.': (
        'Search for words, as "red car", or fields, as --field NAME=VALUE.'
    ),
    'Pass a dict, as where={"file": "a.jpg"}.': "Give fields as --field NAME=VALUE.",
    "Go on with before=, the next of the answer.": "Go on with --before.",
    "Leave it out, or change it with set_search() on a store opened for writing.": (
        "Change it with linkstream search STORE --on or --off."
    ),
    "Pass what labels() returned when n_events was that number.": "Use the labels of that moment.",
    "which changes() reads from the first on": "which linkstream changes reads from the first on",
    'Name the columns that you need, as columns=["vector", "file"].': "Use fewer fields.",
    'Pass a list, as columns=["vector", "cluster"].': "Name each column once.",
    "Leave it out, or leave out columns= to see all columns there are.": "Leave it out.",
    "Close the other one, or open with read_only=True.": (
        "Wait until it has ended; meanwhile inspect, explain, events and export only read."
    ),
    "Pass either thresholds= or preset=, not both.": (
        "Give either thresholds or --preset, not both."
    ),
    "Pass thresholds of your own, or leave thresholds= out.": (
        "Give --thresholds, or leave both options out."
    ),
    "Leave out x=.": "Give the number alone.",
    "Call refresh(), or open it again.": "Run the command again.",
    "Open the store without read_only=True.": "Run a command that changes the store.",
    "Copy it with store.backup(path), or export a table.": (
        "Copy it with linkstream backup STORE COPY, or export a table such as people.csv."
    ),
    "Use a separate Links for the vectors of each encoder.": (
        "Vectors of another encoder need a store of their own."
    ),
    "Pass a single vector x as [x], which is one row.": (
        "Save the vectors as rows of equal length."
    ),
    "Pass one row, such as X[0], or use the method that takes many vectors.": "Give one vector.",
    "Convert the vectors with .astype(numpy.float32).": "Save the vectors as numbers.",
    "Drop these rows, or fill them in with numpy.ma.filled().": "Drop these rows.",
    "Drop or repair these rows; nothing has been added.": "Drop or mend these rows.",
    "Save the vectors with numpy.save(path, X).": "Save the vectors as one of these.",
    "Save numpy.ascontiguousarray(X), or save it as .npy.": "Save it row by row, or as .npy.",
    "Save numpy.asarray(X, dtype=numpy.float32).": "Save the vectors as numbers.",
    "Save the labels with numpy.save(path, y).": "Save the labels as .npy, without objects.",
    "Name each vector by its row in X, from 0.": "Name each vector by its row, from 0.",
    "Give −1 or None to a vector that was seen alone.": "Give −1 to a vector that was seen alone.",
    "Give `different`, or `groups` of vectors that were seen together.": (
        "Give --different as well, or --groups."
    ),
    "Give `same`, or say with `groups` which vectors were seen together.": (
        "Give --same as well, or --groups."
    ),
    "with `same` and `different`, or label some of the stream and use tune()": (
        "with --same and --different, or label some of the stream and use linkstream tune"
    ),
    "Pass Thresholds(0.7, 0.6, 0.9), or a tuple of three.": "Try --thresholds 0.7 0.6 0.9.",
    'Try payload=["file", "time"].': "Try --payload file,time.",
    "Name columns of other things as payload, or those of the vectors as column.": (
        "Name columns of other things with --payload, or those of the vectors with --column."
    ),
    "Give its name as key.": "Give its name with --key.",
    "Give it as dimension.": "Give it with --dimension.",
    "Give the dimension of raw vectors; give other files by name.": (
        "Give raw vectors a --dimension; give other files by name."
    ),
    "Name one file in it.": (
        "Name one file in it; linkstream watch FOLDER --store NEW.links --once takes all of them."
    ),
    "For another encoder use linkstream.tuning: tune, calibrate or diagnose.": (
        "linkstream presets lists them; for another encoder use linkstream tune or calibrate."
    ),
    "0 gives few large clusters, 1 many small ones; levels() shows your own vectors.": (
        "0 gives few large clusters, 1 many small ones; linkstream levels FILE shows your own "
        "vectors."
    ),
    "finer or coarser ones, which levels() shows.": (
        "finer or coarser ones, which linkstream levels shows."
    ),
    "Pass preset= as well, or leave granularity= out.": (
        "Give --preset as well, or leave --granularity out."
    ),
    "Check it; open_vectors takes an address as a text, not as a path.": "Check it.",
    "a file that tune(…).save(path) wrote": "a file that linkstream tune --save wrote",
    "Tune again, and save the result.": "Make it again: linkstream tune FILE --save tuned.json.",
    "no model: the links of a tune() have one": (
        "no model; linkstream cluster --tuned FILE makes a store with one"
    ),
    "Thresholds belong to an encoder: see docs/how-links-works.md.": (
        "Thresholds belong to an encoder: linkstream presets lists known ones, linkstream tune "
        "finds others."
    ),
    "Healing is opt-in: leave heal=None for the paper's algorithm.": (
        "Try --heal settle, or leave --heal out."
    ),
    "None sets no limit.": "Leave it out for no limit.",
    "Split the call, or use feed().": "Split the file.",
    "or use track_vectors=True to keep them all": "or make the store without --no-track",
    "Leave it out to open the store as it is, or make a new one.": (
        "Leave it out to use the store as it is, or name a new store."
    ),
    "Open the store again. Everything that was acknowledged is there.": "Run the command again.",
    "The store can only be read now. Open it again: everything that was acknowledged is there.": (
        "What was acknowledged is there; run the command again."
    ),
    "then open the store again: everything that was acknowledged is there.": (
        "then run the command again; what was acknowledged is there."
    ),
    "Open it once for writing, which updates the format.": (
        "Change it once, with any command that writes, which brings it up to date."
    ),
    "Use engine='auto'; `linkstream doctor` shows what is installed.": (
        "linkstream doctor shows what is installed."
    ),
    "`linkstream repair`, which saves what can be read": (
        "linkstream repair STORE, which saves what can be read"
    ),
    "Try a Space: Links(…, space=Space.fit(X)); these": (
        "Try centring: linkstream tune with --mean mean.npy; these"
    ),
    "Pass labels y, or a larger sample,": "Give --labels, or more vectors,",
    "settle() compares subclusters, which every clusterer has.": (
        "linkstream settle compares subclusters, which every store has."
    ),
    "Pass the vectors of the other encoder, too: vectors=.": (
        "Give the vectors of the other encoder, too: --vectors FILE."
    ),
    "Add more first; missing() lists what is left.": (
        "Add more first; linkstream migrate STORE missing lists what is left."
    ),
    "Call migrate() to begin another one.": "Begin another one: linkstream migrate STORE begin.",
    "Go back to a snapshot from before, or call rebuild(space=…) again.": (
        "Restore a copy from before: linkstream backup makes them."
    ),
    "Only vectors have keys; leave of= out to name vectors.": (
        "Only vectors have keys; leave --of out to name vectors."
    ),
    "Pass a ticket number or a file name as text, as id=str(number).": (
        "Take a column of texts, such as ticket numbers or file names."
    ),
    "a datetime or ISO text with a zone, a datetime64 (UTC), or seconds since 1970": (
        "ISO text with a zone, a column of times, or seconds since 1970"
    ),
    "Add the zone, as 2026-01-31T12:00:00Z or datetime.now(timezone.utc).": (
        "Add the zone, as 2026-01-31T12:00:00Z."
    ),
    "Use None for a vector without a key.": "Leave the field empty for a vector without a key.",
    "Use None for a vector without a time.": "Leave the field empty for a vector without a time.",
}

_KIND = r"(?: of (vectors|subclusters|clusters))?"
_TWO = r"\((\d+), (\d+)\)"
_RULES = [
    (re.compile(pattern), words)
    for pattern, words in (
        (r"^thresholds and preset=", "thresholds and --preset "),
        (r"^track_vectors=False for (.*), which has True", r"--no-track for \1, made without it"),
        (
            r"^track_vectors=True for (.*), which has False",
            r"tracking for \1, made with --no-track",
        ),
        (r"^undo\(to=(-?\d+)\)", r"undo --to \1"),
        (r"\bretract\((\d+)\) takes", r"linkstream retract STORE \1 takes"),
        (r"^(undo|labels|accept)\(\) ", r"\1 "),
        (r"^accept\(unsure='hold'\)", "holding unsure vectors back"),
        (r"^(accept|judge)\((.*?)\) ", r"\1 \2 "),
        (r"^name\((\d+), (.*)\) of a cluster that is ", r"the name \2 for cluster \1, which is "),
        (r"^path=", ""),
        (r"^mode: '(\w*)'", r"--heal \1"),
        (r"\[Errno \d+\] ([^:;]+): '[^']*'", r"\1"),
        (rf"\bmove{_TWO}", r"moving vector \1 to cluster \2"),
        (rf"\bsame{_TWO} of clusters", r"merging clusters \1 and \2"),
        (rf"\bsame{_TWO}{_KIND}", r"\3 \1 and \2 being the same"),
        (rf"\bdifferent{_TWO}{_KIND}", r"\3 \1 and \2 being different"),
        (r"\bsame\((\d+), (\d+), of='clusters'\)", r"linkstream merge STORE \1 \2"),
        (r"\benrol\(('[^']*'|\"[^\"]*\")\)", r"enrolling \1"),
        (r"\bwith of='?(\w+)'?", r"among \1"),
        (r"\bclusterer\b", "store"),
        (r"\b(Add|Mend) (\w+)= (to|in) the address", r"\1 ?\2=… \3 the address"),
        (r": a change to a store that is open read_only", ": opened to be read only"),
        (r"(?: and|,)? dtype (\S+)", r" of kind \1"),
        (r" of of kind ", " of kind "),
        (r"\bshape \((\d+),\)", r"shape \1"),
        (r"\bshape \((\d+), (\d+)\)", r"shape \1 × \2"),
        (r"\bshape \((\d+), (\d+), (\d+)\)", r"shape \1 × \2 × \3"),
        (r"\bshape \(\)", "no shape"),
        (r" of type [A-Za-z]+$", ""),
    )
]
_OPTION = re.compile(r"^([a-z_]+)=('[^']*'|\"[^\"]*\"|[^\s;,]+)")
_IS = re.compile(r"^([A-Za-z_]+) is\b")
_ASIDE = re.compile(r"(?<![\w/.'-])([a-z]+(?:_[a-z]+)+)(?![\w/.=('-])")


def sentence(error: BaseException) -> str:
    """Return the sentence of an error in words of the command line."""
    if isinstance(error, LinkstreamError):
        seen, expected = _seen(error.seen, outcome.current()), reworded(error.expected)
        return f"{seen}; expected {expected}. {reworded(error.remedy)}"
    if isinstance(error, MemoryError):
        return outcome.NO_MEMORY
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror}."
    return str(error)


def reworded(words: str) -> str:
    """Return a text of the library in words of the command line."""
    run = outcome.current()
    for theirs, ours in PHRASES.items():
        words = words.replace(theirs, ours)
    words = _ASIDE.sub(lambda found: _flag(found[1], run.flags), _ruled(words))
    return _with_store(words, run)


def _seen(words: str, run: Run) -> str:
    """Return what was seen; it may quote names and files, so only whole patterns are replaced."""
    for absolute, typed in run.paths().items():
        words = words.replace(absolute, typed)
    words = _ruled(words)
    words = _OPTION.sub(
        lambda found: f"{_flag(found[1], run.flags)} {found[2].strip(chr(39))}", words
    )
    words = _IS.sub(lambda found: f"{_flag(found[1], run.flags)} is", words)
    return _with_store(words, run)


def _ruled(words: str) -> str:
    for pattern, ours in _RULES:
        words = pattern.sub(ours, words)
    return words


def _flag(name: str, flags: Mapping[str, str]) -> str:
    """Return an option as it is typed; return another name with spaces."""
    if name in _THREE and name not in flags and "thresholds" in flags:
        return f"--thresholds: {_THREE[name]}"
    return flags.get(name) or FLAGS.get(name) or name.replace("_", " ")


def _with_store(words: str, run: Run) -> str:
    return words if run.store is None else words.replace("STORE", shlex.quote(run.store))
