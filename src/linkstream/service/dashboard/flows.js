/** Vectors that change their cluster, as a rebuild or the end of a migration tells them. */

import { counted, el } from "./elements.js";
import { chip, marginBar } from "./parts.js";

const KINDS = {
  joined: { title: "joined", words: "all its vectors join" },
  split: { title: "parted", words: "some vectors become a new cluster" },
  moved: { title: "moved", words: "some vectors move" },
};

/**
 * @typedef {{kind: "joined"|"split"|"moved", cluster: number, to: number, vectors: number,
 *   margin: number}} Flow
 */

/** Return the names that changes concern; `names` has those of clusters by ID. */
export function named(context, flows, names) {
  const ids = [...new Set(flows.flatMap((flow) => [flow.cluster, flow.to]))];
  const some = ids.filter((id) => (names.get(id) ?? null) !== null);
  if (!some.length) return null;
  return el(
    "p",
    { class: "rebuild-names" },
    el("span", { class: "quiet" }, "Names concerned: "),
    ...some.map((id) => chip(context, id, names.get(id))),
  );
}

/** Return a list of changes. */
export function flowList(context, flows, names) {
  return el("ul", { class: "rebuild-flows" }, ...flows.map((flow) => row(context, flow, names)));
}

/**
 * @param {import("./app.js").Context} context
 * @param {Flow} flow
 * @param {Map<number, string|null>} names
 */
function row(context, flow, names) {
  const { title, words } = KINDS[flow.kind];
  const fresh = flow.kind === "split" && !names.has(flow.to);
  return el(
    "li",
    { data: { kind: flow.kind } },
    el("span", { class: "tag", title: words }, title),
    el(
      "span",
      { class: "who" },
      chip(context, flow.cluster, names.get(flow.cluster) ?? null),
      el("span", { "aria-label": "to" }, "→"),
      fresh
        ? el("span", { class: "quiet" }, "a new cluster")
        : chip(context, flow.to, names.get(flow.to) ?? null),
    ),
    el("span", { class: "figures" }, counted(flow.vectors, "vector")),
    marginBar(flow.margin),
  );
}
