/**
 * Histograms one below the other on one axis, with lines across all of them.
 *
 * Each has a scale of its own, since there are many more pairs than edges. Drawn as SVG; words are
 * HTML so that they keep their size.
 */

import { counted, el, number, svg } from "/page/elements.js";

const HEIGHT = 60;
const FLAG = 76; // pixels that a flag is wide

export class Histograms {
  /**
   * @param {string} title
   * @param {{low: number, width: number, count: number}} bins
   * @param {[number, number]} window from where to where the axis goes
   * @param {{name: string, title: string, one: string, colour: string}[]} groups
   */
  constructor(title, bins, window, groups) {
    this.bins = bins;
    [this.from, this.to] = window;
    this.lines = new Map();
    this.rows = groups.map((group) => this.row(group));
    this.flags = el("div", { class: "histogram-flags", "aria-hidden": "true" });
    this.root = el("figure", { class: "histograms", "aria-label": title }, this.flags,
      ...this.rows.map((row) => row.root), this.axis());
  }

  row(group) {
    const bars = svg("g", { class: "histogram-bars" });
    const lines = svg("g", {});
    const band = svg("rect", { class: "histogram-band", y: "0", height: String(HEIGHT), width: "0" });
    const most = el("span", { class: "histogram-most quiet figures" });
    const picture = svg("svg", { viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": group.title }, band, bars, lines);
    const root = el("div", { class: "histogram", data: { name: group.name } },
      el("p", { class: "histogram-title" }, group.title, " ", most), el("div", { class: `histogram-plot ${group.colour}` }, picture));
    return { group, bars, lines, band, most, picture, root };
  }

  axis() {
    const ticks = [];
    for (let tick = Math.ceil(this.from * 10 - 1e-9); tick <= this.to * 10 + 1e-9; tick += 1) {
      ticks.push(el("span", { vars: { "--at": `${this.share(tick / 10).toFixed(2)}%` } }, (tick / 10).toFixed(1).replace("-", "−")));
    }
    return el("figcaption", { class: "histogram-axis quiet figures" }, ...ticks);
  }

  /** Per cent of the way along the axis. */
  share(value) {
    return (100 * (value - this.from)) / (this.to - this.from);
  }

  /**
   * Draw counts of the bins, by name of group; `marked(name, bin)` says which bars stand out.
   * @param {Object<string, number[]|null>} counts
   */
  draw(counts, marked = () => false) {
    for (const { group, bars, most, picture } of this.rows) {
      const values = counts[group.name] ?? [];
      const [all, top, beyond] = summed(values);
      bars.replaceChildren(...values.flatMap((value, bin) => this.bar(value, top, bin, marked(group.name, bin))));
      most.textContent = all ? `${counted(all, group.one)}, at most ${number(top)} in a bar${beyond}` : "none";
      picture.setAttribute("aria-label", `${group.title}: ${most.textContent}`);
    }
  }

  bar(value, top, bin, marked) {
    const left = this.bins.low + bin * this.bins.width;
    if (!value || left + this.bins.width <= this.from + 1e-9 || left >= this.to - 1e-9) return [];
    const [start, end] = [this.share(left) * 10, this.share(left + this.bins.width) * 10];
    const high = Math.max((HEIGHT - 4) * Math.min(value / top, 1), 1.5);
    return [svg("rect", {
      class: marked ? "marked" : null, x: (start + 0.6).toFixed(1), width: Math.max(end - start - 1.2, 0.8).toFixed(1),
      y: (HEIGHT - high).toFixed(1), height: high.toFixed(1),
    })];
  }

  /** Put a line across all, with a flag above; the same name moves it. */
  line(name, label, value, kind = "") {
    let line = this.lines.get(name);
    if (!line) {
      line = { flag: el("span", { class: `histogram-flag ${kind}`, data: { name } }), rows: [] };
      this.flags.append(line.flag);
      for (const row of this.rows) {
        const stroke = svg("line", { class: `histogram-line ${kind}`, y1: "0", y2: String(HEIGHT) });
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

  /** Raise flags that would cover one another; after lines or the width have changed. */
  arrange() {
    const wide = this.root.clientWidth || 700;
    const ends = []; // of each level, how far it is taken
    const flags = [...this.lines.values()].map(({ flag }) => flag);
    flags.sort((one, other) => Number(one.dataset.at) - Number(other.dataset.at));
    for (const flag of flags) {
      const middle = (this.share(Number(flag.dataset.at)) / 100) * wide;
      const left = Math.min(Math.max(middle - FLAG / 2, 0), wide - FLAG);
      let level = ends.findIndex((end) => end <= left);
      if (level < 0) level = ends.length;
      ends[level] = left + FLAG;
      flag.style.setProperty("--left", `${left.toFixed(1)}px`);
      flag.style.setProperty("--level", level);
    }
    this.root.style.setProperty("--levels", Math.max(ends.length, 1));
  }

  /** Shade a part of the axis; nothing where it has no beginning. */
  shade(from, to) {
    const [start, end] = [this.share(from ?? 0) * 10, this.share(to ?? 0) * 10];
    for (const { band } of this.rows) {
      band.setAttribute("x", Math.max(start, 0).toFixed(1));
      band.setAttribute("width", from === null ? "0" : Math.max(end - Math.max(start, 0), 0).toFixed(1));
    }
  }
}

/** All together; the most in a bar; and words for what lies beyond the ends, which has no scale. */
function summed(values) {
  const all = values.reduce((sum, value) => sum + value, 0);
  const ends = (values[0] ?? 0) + (values.at(-1) ?? 0);
  const top = values.slice(1, -1).reduce((best, value) => Math.max(best, value), 0);
  if (top === 0) return [all, Math.max(values[0] ?? 0, values.at(-1) ?? 0, 1), ""];
  return [all, top, ends ? `, ${number(ends)} at the ends or beyond` : ""];
}
