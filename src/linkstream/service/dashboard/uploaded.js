/** What an upload has come to: counts, and the rows that cannot be added. */

import { el, foreign, number } from "./elements.js";

/** Return counts with their words; those of zero are left out, but the first. */
export function figures(pairs) {
  return el(
    "dl",
    { class: "begin-figures" },
    ...pairs.filter(([count], place) => count || place === 0).map(([count, words]) =>
      el(
        "div",
        {},
        el("dt", { class: "quiet" }, words),
        el("dd", { class: "figures" }, number(count)),
      )
    ),
  );
}

/** Return the first wrong rows, each with its reason and what to do. */
export function badList({ count, first }) {
  const rest = count - first.length;
  return el(
    "ul",
    { class: "bad-rows", "aria-label": "Rows that cannot be added" },
    ...first.map(({ seen, expected, remedy }) =>
      el(
        "li",
        {},
        el("p", {}, foreign(seen, 200)),
        el(
          "p",
          { class: "quiet small-text" },
          "Expected: ",
          foreign(expected),
          ". ",
          foreign(remedy),
        ),
      )
    ),
    rest > 0 && el("li", { class: "quiet" }, `and ${number(rest)} more`),
  );
}
