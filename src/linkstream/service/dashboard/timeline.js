/**
 * A chart of one value over real time: bars or steps, with times on the axis. The pointer or the
 * arrow keys read single values.
 */

import { el, svg } from "./elements.js";
import { niceTop } from "./charts.js";
import { clock, when } from "./times.js";

const [WIDTH, HEIGHT] = [600, 120];
const TICKS = 4; // about this many times on the axis
const DAY = 86_400;
const STEPS = [
  ...[30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200],
  ...[1, 2, 7, 14, 30, 90, 180, 365, 730, 1825].map((days) => days * DAY),
];

/**
 * Return a chart; `draw(line, values)` draws values in the bins of a timeline, null for unknown.
 * @param {string} title
 * @param {(value: number) => string} figures  formats a value for the axis
 * @param {{bars?: boolean, colour?: string, unit?: string}} [options]  unit: after a value that is
 *   read
 */
export function timelineChart(title, figures, { bars = false, colour = "c0", unit = "" } = {}) {
  const words = (value) => `${figures(value)}${unit}`;
  const shape = svg("path", { class: bars ? "chart-bars" : "chart-line" });
  const area = svg("path", { class: "chart-area" });
  const mark = svg("line", { class: "chart-mark", y1: 0, y2: HEIGHT, hidden: true });
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      tabindex: "0",
      "aria-label": title,
    },
    svg("path", { class: "chart-grid", d: `M0 ${HEIGHT / 2}H${WIDTH}M0 0.5H${WIDTH}` }),
    area,
    shape,
    mark,
  );
  const [high, half] = ["high", "half"].map((name) => el("span", { class: `chart-${name}` }));
  const ticks = el("div", { class: "chart-ticks", "aria-hidden": "true" });
  const readout = el("p", { class: "chart-readout quiet figures", role: "status" }, "\u00a0");
  const root = el(
    "figure",
    { class: `chart timeline ${colour}` },
    readout,
    el("div", { class: "chart-body" }, picture, high, half),
    ticks,
  );
  let [line, values, at] = [null, [], null];

  const draw = (given, some) => {
    [line, values] = [given, some];
    const known = values.filter((value) => value !== null);
    const top = niceTop(Math.max(0, ...known));
    const y = (value) => HEIGHT - (value / top) * (HEIGHT - 4);
    shape.setAttribute("d", bars ? barPath(values, y) : stepPath(values, y));
    area.setAttribute("d", bars ? "" : areaPath(values, y));
    high.textContent = figures(top);
    half.textContent = figures(top / 2);
    ticks.replaceChildren(...axis(line));
    const now = known.length ? `${words(known.at(-1))} now` : "no values yet";
    const label = `${title}, from ${when(line.start)} to ${clock(line.now)}: ${now}, at most ${
      words(Math.max(0, ...known))
    }. Arrow keys read single values.`;
    picture.setAttribute("aria-label", label);
    if (at !== null) read(at);
  };
  const read = (bin) => {
    at = Math.min(Math.max(bin, 0), values.length - 1);
    const value = values[at];
    const x = ((at + 0.5) / values.length) * WIDTH;
    mark.setAttribute("x1", x.toFixed(1));
    mark.setAttribute("x2", x.toFixed(1));
    mark.removeAttribute("hidden");
    const [from, to] = [line.time[at] - line.width, line.time[at]];
    readout.textContent = `${span(from, to, line.width)}: ${
      value === null ? "unknown" : words(value)
    }`;
  };
  const leave = () => {
    at = null;
    mark.setAttribute("hidden", "");
    readout.textContent = "\u00a0";
  };
  picture.addEventListener("pointermove", (event) => {
    if (!values.length) return;
    const box = picture.getBoundingClientRect();
    read(Math.floor(((event.clientX - box.left) / box.width) * values.length));
  });
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("blur", leave);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !values.length) return;
    event.preventDefault();
    read((at ?? values.length) + step);
  });
  return { root, draw };
}

function span(from, to, width) {
  if (width < 60) return `${clock(from, true)} to ${clock(to, true)}`;
  return width < DAY ? `${when(from)} to ${clock(to)}` : `${when(from)} to ${when(to)}`;
}

function barPath(values, y) {
  const wide = WIDTH / values.length;
  const gap = Math.min(wide * 0.15, 1.5);
  return values.map((value, bin) => {
    if (!value) return "";
    const [left, right] = [bin * wide + gap, (bin + 1) * wide - gap].map((x) => x.toFixed(1));
    return `M${left} ${HEIGHT}V${Math.min(y(value), HEIGHT - 2).toFixed(1)}H${right}V${HEIGHT}Z`;
  }).join("");
}

function stepPath(values, y) {
  const wide = WIDTH / values.length;
  let path = "";
  values.forEach((value, bin) => {
    if (value === null) return;
    const [left, right] = [bin * wide, (bin + 1) * wide].map((x) => x.toFixed(1));
    const up = y(value).toFixed(1);
    path += path ? `V${up}H${right}` : `M${left} ${up}H${right}`;
  });
  return path;
}

function areaPath(values, y) {
  const first = values.findIndex((value) => value !== null);
  if (first < 0) return "";
  const left = ((first * WIDTH) / values.length).toFixed(1);
  return `${stepPath(values, y)}V${HEIGHT}H${left}Z`;
}

/** Return the times on the axis, at round times of the clock of the reader. */
function axis({ start, now }) {
  const length = now - start;
  const step = STEPS.find((each) => length / each <= TICKS) ?? STEPS.at(-1);
  const zone = new Date(now * 1000).getTimezoneOffset() * 60;
  const marks = [];
  for (let time = Math.ceil((start - zone) / step) * step + zone; time <= now; time += step) {
    const share = (100 * (time - start)) / length;
    if (share < 6 || share > 94) continue; // its words would be cut off
    const words = step < 60
      ? clock(time, true)
      : step < DAY
      ? clock(time)
      : when(time).split(",")[0];
    marks.push(el("span", { vars: { "--at": `${share.toFixed(2)}%` } }, words));
  }
  return marks;
}
