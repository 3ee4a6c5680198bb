/** A similarity on a scale whose middle is the threshold it is held against. */

import { el, figure, svg } from "/page/elements.js";

const REACH = 0.25; // of the scale, to either side of the threshold
const [WIDTH, HEIGHT] = [320, 40];

/**
 * @param {number} similarity @param {number} threshold
 * @returns {HTMLElement}
 */
export function gauge(similarity, threshold) {
  const margin = similarity - threshold;
  const share = Math.max(-1, Math.min(1, margin / REACH));
  const middle = WIDTH / 2;
  const at = middle + share * (middle - 12);
  const side = margin < 0 ? "under" : "over";
  const words = `Similarity ${figure(similarity)}, threshold ${figure(threshold)}: ` +
    `${figure(Math.abs(margin))} ${margin < 0 ? "below" : "above"} it`;
  return el("figure", { class: "gauge" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
      svg("rect", { class: "gauge-low", x: 0, y: 16, width: middle, height: 8, rx: 4 }),
      svg("rect", { class: "gauge-high", x: middle, y: 16, width: middle, height: 8, rx: 4 }),
      svg("line", { class: `gauge-reach ${side}`, x1: middle, x2: at, y1: 20, y2: 20 }),
      svg("line", { class: "gauge-threshold", x1: middle, x2: middle, y1: 8, y2: 32 }),
      svg("circle", { class: `gauge-mark ${side}`, cx: at, cy: 20, r: 8 })),
    el("figcaption", { class: "gauge-feet figures" },
      el("span", {}, "different"),
      el("span", {}, "similarity ", el("strong", {}, figure(similarity)),
        ", threshold ", el("strong", {}, figure(threshold))),
      el("span", {}, "same")));
}
