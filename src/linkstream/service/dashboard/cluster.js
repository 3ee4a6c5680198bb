/** Clusters: the list of all clusters (`#/cluster`), or one cluster (`#/cluster/17`). */

import { button, el, foreign, number, slot } from "./elements.js";
import { actions } from "./corrections.js";
import { card, payload } from "./parts.js";
import { showList } from "./clusters.js";
import { tree } from "./tree.js";

const STORY = 40; // lines of history shown at first
const PAGE = 24; // vectors fetched at a time
const MARKS = {
  central: ["accent", "among the most central"],
  doubtful: ["warn", "among the most doubtful"],
};
const PENDING = "Too few vectors to count as a cluster yet";

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  if (!context.parts.length) return showList(root, context);
  const found = await context.get(`clusters/${encodeURIComponent(context.parts[0])}`);
  const { cluster } = found;
  root.append(
    head(context, found),
    figures(cluster),
    el(
      "div",
      { class: "cluster-body" },
      el("div", { class: "column" }, tree(context, found), story(found)),
      await members(context, found),
    ),
  );
  return undefined;
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
  const tiles = [
    ["Vectors", number(cluster.size)],
    ["Subclusters", number(cluster.subclusters)],
    ["First vector", number(cluster.first_seen)],
    ["Newest vector", number(cluster.last_seen)],
  ];
  return el(
    "dl",
    { class: "tiles" },
    ...tiles.map(([title, value]) =>
      el("div", { class: "tile small" }, el("dt", {}, title), el("dd", {}, value))
    ),
  );
}

function story({ story: lines }) {
  const list = el("ol", { class: "story" });
  const add = (some) =>
    list.append(...some.map((line) => {
      const [when, ...what] = line.split(": ");
      return el(
        "li",
        {},
        el("span", { class: "quiet figures" }, foreign(when)),
        foreign(what.join(": ")),
      );
    }));
  const newest = [...lines].reverse();
  add(newest.slice(0, STORY));
  const box = card("History", {}, list);
  if (newest.length > STORY) {
    const rest = () => {
      add(newest.slice(STORY));
      more.remove();
    };
    const more = button(`Show ${number(newest.length - STORY)} older`, rest, { class: "small" });
    box.append(more);
  }
  if (!lines.length) {
    box.append(el("p", { class: "quiet" }, "The events of this cluster are no longer kept."));
  }
  return box;
}

/** Return the card with the vectors of a cluster and their payloads, newest first. */
async function members(context, { id, exemplars }) {
  const list = el("ul", { class: "members" });
  const again = () =>
    load().catch((error) => {
      more.disabled = false;
      context.report(error);
    });
  const more = button("Show older ones", again, { hidden: true });
  let before;
  const load = async () => {
    more.disabled = true;
    const { vectors, next } = await context.get(`clusters/${id}/vectors`, { limit: PAGE, before });
    list.append(...vectors.map((vector) => member(context, vector, exemplars)));
    before = next;
    more.hidden = next === null;
    more.disabled = false;
  };
  const order = el("span", { class: "quiet small-text" }, "newest first");
  const box = card("Vectors", { more: order }, list, el("div", { class: "buttons centred" }, more));
  try {
    await load();
  } catch (error) {
    if (error.kind !== "not-tracked") throw error;
    list.replaceWith(
      el(
        "p",
        { class: "quiet" },
        "This namespace does not track vectors, only subclusters.",
      ),
    );
  }
  return box;
}

function member(context, { vector, payload: said }, exemplars) {
  const marks = Object.entries(MARKS).filter(([kind]) => exemplars?.[kind]?.includes(vector));
  return el(
    "li",
    { class: "member" },
    el("span", { class: "quiet figures number" }, number(vector)),
    payload(context, said),
    el(
      "span",
      { class: "tags" },
      ...marks.map(([kind, [tone, title]]) => el("span", { class: `tag ${tone}`, title }, kind)),
    ),
  );
}
