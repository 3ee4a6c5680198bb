/** Clusters: the list of all (`#/cluster`), or one of them (`#/cluster/17`). */

import { button, el, foreign, number, slot } from "/page/elements.js";
import { card } from "/page/parts.js";
import { actions } from "/page/actions.js";
import { showList } from "/page/clusters.js";
import { members } from "/page/members.js";
import { tree } from "/page/tree.js";

const STORY = 40; // lines of its history shown at first
const PENDING = "Too few vectors to count as a cluster yet";

/** @param {HTMLElement} root @param {import("./app.js").Context} context */
export async function show(root, context) {
  if (!context.parts.length) return showList(root, context);
  const found = await context.get(`clusters/${encodeURIComponent(context.parts[0])}`);
  const { cluster } = found;
  root.append(
    head(context, found),
    figures(cluster),
    el("div", { class: "cluster-body" },
      el("div", { class: "column" }, tree(context, found), story(found)),
      await members(context, found)));
  return undefined;
}

function head(context, { id, asked, cluster }) {
  const title = cluster.name === null ? `Cluster ${id}` : foreign(cluster.name);
  const tags = el("span", { class: "tags" },
    cluster.name !== null && el("span", { class: "tag" }, `ID ${id}`),
    cluster.pending && el("span", { class: "tag warn", title: PENDING }, "pending"),
    cluster.ignored && el("span", { class: "tag" }, "ignored"));
  return el("header", { class: `cluster-head ${slot(id)}` },
    el("a", { href: context.link("cluster"), class: "small-text back" }, "← All clusters"),
    el("div", { class: "cluster-title" },
      el("span", { class: "dot big", "aria-hidden": "true" }), el("h1", {}, title), tags),
    id !== asked && el("p", { class: "note" },
      `You asked for ID ${asked}: it was joined into this cluster and stands for it now.`),
    actions(context, id, cluster));
}

function figures(cluster) {
  const tiles = [
    ["Vectors", number(cluster.size)], ["Subclusters", number(cluster.subclusters)],
    ["First vector", number(cluster.first_seen)], ["Newest vector", number(cluster.last_seen)],
  ];
  return el("dl", { class: "tiles" }, ...tiles.map(([title, value]) =>
    el("div", { class: "tile small" }, el("dt", {}, title), el("dd", {}, value))));
}

function story({ story: lines }) {
  const list = el("ol", { class: "story" });
  const add = (some) => list.append(...some.map((line) => {
    const [when, ...what] = line.split(": ");
    return el("li", {},
      el("span", { class: "quiet figures" }, foreign(when)), foreign(what.join(": ")));
  }));
  const newest = [...lines].reverse();
  add(newest.slice(0, STORY));
  const box = card("History", {}, list);
  if (newest.length > STORY) {
    const rest = () => { add(newest.slice(STORY)); more.remove(); };
    const more = button(`Show ${number(newest.length - STORY)} older`, rest, { class: "small" });
    box.append(more);
  }
  if (!lines.length) box.append(el("p", { class: "quiet" }, "Its events are no longer kept."));
  return box;
}
