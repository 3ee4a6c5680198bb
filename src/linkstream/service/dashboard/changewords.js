/** Changes in words, with links to the clusters they are about. */

import { counted, el, foreign, number } from "./elements.js";
import { chip } from "./parts.js";

/** @typedef {any} Change  a record of GET activity */

export const KINDS = {
  join: "Joins",
  cut: "Cuts",
  move: "Moves",
  name: "Names",
  remove: "Removals",
  rebuild: "Rebuilds",
  policy: "Settings and answers",
  undo: "Undo",
};

/** Icons of the kinds, as paths of 24 by 24. */
export const ICONS = {
  join: "M4 5c6 0 6 7 10 7M4 19c6 0 6-7 10-7M14 12h7M18 9l3 3-3 3",
  cut: "M4 12h7c4 0 4-7 10-7M11 12c4 0 4 7 10 7",
  move: "M5 12h14M13 6l6 6-6 6",
  name: "M4 12V4h8l8 8-8 8zM8.5 8.5h.01",
  remove: "M5 7h14M10 11v6M14 11v6M7 7l1 13h8l1-13M9 7V4h6v3",
  rebuild: "M20 11a8 8 0 1 0-2.3 6M20 5v6h-6",
  policy: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  undo: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
};

const list = (parts) =>
  parts.flatMap((
    part,
    place,
  ) => [place === 0 ? "" : place === parts.length - 1 ? " and " : ", ", part]);

/**
 * Return a change as a sentence.
 * @param {import("./app.js").Context} context
 * @param {Change} change
 */
export function sentence(context, change) {
  const chips = change.clusters.map(({ id, name }) => chip(context, id, name));
  const make = change.automatic ? AUTOMATIC[change.kind] : SENTENCES[change.verb];
  return make ? make(change, chips) : [change.verb];
}

const only = (chips, otherwise = "a cluster that is gone") => chips[0] ?? otherwise;

const quoted = (name) => ["“", foreign(name, 60), "”"];

const SENTENCES = {
  same: ({ joins }, chips) =>
    joins
      ? [counted(joins + 1, "cluster"), " became one: ", only(chips)]
      : ["Said that they are the same: ", ...(chips.length ? list(chips) : ["no cluster changed"])],
  different: ({ cuts }, chips) =>
    cuts
      ? ["Cut apart ", ...list(chips)]
      : chips.length > 1
      ? ["Said that ", ...list(chips), " are different"]
      : ["Said that two are different, in ", only(chips)],
  move: (_, chips) => ["Moved a vector to ", only(chips)],
  assign: (_, chips) => ["Decided on a held vector: ", only(chips)],
  name: ({ said, clusters }, chips) => [
    "Named ",
    only(chips),
    ...(said.name === null || clusters[0]?.name === said.name ? [] : [": ", ...quoted(said.name)]),
  ],
  rename: ({ said }, chips) =>
    said.name === null
      ? ["Removed the name of ", only(chips)]
      : ["Renamed a cluster to ", ...quoted(said.name), ": ", only(chips)],
  enrol: ({ said, vectors }, chips) => [
    "Enrolled ",
    ...(said.name === null ? [only(chips)] : quoted(said.name)),
    ` with ${counted(vectors, "example")}`,
  ],
  remove: () => ["Removed a vector"],
  forget: ({ said }) => [`Forgot the cluster ID ${said.cluster}`],
  settle: (change) => ["Compared all clusters", ...outcome(change)],
  rebuild: (change) => ["Clustered everything again", ...outcome(change)],
  accept: () => ["Changed what is done with unsure vectors"],
  ignore: ({ said }, chips) => [said.on === false ? "Stopped ignoring " : "Ignored ", only(chips)],
  judge: ({ said }) => [`Said that a decision was ${said.right === false ? "wrong" : "right"}`],
  undo: () => ["Took back changes"],
  redo: () => ["Brought back what an undo took"],
  retract: ({ taken }) => ["Took back one correction", ...(taken ? [": ", ...taken] : [])],
};

const AUTOMATIC = {
  join: ({ count }, chips) => [
    count === 1 ? "The stream joined two clusters: " : `The stream made ${number(count)} joins: `,
    ...list(chips.slice(0, 4)),
  ],
  cut: ({ count }, chips) => [
    count === 1 ? "The stream cut a cluster: " : `The stream made ${number(count)} cuts: `,
    ...list(chips.slice(0, 4)),
  ],
  remove: ({ count }) => [`The limits forgot ${counted(count, "cluster")}`],
  policy: () => ["Answers contradict the probabilities: they have drifted"],
};

function outcome({ joins, cuts }) {
  const parts = [joins && counted(joins, "join"), cuts && counted(cuts, "cut")].filter(Boolean);
  return [parts.length ? `: ${parts.join(", ")}` : ": the clusters stayed as they were"];
}

/** Return a change as plain text, for labels and dialogs. */
export function plainSentence(context, change) {
  return el("span", {}, ...sentence(context, change)).textContent;
}
