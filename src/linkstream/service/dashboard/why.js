/** Why a vector is in its cluster: sentences, and its similarity to this and the next clusters. */

import { button, el, figure, foreign, number } from "./elements.js";
import { chip } from "./parts.js";

/**
 * @param {import("./app.js").Context} context
 * @param {{vector: number, cluster: number, similarity: number|null, words: string[],
 *   others: {cluster: number, similarity: number}[]}} why
 * @param {() => void} close
 */
export function whyPanel(context, { vector, cluster, similarity, words, others }, close) {
  const rows = [
    ...(similarity === null ? [] : [{ cluster, similarity, own: true }]),
    ...others.map((other) => ({ ...other, own: false })),
  ];
  return el(
    "section",
    { class: "why", "aria-label": `Why vector ${number(vector)} is here` },
    el(
      "div",
      { class: "why-head" },
      el("h3", {}, `Why vector ${number(vector)} is here`),
      button("Close", close, { class: "small" }),
    ),
    el("ul", { class: "why-words" }, ...words.map((each) => el("li", {}, foreign(each)))),
    el(
      "ul",
      { class: "why-bars", "aria-label": "Similarities" },
      ...rows.map((row) => bar(context, row)),
    ),
  );
}

function bar(context, { cluster, similarity, own }) {
  const share = `${(100 * Math.min(Math.max(similarity, 0), 1)).toFixed(1)}%`;
  const link = chip(context, cluster);
  return el(
    "li",
    { class: `why-bar ${link.classList[1]}` },
    link,
    el("span", { class: "size-bar", "aria-hidden": "true", vars: { "--share": share } }),
    el("span", { class: "figures" }, figure(similarity, 2)),
    el("span", { class: "quiet small-text" }, own ? "this cluster" : ""),
  );
}
