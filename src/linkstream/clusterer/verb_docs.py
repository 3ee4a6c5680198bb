"""Signature and documentation of the verbs, for surfaces that add parameters of their own."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping

from linkstream.clusterer.links import Links
from linkstream.clusterer.verbs import VERBS


def signature(verb: str, *own: inspect.Parameter) -> inspect.Signature:
    """Return the signature of a verb, with parameters of a surface's own after the others."""
    told = inspect.signature(getattr(Links, verb))
    return told.replace(parameters=[*told.parameters.values(), *own])


def documentation(verb: str, own: Mapping[str, str], notes: str = "") -> str:
    """Return the documentation of a verb for a surface that has parameters of its `own`.

    `notes` replace the paragraphs between the first one and the parameters.
    """
    text, raises, errors = (inspect.getdoc(getattr(Links, verb)) or "").partition("\n\nRaises:")
    head, _, args = text.partition("\n\nArgs:\n")
    if verb in VERBS:  # some parameters belong to `Links` alone
        told = re.findall(r"^    (\w+)(: .*(?:\n {8}.*)*)", args, re.MULTILINE)
        own_of_verb = VERBS[verb].parameters
        args = "\n".join(f"    {name}{words}" for name, words in told if name in own_of_verb)
    if notes:
        head = head.split("\n\n")[0] + "\n\n" + notes
    wrap = textwrap.TextWrapper(92, initial_indent="    ", subsequent_indent=" " * 8)
    entries = [wrap.fill(f"{name}: {words}") for name, words in own.items()]
    listed = "\n".join(([args] if args else []) + entries)
    return f"{head}\n\nArgs:\n{listed}{raises}{errors}\n"
