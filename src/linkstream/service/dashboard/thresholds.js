/**
 * Thresholds: how close the graph is to them, and what a change of them would affect.
 *
 * All figures come from the service (GET …/margins, see service/margins.py): for every move of T_c
 * and T_p the histogram of margins, for every move of T_s the number of edges. This module only adds
 * up bars; the formulas are in the service alone.
 */

import { counted, el, figure, number, signed } from "./elements.js";
import { Histograms } from "./charts.js";
import { Strictness } from "./strictness.js";
import { card, command, empty } from "./parts.js";

const NAMES = {
  cluster_similarity: {
    symbol: "T_c",
    title: "Cluster similarity",
    words:
      "How similar a vector is to the true centre of its cluster. A higher value makes every edge stricter.",
  },
  subcluster_similarity: {
    symbol: "T_s",
    title: "Subcluster similarity",
    words:
      "The similarity from which a vector joins a subcluster, and two linked subclusters merge.",
  },
  pair_similarity_max: {
    symbol: "T_p",
    title: "Pair similarity max",
    words: "The strictest threshold between two subclusters, however many vectors they hold.",
  },
};
const GROUPS = [
  { name: "edges", title: "Edges", one: "edge", colour: "c0" },
  {
    name: "firm",
    title: "Settled edges, by the parts that they connect",
    one: "edge",
    colour: "c2",
  },
  { name: "pairs", title: "Pairs of clusters closest to a merge", one: "pair", colour: "c1" },
];

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const figures = await context.get("margins");
  root.append(
    el(
      "div",
      { class: "map-head" },
      el("h1", {}, "Thresholds"),
      el("p", { class: "quiet" }, "How alike do two vectors have to be to count as the same?"),
    ),
  );
  if (!figures.counts.subclusters) {
    root.append(
      el(
        "section",
        { class: "card" },
        empty(
          "Nothing to compare yet",
          el(
            "p",
            {},
            "Margins appear with the first vectors. ",
            el("a", { href: context.link("begin") }, "Add a file of them"),
            ".",
          ),
        ),
      ),
    );
    return;
  }
  const view = new Thresholds(context, figures);
  const strictness = new Strictness(context, figures);
  const numbers = el(
    "details",
    { class: "thresholds-numbers", open: context.query.has("numbers") },
    el("summary", {}, "The numbers: three thresholds, similarities and margins"),
    ...view.parts,
  );
  numbers.addEventListener("toggle", () => {
    context.keep({ numbers: numbers.open ? 1 : null });
    view.arrange();
  });
  root.append(strictness.root, numbers);
  view.draw();
  strictness.draw();
  const sizes = new ResizeObserver(() => view.arrange());
  sizes.observe(view.similarity.root);
  return () => {
    sizes.disconnect();
    strictness.leave();
  };
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
    this.similarity = new Histograms(
      "Similarities and the three thresholds",
      figures.similarity_bins,
      this.range(),
      this.groups,
    );
    const { low, width, count } = figures.margin_bins;
    this.margin = new Histograms(
      "Margins",
      figures.margin_bins,
      [low, low + width * count],
      this.groups,
    );
    this.margin.line("zero", "0", 0, "zero");
    this.similarity.draw(
      Object.fromEntries(this.groups.map(({ name }) => [name, figures[name].similarity])),
    );
    this.sliders = Object.keys(NAMES).map((name) => this.slider(name));
    this.verdict = el("ul", { class: "verdict", "aria-live": "polite" });
    this.reset = el("button", {
      type: "button",
      class: "small",
      disabled: true,
      on: { click: () => this.back() },
    }, "Reset");
    const left = el(
      "div",
      { class: "thresholds-charts" },
      card(
        "Similarity",
        { class: "thresholds-similarity" },
        el(
          "p",
          { class: "quiet small-text" },
          "The three thresholds and the similarities of this graph. The shaded part is the range of s~: it rises with the number of vectors.",
        ),
        this.similarity.root,
      ),
      card(
        "Margin: similarity minus s~",
        { class: "thresholds-margin" },
        el(
          "p",
          { class: "quiet small-text" },
          "Below 0 an edge fails; from 0 a pair of clusters is similar enough to merge. Both are red.",
        ),
        this.margin.root,
      ),
    );
    const right = el(
      "div",
      { class: "thresholds-side" },
      card(
        "What if",
        { more: this.reset },
        ...this.sliders.map((slider) => slider.root),
        this.verdict,
      ),
      this.meaning(),
    );
    this.parts = [el("div", { class: "thresholds-body" }, left, right)];
  }

  /**
   * Return the range of the axis: from a round number below all values, to 1.
   * @returns {[number, number]}
   */
  range() {
    const { similarity_bins: bins, thresholds } = this.figures;
    const filled = this.groups.flatMap(({ name }) =>
      this.figures[name].similarity.findIndex((count) => count > 0)
    ).filter((bin) => bin >= 0);
    const lowest = Math.min(
      ...filled.map((bin) => bins.low + bin * bins.width),
      ...Object.values(thresholds),
      this.figures.edge.floor[this.middle] ?? 1,
    );
    return [Math.min(Math.floor(lowest * 10 + 1e-9) / 10, 0.8), 1];
  }

  slider(name) {
    const { symbol, title, words } = NAMES[name];
    const value = el("output", { class: "figures", for: name });
    const input = el("input", {
      type: "range",
      id: name,
      name,
      min: 0,
      max: this.figures.moves.length - 1,
      step: 1,
      value: this.middle,
      "aria-describedby": `${name}-words`,
      on: {
        input: () => {
          this.at[name] = Number(input.value);
          this.draw();
        },
      },
    });
    const root = el(
      "div",
      { class: "slider" },
      el("label", { for: name }, title, " ", el("span", { class: "quiet" }, symbol)),
      value,
      input,
      el("p", { class: "quiet small-text", id: `${name}-words` }, words),
    );
    return { name, input, value, root };
  }

  meaning() {
    const limits = this.limits();
    return card(
      "What this shows",
      { class: "thresholds-meaning" },
      el(
        "p",
        {},
        "The effect of other thresholds on the current graph. A run with other thresholds from the start would give other subclusters. The sliders change nothing.",
      ),
      limits && el("p", { class: "quiet" }, limits),
      el("p", {}, "To find thresholds for your encoder, tune on labelled vectors:"),
      command("linkstream tune vectors.npz"),
    );
  }

  /** Return a text about what the figures leave out. */
  limits() {
    const { edges, firm, pairs, counts, law } = this.figures;
    const words = [];
    for (const [group, kind] of [[edges, "edges"], [firm, "settled edges"]]) {
      if (group.shown < group.total) {
        words.push(`${number(group.shown)} of ${number(group.total)} ${kind} are shown.`);
      }
    }
    if (pairs.clusters < counts.clusters) {
      words.push(
        `The largest ${number(pairs.clusters)} of ${
          number(counts.clusters)
        } clusters are compared.`,
      );
    }
    if (pairs.shown < (pairs.clusters * (pairs.clusters - 1)) / 2) {
      words.push(
        `Only the ${number(pairs.shown)} pairs of clusters closest to a merge are shown.`,
      );
    }
    if (law) {
      words.push(
        `${
          counted(law, "edge is", "edges are")
        } pinned by a correction; no threshold affects them.`,
      );
    }
    return words.join(" ");
  }

  back() {
    for (const { name, input } of this.sliders) {
      input.value = String(this.middle);
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
      value.textContent = move
        ? `${figure(this.value(name))} (${signed(move, 2)})`
        : figure(this.value(name));
      input.setAttribute("aria-valuetext", value.textContent);
      this.similarity.line(
        name,
        `${NAMES[name].symbol} ${figure(this.value(name), 2)}`,
        this.value(name),
        NAMES[name].symbol,
      );
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
      this.verdict.replaceChildren(
        el(
          "li",
          { class: "bad-words" },
          "These thresholds are not valid: each must be between 0 and 1, and T_p at least T_c squared.",
        ),
      );
      return;
    }
    const lines = [
      this.sum(
        "failing",
        "edges",
        [c, p],
        (bin, zero) => bin < zero,
        "would fail",
        "A failing edge is cut when the next vector joins one of its ends; the cluster may then split.",
      ),
      this.sum(
        "loose",
        "firm",
        [c, p],
        (bin, zero) => bin < zero,
        "connect parts less similar than s~",
        "They stay, because equation 22 does not test them; review asks about them.",
      ),
      this.sum(
        "passing",
        "pairs",
        [c, p],
        (bin, zero) => bin >= zero,
        "would pass",
        "Such clusters do not merge by themselves: they are suggested, and merged by settle or heal.",
      ),
      this.line(
        "merging",
        subcluster.merged[s],
        subcluster.merged[this.middle],
        subcluster.shown,
        ["edge", "edges"],
        "would merge two subclusters",
        "They merge when the next vector joins one of them. A higher T_s does not split a subcluster.",
      ),
    ];
    const joins = this.figures.recent?.joined;
    if (joins) {
      lines.push(
        this.line(
          "unjoined",
          subcluster.unjoined[s],
          0,
          joins,
          ["recent join", "recent joins"],
          "would not have happened",
          "",
        ),
      );
    }
    this.verdict.replaceChildren(...lines.filter(Boolean));
  }

  sum(kind, group, [c, p], wanted, does, means) {
    const { edge, margin_bins: bins } = this.figures;
    const total = (counts) =>
      counts.reduce((sum, count, bin) => sum + (wanted(bin, bins.zero) ? count : 0), 0);
    const [one, many] = {
      edges: ["edge", "edges"],
      firm: ["settled edge", "settled edges"],
      pairs: ["pair", "pairs"],
    }[group];
    return this.line(
      kind,
      total(edge[group][c][p]),
      total(edge[group][this.middle][this.middle]),
      this.figures[group].shown,
      [one, many],
      does,
      means,
    );
  }

  line(kind, count, now, of, [one, many], does, means) {
    if (!of) return null;
    const change = count === now ? "as now" : `now ${number(now)}`;
    return el(
      "li",
      { data: { kind, count: String(count) }, class: count === now ? null : "changed" },
      el(
        "p",
        {},
        el("strong", { class: "figures" }, number(count)),
        ` of ${counted(of, one, many)} ${does} `,
        el("span", { class: "quiet" }, `(${change})`),
      ),
      means && el("p", { class: "quiet small-text" }, means),
    );
  }
}
