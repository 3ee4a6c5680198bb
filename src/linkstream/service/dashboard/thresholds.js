/**
 * Thresholds: how near the graph is to them, and what moving them would touch.
 *
 * All figures come from the service (GET …/margins, described in service/margins.py): for every
 * move of T_c and T_p the histogram of margins, for every move of T_s the number of edges. Nothing
 * is computed here but sums of bars, so that no formula has a second home.
 */

import { counted, el, figure, number, signed } from "/page/elements.js";
import { Histograms } from "/page/histogram.js";
import { addLine, card, command, empty } from "/page/parts.js";

const NAMES = {
  cluster_similarity: {
    symbol: "T_c", title: "Cluster similarity",
    words: "How similar a vector is to the true centre of its cluster. Higher asks more of every edge.",
  },
  subcluster_similarity: {
    symbol: "T_s", title: "Subcluster similarity",
    words: "From here on a vector joins a subcluster, and two tied subclusters become one.",
  },
  pair_similarity_max: {
    symbol: "T_p", title: "Pair similarity, most",
    words: "The most that is ever asked of two subclusters, however many vectors they hold.",
  },
};
const GROUPS = [
  { name: "edges", title: "Edges", one: "edge", colour: "c0" },
  { name: "firm", title: "Firm edges, by the parts they hold together", one: "edge", colour: "c2" },
  { name: "pairs", title: "Pairs of clusters nearest to being one", one: "pair", colour: "c1" },
];

/** @param {HTMLElement} root @param {import("./app.js").Context} context */
export async function show(root, context) {
  const figures = await context.get("margins");
  root.append(el("div", { class: "map-head" }, el("h1", {}, "Thresholds"),
    el("p", { class: "quiet" }, "What would they touch, if they were others?")));
  if (!figures.counts.subclusters) {
    root.append(el("section", { class: "card" }, empty("Nothing to compare yet",
      el("p", {}, "Margins appear with the first vectors. Add one:"), addLine(context, null))));
    return;
  }
  const view = new Thresholds(context, figures);
  root.append(...view.parts);
  view.draw();
  const sizes = new ResizeObserver(() => view.arrange());
  sizes.observe(view.similarity.root);
  return () => sizes.disconnect();
}

class Thresholds {
  constructor(context, figures) {
    this.context = context;
    this.figures = figures;
    this.middle = figures.moves.indexOf(0);
    this.at = Object.fromEntries(Object.keys(NAMES).map((name) => [name, this.middle]));
    this.groups = GROUPS.filter(({ name }) => figures[name].shown > 0 || name === "pairs");
    this.build();
  }

  build() {
    const { figures } = this;
    this.similarity = new Histograms("Similarities and the three thresholds", figures.similarity_bins, this.range(), this.groups);
    const { low, width, count } = figures.margin_bins;
    this.margin = new Histograms("Margins", figures.margin_bins, [low, low + width * count], this.groups);
    this.margin.line("zero", "0", 0, "zero");
    this.similarity.draw(Object.fromEntries(this.groups.map(({ name }) => [name, figures[name].similarity])));
    this.sliders = Object.keys(NAMES).map((name) => this.slider(name));
    this.verdict = el("ul", { class: "verdict", "aria-live": "polite" });
    this.reset = el("button", { type: "button", class: "small", disabled: true, on: { click: () => this.back() } }, "Back to now");
    const left = el("div", { class: "thresholds-charts" },
      card("Similarity", { class: "thresholds-similarity" },
        el("p", { class: "quiet small-text" }, "Where the three thresholds lie among the similarities of this graph. The shaded part is what s~ may ask of two: more, the more vectors they hold."),
        this.similarity.root),
      card("Margin: similarity less what s~ asks", { class: "thresholds-margin" },
        el("p", { class: "quiet small-text" }, "Left of 0 an edge fails; from 0 on a pair of clusters is similar enough to be one. Both are red."),
        this.margin.root));
    const right = el("div", { class: "thresholds-side" },
      card("What if", { more: this.reset }, ...this.sliders.map((slider) => slider.root), this.verdict), this.meaning());
    this.parts = [el("div", { class: "thresholds-body" }, left, right)];
  }

  /** From a round figure below all that is shown, to 1. */
  range() {
    const { similarity_bins: bins, thresholds } = this.figures;
    const filled = this.groups.flatMap(({ name }) => this.figures[name].similarity.findIndex((count) => count > 0)).filter((bin) => bin >= 0);
    const lowest = Math.min(...filled.map((bin) => bins.low + bin * bins.width), ...Object.values(thresholds), this.figures.edge.floor[this.middle] ?? 1);
    return [Math.min(Math.floor(lowest * 10 + 1e-9) / 10, 0.8), 1];
  }

  slider(name) {
    const { symbol, title, words } = NAMES[name];
    const value = el("output", { class: "figures", for: name });
    const input = el("input", {
      type: "range", id: name, name, min: 0, max: this.figures.moves.length - 1, step: 1, value: this.middle, "aria-describedby": `${name}-words`,
      on: { input: () => { this.at[name] = Number(input.value); this.draw(); } },
    });
    const root = el("div", { class: "slider" },
      el("label", { for: name }, title, " ", el("span", { class: "quiet" }, symbol)), value, input,
      el("p", { class: "quiet small-text", id: `${name}-words` }, words));
    return { name, input, value, root };
  }

  meaning() {
    const limits = this.limits();
    return card("What this is, and is not", { class: "thresholds-meaning" },
      el("p", {}, "This is what-if on the graph as it is now. It is not a run with other thresholds: had they been others from the start, other subclusters would have come about, and the thresholds of a namespace stay as they were made."),
      limits && el("p", { class: "quiet" }, limits),
      el("p", {}, "To find thresholds for your encoder, run labelled vectors anew:"),
      command("linkstream tune vectors.npz"));
  }

  /** What was not looked at, in words. */
  limits() {
    const { edges, firm, pairs, counts, law } = this.figures;
    const words = [];
    for (const [group, kind] of [[edges, "edges"], [firm, "firm edges"]]) {
      if (group.shown < group.total) words.push(`Of ${number(group.total)} ${kind} ${number(group.shown)} were looked at.`);
    }
    if (pairs.clusters < counts.clusters) words.push(`Of ${number(counts.clusters)} clusters the biggest ${number(pairs.clusters)} were compared.`);
    if (pairs.shown < (pairs.clusters * (pairs.clusters - 1)) / 2) words.push(`Only the ${number(pairs.shown)} pairs of clusters nearest to being one are shown.`);
    if (law) words.push(`${counted(law, "edge is", "edges are")} tied by a person's word; no threshold touches these.`);
    return words.join(" ");
  }

  back() {
    for (const { name, input } of this.sliders) {
      input.value = this.middle;
      this.at[name] = this.middle;
    }
    this.draw();
    this.sliders[0].input.focus();
  }

  value(name) {
    return this.figures.thresholds[name] + this.figures.moves[this.at[name]];
  }

  draw() {
    const { edge, moves, margin_bins: bins } = this.figures;
    const [c, p] = [this.at.cluster_similarity, this.at.pair_similarity_max];
    for (const { name, input, value } of this.sliders) {
      const move = moves[this.at[name]];
      value.textContent = move ? `${figure(this.value(name))} (${signed(move, 2)})` : figure(this.value(name));
      input.setAttribute("aria-valuetext", value.textContent);
      this.similarity.line(name, `${NAMES[name].symbol} ${figure(this.value(name), 2)}`, this.value(name), NAMES[name].symbol);
    }
    this.similarity.shade(edge.floor[c], this.value("pair_similarity_max"));
    const counts = Object.fromEntries(this.groups.map(({ name }) => [name, edge[name][c][p]]));
    this.margin.draw(counts, (name, bin) => (name === "pairs") === (bin >= bins.zero));
    this.arrange();
    this.reset.disabled = Object.values(this.at).every((place) => place === this.middle);
    this.tell(c, p);
  }

  arrange() {
    this.similarity.arrange();
    this.margin.arrange();
  }

  tell(c, p) {
    const { edge, subcluster } = this.figures;
    const s = this.at.subcluster_similarity;
    if (edge.pairs[c][p] === null || subcluster.merged[s] === null) {
      this.verdict.replaceChildren(el("li", { class: "bad-words" }, "There are no such thresholds: each lies between 0 and 1, and T_p is at least T_c squared."));
      return;
    }
    const lines = [
      this.sum("failing", "edges", [c, p], (bin, zero) => bin < zero, "would fail",
        "An edge that fails is cut when a vector next joins one of its ends; its cluster may then split."),
      this.sum("loose", "firm", [c, p], (bin, zero) => bin < zero, "hold parts that are less alike than s~ asks",
        "They stay tied, since equation 22 does not judge them; the review asks about such."),
      this.sum("passing", "pairs", [c, p], (bin, zero) => bin >= zero, "would pass",
        "Clusters do not join by that alone: such pairs are suggested, and joined by settling or healing."),
      this.line("merging", subcluster.merged[s], subcluster.merged[this.middle], subcluster.shown, ["edge", "edges"], "would make two subclusters one",
        "They become one when a vector next joins either. What is one already is not taken apart by a higher T_s."),
    ];
    const joins = this.figures.recent?.joined;
    if (joins) lines.push(this.line("unjoined", subcluster.unjoined[s], 0, joins, ["recent join", "recent joins"], "would not have happened", ""));
    this.verdict.replaceChildren(...lines.filter(Boolean));
  }

  sum(kind, group, [c, p], wanted, does, means) {
    const { edge, margin_bins: bins } = this.figures;
    const total = (counts) => counts.reduce((sum, count, bin) => sum + (wanted(bin, bins.zero) ? count : 0), 0);
    const [one, many] = { edges: ["edge", "edges"], firm: ["firm edge", "firm edges"], pairs: ["pair", "pairs"] }[group];
    return this.line(kind, total(edge[group][c][p]), total(edge[group][this.middle][this.middle]), this.figures[group].shown, [one, many], does, means);
  }

  line(kind, count, now, of, [one, many], does, means) {
    if (!of) return null;
    const change = count === now ? "as now" : `now ${number(now)}`;
    return el("li", { data: { kind, count: String(count) }, class: count === now ? null : "changed" },
      el("p", {}, el("strong", { class: "figures" }, number(count)), ` of ${counted(of, one, many)} ${does} `, el("span", { class: "quiet" }, `(${change})`)),
      means && el("p", { class: "quiet small-text" }, means));
  }
}
