/** Clusters: the list of all clusters (`#/cluster`), or one cluster (`#/cluster/17`). */

import { button, el, foreign, number, slot } from "./elements.js";
import { actions } from "./corrections.js";
import { card } from "./parts.js";
import { members } from "./members.js";
import { fillTimes, timeOf } from "./times.js";
import { showList } from "./people.js";
import { tree } from "./tree.js";

const STORY = 40; // lines of history shown at first
const PENDING = "Too few vectors to count as a cluster yet";

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  if (!context.parts.length) return showList(root, context);
  const [id] = context.parts;
  if (!/^\d{1,15}$/.test(id)) return root.append(noCluster(context, id, "no ID of a cluster"));
  const found = await context.get(`clusters/${id}`).catch((error) => {
    if (error.kind === "unknown-id") return null;
    throw error;
  });
  if (!found) return root.append(noCluster(context, id, "an ID that no cluster has had so far"));
  const { cluster } = found;
  if (!cluster) root.append(gone(context, found));
  else root.append(...(await about(context, found)));
  fillTimes(context, root);
  return undefined;
}

async function about(context, found) {
  return [
    head(context, found),
    figures(found.cluster),
    el(
      "div",
      { class: "cluster-body" },
      await members(context, found),
      el("div", { class: "column" }, tree(context, found), story(context, found)),
    ),
  ];
}

/** Return what is shown for an address that names no cluster. */
function noCluster(context, words, what) {
  return el(
    "section",
    { class: "card narrow", role: "alert" },
    el("h1", {}, "There is no such cluster"),
    el("p", {}, foreign(words, 60), ` is ${what}. IDs are numbers, such as 17.`),
    el("p", {}, el("a", { href: context.link("cluster") }, "Show all clusters")),
  );
}

/** Return what is shown for a cluster that was forgotten, or whose vectors were removed. */
function gone(context, found) {
  return el(
    "section",
    { class: "card narrow" },
    el("h1", {}, `Cluster ${found.asked} is gone`),
    el("p", {}, "It was forgotten, or its last vector left it. Undo may bring it back."),
    story(context, found),
    el("p", {}, el("a", { href: context.link("cluster") }, "Show all clusters")),
  );
}

function head(context, { id, asked, cluster }) {
  const title = cluster.name === null ? `Cluster ${id}` : foreign(cluster.name);
  const tags = el(
    "span",
    { class: "tags" },
    cluster.name !== null && el("span", { class: "tag" }, `ID ${id}`),
    cluster.pending && el("span", { class: "tag warn", title: PENDING }, "pending"),
    cluster.ignored && el("span", { class: "tag" }, "ignored"),
  );
  return el(
    "header",
    { class: `cluster-head ${slot(id)}` },
    el("a", { href: context.link("cluster"), class: "small-text back" }, "← All clusters"),
    el(
      "div",
      { class: "cluster-title" },
      el("span", { class: "dot big", "aria-hidden": "true" }),
      el("h1", {}, title),
      tags,
    ),
    id !== asked &&
      el(
        "p",
        { class: "note" },
        `ID ${asked} was merged into this cluster.`,
      ),
    actions(context, id, cluster),
  );
}

function figures(cluster) {
  const tiles = /** @type {[string, any][]} */ ([
    ["Vectors", number(cluster.size)],
    ["Subclusters", number(cluster.subclusters)],
    ["First seen", seen(cluster.first_seen, cluster.since)],
    ["Last seen", seen(cluster.last_seen, cluster.time)],
  ]);
  return el(
    "dl",
    { class: "tiles" },
    ...tiles.map(([title, value]) =>
      el(
        "div",
        { class: "tile small" },
        el("dt", {}, title),
        el("dd", { class: title.endsWith("seen") && "words" }, value),
      )
    ),
  );
}

const seen = (vector, time) => timeOf({ vector, time }, `at vector ${number(vector)}`);

function story(context, { chapters }) {
  const list = el("ol", { class: "story" });
  const add = (some) => list.append(...some.map((chapter) => line(context, chapter)));
  const newest = [...chapters].reverse();
  add(newest.slice(0, STORY));
  const timed = chapters.some(({ time }) => time);
  const by = el("span", { class: "quiet small-text" }, "by the newest vector of then");
  const box = card("History", { more: timed && by }, list);
  if (newest.length > STORY) {
    const rest = () => {
      add(newest.slice(STORY));
      fillTimes(context, list);
      more.remove();
    };
    const more = button(`Show ${number(newest.length - STORY)} older`, rest, { class: "small" });
    box.append(more);
  }
  if (!chapters.length) {
    box.append(el("p", { class: "quiet" }, "The events of this cluster are no longer kept."));
  }
  return box;
}

/** Return a line of the history; numbers of other clusters are links. */
function line(context, { vector, time, words }) {
  const [before, id, after] = words.split(/(?<=cluster )(\d+)/);
  return el(
    "li",
    {},
    el("span", { class: "quiet figures small-text" }, seen(vector, time)),
    el(
      "span",
      {},
      foreign(before),
      id && el("a", { href: context.link("cluster", id) }, id),
      after && foreign(after),
    ),
  );
}
