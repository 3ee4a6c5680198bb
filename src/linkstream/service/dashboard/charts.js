/** Charts drawn as SVG. Labels are HTML, so that they keep their size when a chart is stretched. */

import { counted, el, figure, number, svg } from "./elements.js";

const ROW_HEIGHT = 60; // of one histogram
const FLAG = 76; // width of a flag in pixels
const REACH = 0.25; // similarity shown on either side of the threshold of a gauge
const [GAUGE_WIDTH, GAUGE_HEIGHT] = [320, 40];

/** Return the smallest round number that is at least `value` and has a round half. */
export function niceTop(value) {
  if (!(value > 1)) return value > 0.5 ? 1 : value > 0 ? 0.5 : 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((times) => times * power >= value);
  return factor * power;
}

/**
 * Histograms below each other on one axis, with vertical lines across all of them.
 *
 * Each histogram has its own scale, because there are many more pairs than edges.
 */
export class Histograms {
  /**
   * @param {string} title
   * @param {{low: number, width: number, count: number}} bins
   * @param {[number, number]} window start and end of the axis
   * @param {{name: string, title: string, one: string, colour: string}[]} groups
   */
  constructor(title, bins, window, groups) {
    this.bins = bins;
    this.from = window[0];
    this.to = window[1];
    this.lines = new Map();
    this.rows = groups.map((group) => this.row(group));
    this.flags = el("div", { class: "histogram-flags", "aria-hidden": "true" });
    this.root = el(
      "figure",
      { class: "histograms", "aria-label": title },
      this.flags,
      ...this.rows.map((row) => row.root),
      this.axis(),
    );
  }

  row(group) {
    const bars = svg("g", { class: "histogram-bars" });
    const lines = svg("g", {});
    const band = svg("rect", {
      class: "histogram-band",
      y: "0",
      height: String(ROW_HEIGHT),
      width: "0",
    });
    const most = el("span", { class: "histogram-most quiet figures" });
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 1000 ${ROW_HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": group.title,
      },
      band,
      bars,
      lines,
    );
    const root = el(
      "div",
      { class: "histogram", data: { name: group.name } },
      el("p", { class: "histogram-title" }, group.title, " ", most),
      el("div", { class: `histogram-plot ${group.colour}` }, picture),
    );
    return { group, bars, lines, band, most, picture, root };
  }

  axis() {
    const ticks = [];
    for (let tick = Math.ceil(this.from * 10 - 1e-9); tick <= this.to * 10 + 1e-9; tick += 1) {
      ticks.push(
        el(
          "span",
          { vars: { "--at": `${this.share(tick / 10).toFixed(2)}%` } },
          (tick / 10).toFixed(1).replace("-", "−"),
        ),
      );
    }
    return el("figcaption", { class: "histogram-axis quiet figures" }, ...ticks);
  }

  /** Return the position of a value along the axis, in per cent. */
  share(value) {
    return (100 * (value - this.from)) / (this.to - this.from);
  }

  /**
   * Draw the counts of each group; `marked(name, bin)` selects the bars to highlight.
   * @param {Object<string, number[]|null>} counts
   * @param {(name: string, bin: number) => boolean} [marked]
   */
  draw(counts, marked = () => false) {
    for (const { group, bars, most, picture } of this.rows) {
      const values = counts[group.name] ?? [];
      const [all, top, beyond] = summed(values);
      bars.replaceChildren(
        ...values.flatMap((value, bin) => this.bar(value, top, bin, marked(group.name, bin))),
      );
      most.textContent = all
        ? `${counted(all, group.one)}, at most ${number(top)} in a bar${beyond}`
        : "none";
      picture.setAttribute("aria-label", `${group.title}: ${most.textContent}`);
    }
  }

  bar(value, top, bin, marked) {
    const left = this.bins.low + bin * this.bins.width;
    if (!value || left + this.bins.width <= this.from + 1e-9 || left >= this.to - 1e-9) return [];
    const [start, end] = [this.share(left) * 10, this.share(left + this.bins.width) * 10];
    const high = Math.max((ROW_HEIGHT - 4) * Math.min(value / top, 1), 1.5);
    return [svg("rect", {
      class: marked ? "marked" : null,
      x: (start + 0.6).toFixed(1),
      width: Math.max(end - start - 1.2, 0.8).toFixed(1),
      y: (ROW_HEIGHT - high).toFixed(1),
      height: high.toFixed(1),
    })];
  }

  /** Draw a line with a flag across all histograms, or move the line of this name. */
  line(name, label, value, kind = "") {
    let line = this.lines.get(name);
    if (!line) {
      line = { flag: el("span", { class: `histogram-flag ${kind}`, data: { name } }), rows: [] };
      this.flags.append(line.flag);
      for (const row of this.rows) {
        const stroke = svg("line", {
          class: `histogram-line ${kind}`,
          y1: "0",
          y2: String(ROW_HEIGHT),
        });
        row.lines.append(stroke);
        line.rows.push(stroke);
      }
      this.lines.set(name, line);
    }
    const share = this.share(value);
    line.flag.textContent = label;
    line.flag.dataset.at = value.toFixed(4);
    for (const stroke of line.rows) {
      stroke.setAttribute("x1", (share * 10).toFixed(1));
      stroke.setAttribute("x2", (share * 10).toFixed(1));
    }
  }

  /** Raise flags that overlap; call this after a line or the width changes. */
  arrange() {
    const wide = this.root.clientWidth || 700;
    const ends = []; // right end of the last flag of each level
    const flags = [...this.lines.values()].map(({ flag }) => flag);
    flags.sort((one, other) => Number(one.dataset.at) - Number(other.dataset.at));
    for (const flag of flags) {
      const middle = (this.share(Number(flag.dataset.at)) / 100) * wide;
      const left = Math.min(Math.max(middle - FLAG / 2, 0), wide - FLAG);
      let level = ends.findIndex((end) => end <= left);
      if (level < 0) level = ends.length;
      ends[level] = left + FLAG;
      flag.style.setProperty("--left", `${left.toFixed(1)}px`);
      flag.style.setProperty("--level", String(level));
    }
    this.root.style.setProperty("--levels", String(Math.max(ends.length, 1)));
  }

  /** Shade a part of the axis, or nothing if `from` is null. */
  shade(from, to) {
    const [start, end] = [this.share(from ?? 0) * 10, this.share(to ?? 0) * 10];
    for (const { band } of this.rows) {
      band.setAttribute("x", Math.max(start, 0).toFixed(1));
      band.setAttribute(
        "width",
        from === null ? "0" : Math.max(end - Math.max(start, 0), 0).toFixed(1),
      );
    }
  }
}

/** Return the total, the highest bar between the two end bins, and a text about the end bins. */
function summed(values) {
  const all = values.reduce((sum, value) => sum + value, 0);
  const ends = (values[0] ?? 0) + (values.at(-1) ?? 0);
  const top = values.slice(1, -1).reduce((best, value) => Math.max(best, value), 0);
  if (top === 0) return [all, Math.max(values[0] ?? 0, values.at(-1) ?? 0, 1), ""];
  return [all, top, ends ? `, ${number(ends)} at the ends or beyond` : ""];
}

/**
 * Draw a similarity on a scale with the threshold in the middle.
 * @param {number} similarity
 * @param {number} threshold
 * @param {string} [by] the encoder that sees it so
 * @returns {HTMLElement}
 */
export function gauge(similarity, threshold, by = "") {
  const margin = similarity - threshold;
  const words = `Similarity ${figure(similarity)}, threshold ${figure(threshold)}: ` +
    `${figure(Math.abs(margin))} ${margin < 0 ? "below" : "above"} it`;
  return scale(
    margin,
    by ? `${capital(by)}: ${words}` : words,
    by && `${by}: `,
    "similarity ",
    el("strong", {}, figure(similarity)),
    ", threshold ",
    el("strong", {}, figure(threshold)),
  );
}

/**
 * Draw a margin on the same scale, where its similarity is not known any more.
 * @param {number} margin
 * @param {string} by the encoder that saw it so
 * @returns {HTMLElement}
 */
export function marginGauge(margin, by) {
  const side = margin < 0 ? "below" : "above";
  return scale(
    margin,
    `${capital(by)}: ${figure(Math.abs(margin))} ${side} its threshold`,
    `${by}: `,
    el("strong", {}, figure(Math.abs(margin))),
    ` ${side} its threshold`,
  );
}

const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** Return a scale around a threshold with a mark, a label for screen readers, and a caption. */
function scale(margin, label, ...caption) {
  const share = Math.max(-1, Math.min(1, margin / REACH));
  const middle = GAUGE_WIDTH / 2;
  const at = middle + share * (middle - 12);
  const side = margin < 0 ? "under" : "over";
  return el(
    "figure",
    { class: "gauge" },
    svg(
      "svg",
      { viewBox: `0 0 ${GAUGE_WIDTH} ${GAUGE_HEIGHT}`, role: "img", "aria-label": label },
      svg("rect", { class: "gauge-low", x: 0, y: 16, width: middle, height: 8, rx: 4 }),
      svg("rect", { class: "gauge-high", x: middle, y: 16, width: middle, height: 8, rx: 4 }),
      svg("line", { class: `gauge-reach ${side}`, x1: middle, x2: at, y1: 20, y2: 20 }),
      svg("line", { class: "gauge-threshold", x1: middle, x2: middle, y1: 8, y2: 32 }),
      svg("circle", { class: `gauge-mark ${side}`, cx: at, cy: 20, r: 8 }),
    ),
    el(
      "figcaption",
      { class: "gauge-feet figures" },
      el("span", {}, "different"),
      el("span", {}, ...caption),
      el("span", {}, "same"),
    ),
  );
}
