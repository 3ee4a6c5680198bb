/**
 * Stricter or looser, in words: one slider, and the clusters that it would join or part.
 *
 * The slider moves T_c and T_p together. Counts come from the figures of GET …/margins, examples from
 * GET …/margins/examples. Nothing changes here: the link leads to the view Rebuild, which previews
 * and applies the thresholds.
 */

import { isAbort } from "./api.js";
import { counted, el, figure, number } from "./elements.js";
import { card, chip, payload } from "./parts.js";

const PAUSE = 250; // milliseconds without a move before examples are asked for
const SHOWN = 6;

export class Strictness {
  /**
   * @param {import("./app.js").Context} context
   * @param {object} figures  answer of GET …/margins
   */
  constructor(context, figures) {
    this.context = context;
    this.figures = figures;
    this.middle = figures.moves.indexOf(0);
    const kept = figures.moves.indexOf(Number(context.query.get("strict") ?? 0));
    this.at = kept < 0 ? this.middle : kept;
    this.asked = null; // aborts the request for examples that is out of date
    this.build();
  }

  leave() {
    clearTimeout(this.timer);
    this.asked?.abort();
  }

  build() {
    this.input = el("input", {
      type: "range",
      id: "strictness",
      name: "strictness",
      min: 0,
      max: this.figures.moves.length - 1,
      value: this.at,
      "aria-describedby": "strictness-words",
      on: { input: () => this.move() },
    });
    this.words = el("p", { id: "strictness-words", class: "strictness-words", role: "status" });
    this.back = el("button", {
      type: "button",
      class: "small",
      on: { click: () => this.reset() },
    }, "As now");
    this.examples = el("div", { class: "strictness-examples" });
    this.rebuild = el("a", { class: "button" }, "Preview it for all vectors");
    this.root = card(
      "Stricter or looser?",
      { class: "strictness", more: this.back },
      el(
        "div",
        { class: "strictness-slider" },
        el(
          "span",
          {},
          el("strong", {}, "Looser"),
          el("span", { class: "quiet small-text" }, "more is joined; some of it wrongly"),
        ),
        el("label", { class: "unseen", for: "strictness" }, "Strictness"),
        this.input,
        el(
          "span",
          {},
          el("strong", {}, "Stricter"),
          el("span", { class: "quiet small-text" }, "fewer wrong joins; more fragments"),
        ),
      ),
      this.words,
      this.examples,
      el("div", { class: "buttons" }, this.rebuild),
    );
  }

  /** The place of T_p: the same move as T_c, or the nearest one that is valid with it. */
  get pair() {
    const { pairs } = this.figures.edge;
    for (let away = 0; away < this.figures.moves.length; away += 1) {
      for (const place of [this.at - away, this.at + away]) {
        if (pairs[this.at]?.[place]) return place;
      }
    }
    return null;
  }

  /** The three thresholds at this place; null if they are not valid. */
  thresholds() {
    const { thresholds: now, moves } = this.figures;
    if (this.pair === null) return null;
    const rounded = (value) => Number(value.toFixed(6));
    return {
      cluster_similarity: rounded(now.cluster_similarity + moves[this.at]),
      subcluster_similarity: now.subcluster_similarity,
      pair_similarity_max: rounded(now.pair_similarity_max + moves[this.pair]),
    };
  }

  move() {
    this.at = Number(this.input.value);
    const move = this.figures.moves[this.at];
    this.context.keep({ strict: move || null });
    this.draw();
  }

  reset() {
    this.input.value = String(this.middle);
    this.move();
    this.input.focus();
  }

  draw() {
    const move = this.figures.moves[this.at];
    const now = this.at === this.middle;
    const three = this.thresholds();
    this.back.disabled = now;
    this.rebuild.hidden = now || !three;
    this.input.setAttribute("aria-valuetext", spoken(move));
    clearTimeout(this.timer);
    this.asked?.abort();
    if (now || !three) {
      this.words.textContent = three
        ? "This is how it is now. Move the slider to see what would change."
        : "These thresholds are not valid; choose a place nearer to the middle.";
      this.examples.replaceChildren();
      return;
    }
    this.words.textContent = `${spoken(move)}: ${this.count()}`;
    const address = this.context.link("rebuild");
    this.rebuild.href = `${address}&${new URLSearchParams(
      Object.entries(three).map(([name, value]) => [name, String(value)]),
    )}`;
    this.timer = setTimeout(() => this.ask(three), PAUSE);
  }

  /** Say how many pairs would join and how many connections would fail, compared with now. */
  count() {
    const { edge, margin_bins: { zero } } = this.figures;
    const sum = (bins, from, to) => bins.slice(from, to).reduce((total, one) => total + one, 0);
    const passing = (c, p) => sum(edge.pairs[c][p], zero);
    const failing = (c, p) => sum(edge.edges[c][p], 0, zero);
    const joined = passing(this.at, this.pair) - passing(this.middle, this.middle);
    const parted = failing(this.at, this.pair) - failing(this.middle, this.middle);
    if (joined > 0) {
      return `${counted(joined, "more pair")} of clusters would be alike enough to join.`;
    }
    if (parted > 0) return `${counted(parted, "more connection")} inside clusters would not hold.`;
    return "nothing that was compared would change.";
  }

  async ask(three) {
    this.asked = new AbortController();
    const { signal } = this.asked;
    const { api, namespace, report } = this.context;
    const path = `/v1/namespaces/${encodeURIComponent(namespace)}/margins/examples`;
    this.examples.setAttribute("aria-busy", "true");
    try {
      const found = await api.get(path, { ...three, limit: SHOWN }, signal);
      this.show(found);
    } catch (error) {
      if (!isAbort(error)) report(error);
    } finally {
      this.examples.removeAttribute("aria-busy");
    }
  }

  show({ joined, parted }) {
    this.examples.replaceChildren(
      ...[
        this.group("Would come together", joined, "enough from"),
        this.group("Would come apart", parted, "would have to reach"),
      ].filter(Boolean),
    );
  }

  group(title, { count, examples }, needs) {
    if (!count) return null;
    const more = count > examples.length
      ? ` The ${examples.length} clearest of ${number(count)}.`
      : "";
    return el(
      "section",
      { "aria-label": title },
      el("h3", {}, title, el("span", { class: "quiet small-text" }, more)),
      el("ul", { class: "example-list" }, ...examples.map((each) => this.example(each, needs))),
    );
  }

  example({ a, b, similarity, threshold }, needs) {
    return el(
      "li",
      { class: "example-pair" },
      this.side(a),
      el(
        "p",
        { class: "quiet small-text example-why" },
        "alike ",
        el("span", { class: "figures" }, figure(similarity, 2)),
        `; ${needs} `,
        el("span", { class: "figures" }, figure(threshold, 2)),
      ),
      this.side(b),
    );
  }

  side({ cluster, name, size, vectors }) {
    return el(
      "div",
      { class: "example-side" },
      el(
        "p",
        { class: "small-text" },
        chip(this.context, cluster, name),
        el("span", { class: "quiet" }, ` ${counted(size, "vector")}`),
      ),
      el(
        "div",
        { class: "examples" },
        ...vectors.map((each) => payload(this.context, each.payload)),
      ),
    );
  }
}

function spoken(move) {
  if (!move) return "As now";
  const far = Math.abs(move) >= 0.06 ? "Much" : Math.abs(move) >= 0.03 ? "Somewhat" : "A little";
  return `${far} ${move > 0 ? "stricter" : "looser"}`;
}
