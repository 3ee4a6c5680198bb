/** A small chart of one figure over time, as SVG; labels are HTML, so that they keep their size. */

import { el, svg } from "/page/elements.js";

const WIDTH = 600;
const HEIGHT = 120;
const SHORTEST = 60; // seconds from left to right, at least

/**
 * A chart that is drawn again by `draw(points)`, points being [time in seconds, value].
 * @param {string} title @param {(value: number) => string} words of a value
 * @param {{step?: boolean, colour?: string}} [options] step: the value holds until the next one
 */
export function timeChart(title, words, { step = false, colour = "c0" } = {}) {
  const area = svg("path", { class: "chart-area" });
  const line = svg("path", { class: "chart-line" });
  const middle = HEIGHT / 2;
  const picture = svg("svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    svg("path", { class: "chart-grid", d: `M0 ${middle}H${WIDTH}M0 0.5H${WIDTH}` }), area, line);
  const [high, half] = ["high", "half"].map((name) => el("span", { class: `chart-${name}` }));
  const from = el("span");
  const root = el("figure", { class: `chart ${colour}` },
    el("div", { class: "chart-body" }, picture, high, half),
    el("figcaption", { class: "chart-feet" }, from, el("span", {}, "now")));
  const draw = (points) => {
    const last = points.at(-1)?.[0] ?? 1;
    const first = Math.min(points[0]?.[0] ?? 0, last - SHORTEST);
    const top = niceTop(points.reduce((best, [, value]) => Math.max(best, value), 0));
    const x = (time) => ((time - first) / Math.max(last - first, 1)) * WIDTH;
    const y = (value) => HEIGHT - (value / top) * (HEIGHT - 4);
    const path = pathOf(points, x, y, step);
    line.setAttribute("d", path);
    area.setAttribute("d", path && `${path}V${HEIGHT}H${x(points[0][0]).toFixed(1)}Z`);
    high.textContent = words(top);
    half.textContent = words(top / 2);
    from.textContent = points.length > 1 ? ago(last - first) : "";
    const now = points.length ? `: ${words(points.at(-1)[1])} now` : "";
    picture.setAttribute("aria-label", title + now);
  };
  draw([]);
  return { root, draw };
}

function pathOf(points, x, y, step) {
  let path = "";
  points.forEach(([time, value], place) => {
    const [right, up] = [x(time).toFixed(1), y(value).toFixed(1)];
    if (place === 0) path = `M${right} ${up}`;
    else path += step ? `H${right}V${up}` : `L${right} ${up}`;
  });
  return path;
}

/** The least of 1, 2, 4, 10, 20, 40, … that is not below a value, so that halves are round. */
export function niceTop(value) {
  if (!(value > 1)) return value > 0.5 ? 1 : value > 0 ? 0.5 : 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((times) => times * power >= value);
  return factor * power;
}

function ago(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return `${(seconds / 3600).toFixed(1)} h ago`;
}
