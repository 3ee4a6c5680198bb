/** Why: a decision in words, with the item, its numbers, and what ties it to its cluster. */

import { button, called, el, figure, foreign, number } from "./elements.js";
import { gauge } from "./charts.js";
import { chip, payload, percent, unknown } from "./parts.js";
import { momentWords } from "./times.js";

const MEANINGS = {
  joined: "It joined a group of vectors that are very similar, in this cluster.",
  linked: "It is similar enough to this cluster, and began a new group in it.",
  new: "No cluster was similar enough, so that it began a new one.",
  held: "The decision was not sure enough. It waits for you.",
};
const WANTED = 4; // items of the cluster that are asked for, to find another one

/**
 * Show why a decision was made.
 * @param {import("./app.js").Context} context
 * @param {any} decision
 * @param {{name: string|null, sure: any}} known
 */
export function showWhy(context, decision, { name, sure }) {
  const close = () => {
    dialog.close();
    dialog.remove();
    context.signal.removeEventListener("abort", close);
  };
  const { vector, cluster, kind, similarity, threshold } = decision;
  const held = kind === "held";
  const reasons = el("div", { class: "decision-reasons" }, el("p", { class: "quiet" }, "…"));
  const dialog = el(
    "dialog",
    { class: "card decision-why", "aria-labelledby": "why-title", on: { cancel: close } },
    el(
      "h2",
      { id: "why-title" },
      held ? "Why is it held?" : kind === "new" ? "Why a new cluster?" : "Why this cluster?",
    ),
    el("div", { class: "decision-item" }, payload(context, decision.payload)),
    el(
      "p",
      {},
      held ? "" : chip(context, cluster, name),
      held ? "" : " · ",
      el(
        "span",
        { class: "quiet" },
        `${capital(momentWords(decision))} · vector ${number(vector)}`,
      ),
    ),
    el("p", {}, MEANINGS[kind] ?? kind),
    Number.isFinite(similarity) && gauge(similarity, threshold),
    el(
      "p",
      { class: "quiet" },
      "Probability that the decision is right: ",
      Number.isFinite(decision.probability)
        ? el("strong", {}, percent(decision.probability))
        : foreign(unknown(sure)),
    ),
    reasons,
    el(
      "div",
      { class: "buttons" },
      !held && el("a", { class: "button-link", href: context.link("cluster", cluster) }, "Open it"),
      held && el("a", { class: "button-link", href: context.link("held") }, "Decide on it"),
      button("Close", close, { class: "main" }),
    ),
  );
  dialog.addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target === dialog || target.closest("a")) close();
  });
  context.signal.addEventListener("abort", close);
  document.body.append(dialog);
  dialog.showModal();
  tell(context, decision).then(
    (words) => reasons.replaceChildren(...words),
    (error) => reasons.replaceChildren(el("p", { class: "quiet" }, foreign(error.seen ?? ""))),
  );
}

/** Return what is true of the item now: where it is, and what ties it to another one there. */
async function tell(context, { vector, cluster, kind }) {
  if (kind === "held") return [];
  const now = await context.get(`vectors/${vector}`);
  if (now.cluster < 0) return [el("p", {}, "Now it is held: it waits for a decision.")];
  const moved = [];
  if (now.cluster !== cluster) {
    const { cluster: about } = await context.get(`clusters/${now.cluster}`, { brief: true });
    const link = chip(context, now.cluster, about?.name ?? null);
    moved.push(el("p", {}, "Since then it went to ", link, "."));
  }
  const { vectors } = await context.get(`clusters/${now.cluster}/vectors`, { limit: WANTED });
  const other = vectors.find((each) => each.vector !== vector);
  if (!other) {
    return [...moved, el("p", {}, `It is the only vector of ${called(now.cluster, null)}.`)];
  }
  const pair = await context.get("explain", { a: vector, b: other.vector, of: "vectors" });
  return [
    ...moved,
    el("h3", {}, "What ties it to another vector of this cluster"),
    el("div", { class: "decision-item" }, payload(context, other.payload)),
    el("p", { class: "decision-words" }, foreign(pair.words, 1200)),
  ];
}

const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** Return the figures of a decision as a title. */
export function evidence({ similarity, threshold }) {
  return Number.isFinite(similarity)
    ? `similarity ${figure(similarity)}, threshold ${figure(threshold)}`
    : "the similarity is not kept";
}
