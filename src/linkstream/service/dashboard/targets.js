/**
 * Choose a cluster: the most similar ones first, with vectors to look at, then a search by name.
 * Joins and moves use it.
 */

import { button, called, counted, el, figure, foreign, slot } from "./elements.js";
import { percent, thumbs } from "./parts.js";

const NEAREST = 8;
const FOUND = 12;
const SHOWN = 4; // vectors to look at of each cluster
const TYPING = 200; // milliseconds from the last keystroke to the search
const APART = {
  correction: "A correction keeps both apart.",
  name: "Both have names: joining needs one name to be removed first.",
};

/** Return the panel that joins a cluster with another one; it calls `run` with the correction. */
export function joinPanel(context, id, cluster, run, close) {
  const who = called(id, cluster.name);
  const choose = (other) => {
    const words = `${who} and ${called(other.id, other.name)} are one cluster now`;
    return run("same", { a: id, b: other.id, of: "clusters" }, words);
  };
  const own = el("div", { class: "join-own" }, el("h3", {}, "This cluster"));
  const mine = context.get(`clusters/${id}`, { brief: true, exemplars: 8 });
  mine.then(({ cluster: about }) => {
    if (!about) return;
    own.append(
      el("p", { class: "quiet small-text" }, who, ", ", counted(about.size, "vector")),
      thumbs(context, about.exemplars ?? []),
    );
  }, context.report);
  const list = targets(context, {
    label: "The same as",
    verb: "Join",
    nearest: { cluster: id },
    without: id,
    choose,
    close,
  });
  return el("div", { class: "join" }, own, list);
}

/**
 * Return a list of clusters to choose from, with a search.
 * @param {import("./app.js").Context} context
 * @param {{label: string, verb: string, nearest: object, without: number|null,
 *   choose: (other: {id: number, name: string|null}) => any, close: () => void}} wanted
 *   nearest: the query of the route `nearest`; without: a cluster that is left out
 */
export function targets(context, { label, verb, nearest, without, choose, close }) {
  const input = el("input", {
    id: "other",
    type: "search",
    autocomplete: "off",
    maxlength: 200,
    placeholder: "Name or ID",
  });
  const found = el("ul", { class: "targets", "aria-label": "Clusters to choose from" });
  const told = el("p", { class: "quiet small-text", role: "status" }, "Looking for similar ones…");
  let [asked, timer] = [0, 0];
  const draw = (words, clusters) => {
    told.textContent = words;
    found.replaceChildren(
      ...clusters.map((other) => el("li", {}, target(context, other, verb, () => choose(other)))),
    );
  };
  const look = async () => {
    const mine = ++asked;
    const q = input.value.trim();
    try {
      const { clusters } = q
        ? await context.get("clusters", { q, limit: FOUND + 1, exemplars: SHOWN })
        : await similar(context, nearest);
      if (mine !== asked) return;
      const others = clusters.filter((other) => other.id !== without).slice(0, FOUND);
      const none = q ? "No other cluster matches." : "There is no other cluster.";
      draw(others.length ? (q ? "Found" : "The most similar first") : none, others);
    } catch (error) {
      context.report(error);
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, TYPING);
  });
  look();
  const form = el(
    "form",
    { class: "stack", on: { submit: (event) => event.preventDefault() } },
    el(
      "div",
      { class: "line-form" },
      el("label", { for: "other" }, label),
      input,
      button("Cancel", close),
    ),
    told,
    found,
  );
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  return form;
}

/** Return the most similar clusters; the largest ones where vectors are not kept. */
async function similar(context, nearest) {
  try {
    return await context.get("nearest", { ...nearest, limit: NEAREST, exemplars: SHOWN });
  } catch (error) {
    if (error.kind !== "not-tracked") throw error;
    return context.get("clusters", { limit: NEAREST, exemplars: SHOWN });
  }
}

function target(context, other, verb, run) {
  const who = called(other.id, other.name);
  const alike = Number.isFinite(other.probability)
    ? `${percent(other.probability)} the same`
    : Number.isFinite(other.similarity) && `similarity ${figure(other.similarity, 2)}`;
  const choose = el(
    "button",
    {
      type: "button",
      class: "choice",
      on: { click: run },
      "aria-label": `${verb}: ${who}, ${counted(other.size, "vector")}`,
    },
    el("span", { class: "dot", "aria-hidden": "true" }),
    el(
      "span",
      { class: "choice-words" },
      el("strong", {}, other.name === null ? `ID ${other.id}` : foreign(other.name, 40)),
      el(
        "span",
        { class: "quiet figures small-text" },
        [counted(other.size, "vector"), alike].filter(Boolean).join(" · "),
      ),
    ),
    el("span", { class: "choice-verb" }, verb),
  );
  return el(
    "article",
    { class: `target ${slot(other.id)}`, "aria-label": who },
    thumbs(context, other.exemplars ?? []),
    choose,
    other.apart && el("p", { class: "quiet small-text" }, APART[other.apart]),
  );
}
