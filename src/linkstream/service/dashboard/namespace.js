/** The third step of an upload: the thresholds of a new namespace, and what else it needs. */

import { button, el, figure, foreign, short } from "./elements.js";
import { card } from "./parts.js";
import { PairQuiz } from "./pairs.js";

const NUMBERS = [
  [
    "cluster_similarity",
    "How alike the vectors of one cluster are",
    "0 to 1. Higher: stricter, more and smaller clusters.",
    "0.7",
  ],
  [
    "subcluster_similarity",
    "From when a vector is nearly the same as what is there",
    "0 to 1. Such vectors are summed up together.",
    "0.8",
  ],
  [
    "pair_similarity_max",
    "The strictest test between two parts of a cluster",
    "0 to 1, at least the square of the first.",
    "0.9",
  ],
];
const HEALING = [
  ["", "As they are"],
  ["join", "Join clusters that turn out to be one"],
  ["settle", "Join and part clusters now and then"],
];

export class NewNamespace {
  /**
   * @param {import("./app.js").Context} context
   * @param {{name: string, path?: string, columns?: object, dimension?: number, back: () => void,
   *   made: () => void}} given  name of the namespace; path, columns and dimension of its upload
   */
  constructor(context, given) {
    this.context = context;
    this.given = given;
    this.form = null; // returns the thresholds or the preset for the request
    this.detail = el("div", { class: "way-detail" });
    this.ways = el("div", { class: "ways", role: "radiogroup", "aria-label": "Thresholds" });
    this.make = button(given.path ? "Make it and add the rows" : "Make it", () => this.create(), {
      class: "main",
      hidden: true,
    });
    this.options = this.optionFields();
    this.root = card(
      "How alike is the same?",
      { class: "begin-thresholds" },
      el(
        "p",
        {},
        "Thresholds say when two vectors are one person, one voice or one topic. They depend on the program that made the vectors.",
      ),
      this.ways,
      this.detail,
      this.options.root,
      el("div", { class: "buttons" }, this.make, button("Back", given.back, {})),
    );
  }

  async load() {
    const { presets } = await this.context.api.get("/v1/presets", {}, this.context.signal);
    const { path, dimension: wanted } = this.given;
    const fit = presets.filter(({ dimension }) => !path || dimension === wanted);
    const many = fit.length === 1 ? "One encoder is" : `${fit.length} encoders are`;
    const words = path ? `${many} measured for ${wanted} numbers.` : `${many} measured.`;
    const ways = [
      {
        value: "preset",
        title: "I know the encoder",
        words,
        open: () => this.presets(fit),
      },
      {
        value: "pairs",
        title: "Answer about pairs",
        words:
          "You look at pairs and say same or not: about five minutes. The surest way for your own data.",
        open: () => this.pairs(),
      },
      {
        value: "alone",
        title: "From the vectors alone",
        words: "Works where the clusters are clearly apart; it says so if they are not.",
        open: () => this.alone(),
      },
      {
        value: "numbers",
        title: "I have the numbers",
        words: "From linkstream tune, or from before.",
        open: () => this.numbers(),
      },
    ].filter(({ value }) => value === "preset" ? fit.length : path || value === "numbers");
    this.ways.replaceChildren(...ways.map((way) => this.way(way)));
    this.ways.querySelector("input").checked = true;
    ways[0].open();
  }

  way({ value, title, words, open }) {
    const input = el("input", { type: "radio", name: "way", value, on: { change: () => open() } });
    return el(
      "label",
      { class: "way" },
      input,
      el("span", {}, el("strong", {}, title), el("span", { class: "quiet small-text" }, words)),
    );
  }

  /** Set what the request will have; null: not known yet. */
  use(form) {
    this.form = form;
    this.make.disabled = this.make.hidden = form === null;
  }

  presets(fit) {
    const level = el("select", { id: "preset-level", name: "granularity" });
    const chosen = el(
      "select",
      { id: "preset-name", name: "preset" },
      ...fit.map(({ name, encoder }) => el("option", { value: name }, encoder)),
    );
    const facts = el("p", { class: "quiet small-text" });
    const fill = () => {
      const preset = fit.find(({ name }) => name === chosen.value);
      level.replaceChildren(
        ...preset.levels.map(({ name, words }) =>
          el("option", { value: name, selected: name === preset.default }, `${name}: ${words}`)
        ),
      );
      facts.textContent = `Made from ${preset.made_from.join(", ")}; ${measured(preset)}`;
    };
    chosen.addEventListener("change", fill);
    fill();
    this.detail.replaceChildren(
      el("div", { class: "field-of" }, el("label", { for: "preset-name" }, "Encoder"), chosen),
      el(
        "div",
        { class: "field-of" },
        el("label", { for: "preset-level" }, "What one cluster is, from coarse to fine"),
        level,
      ),
      facts,
    );
    this.use(() => ({ preset: chosen.value, granularity: level.value }));
  }

  numbers() {
    const inputs = NUMBERS.map(([name, label, help, value]) => {
      const input = el("input", {
        type: "number",
        id: `new-${name}`,
        name,
        min: "0",
        max: "1",
        step: "any",
        value,
        required: true,
        "aria-describedby": `new-${name}-help`,
      });
      return { name, label, help, input };
    });
    this.detail.replaceChildren(
      ...inputs.map(({ name, label, help, input }) =>
        el(
          "div",
          { class: "field-of" },
          el("label", { for: input.id }, label, " ", el("span", { class: "quiet" }, `(${name})`)),
          input,
          el("p", { class: "quiet small-text", id: `new-${name}-help` }, help),
        )
      ),
    );
    this.use(() => ({
      thresholds: Object.fromEntries(inputs.map(({ name, input }) => [name, Number(input.value)])),
    }));
  }

  pairs() {
    this.use(null);
    const quiz = new PairQuiz(this.context, this.given, (answers) => this.calibrate(answers));
    this.detail.replaceChildren(quiz.root);
    quiz.load().catch((error) => this.context.report(error));
  }

  alone() {
    this.use(null);
    const run = button("Find thresholds", () => this.calibrate({}), {});
    this.detail.replaceChildren(
      el(
        "p",
        { class: "quiet" },
        "The first 1,000 rows are clustered in many ways. This takes some seconds.",
      ),
      el("div", { class: "buttons" }, run),
    );
  }

  /** Find thresholds by answers about pairs, or without; show what they rest on. */
  async calibrate(answers) {
    const kept = [...this.detail.childNodes];
    this.detail.replaceChildren(
      el("p", { role: "status" }, "Finding thresholds… this takes up to half a minute."),
      el("progress", { "aria-label": "Finding thresholds" }),
    );
    try {
      const body = { ...this.given.columns, ...answers };
      const path = `${this.given.path}/calibrate`;
      const found = await this.context.api.post(path, body, this.context.signal);
      this.detail.replaceChildren(this.report(found, kept));
      if (found.decided) this.use(() => ({ thresholds: found.thresholds }));
    } catch (error) {
      this.context.report(error);
      this.detail.replaceChildren(...kept);
    }
  }

  report(found, kept) {
    const back = button("Back to the pairs", () => {
      this.use(null);
      this.detail.replaceChildren(...kept);
    }, { class: "small" });
    if (!found.decided) {
      return el(
        "div",
        { class: "notice warn", role: "alert" },
        el("p", {}, el("strong", {}, "The data cannot decide yet.")),
        el("p", {}, foreign(found.advice)),
        el("div", { class: "buttons" }, back),
      );
    }
    return el(
      "div",
      { class: "notice good", role: "status" },
      el("p", {}, el("strong", {}, "Thresholds found.")),
      rates(found),
      el("p", { class: "quiet small-text" }, foreign(found.advice, 800)),
      el(
        "details",
        {},
        el("summary", {}, "The numbers"),
        el(
          "dl",
          { class: "rows" },
          ...Object.entries(found.thresholds).flatMap(([name, value]) => [
            el("dt", {}, name),
            el("dd", { class: "figures" }, figure(value, 4)),
          ]),
        ),
      ),
      el("div", { class: "buttons" }, back),
    );
  }

  optionFields() {
    const box = (name, checked, title, help) => {
      const input = el("input", { type: "checkbox", name, checked });
      const words = el(
        "span",
        {},
        title,
        el("span", { class: "quiet small-text help" }, help),
      );
      return { input, root: el("label", { class: "begin-choice tall" }, input, words) };
    };
    const keep = box(
      "keep_vectors",
      true,
      "Keep the vectors",
      "Needed to cluster everything again with other thresholds. Takes 4 bytes a number.",
    );
    const search = box(
      "search",
      true,
      "Search in texts",
      "Finds vectors by words of what is stored with them.",
    );
    const heal = el(
      "select",
      { id: "new-heal", name: "heal" },
      ...HEALING.map(([value, words]) => el("option", { value }, words)),
    );
    const root = el(
      "details",
      { class: "begin-options" },
      el("summary", {}, "Options"),
      keep.root,
      search.root,
      el(
        "div",
        { class: "field-of" },
        el("label", { for: "new-heal" }, "While vectors arrive, leave clusters"),
        heal,
        el(
          "p",
          { class: "quiet small-text" },
          "Corrections of a person hold in any case. A preset may heal by itself.",
        ),
      ),
    );
    const values = () => ({
      keep_vectors: keep.input.checked,
      search: search.input.checked,
      ...(heal.value ? { heal: heal.value } : {}),
    });
    return { root, values };
  }

  async create() {
    const { api, report } = this.context;
    this.make.disabled = true;
    try {
      const path = `/v1/namespaces/${encodeURIComponent(this.given.name)}`;
      const body = JSON.stringify({ ...this.form(), ...this.options.values() });
      const headers = { "Content-Type": "application/json" };
      await api.send(path, { method: "PUT", headers, body });
      this.given.made();
    } catch (error) {
      report(error);
      this.make.disabled = false;
    }
  }
}

/** Say how accurate a preset was on sets that it was not made from. */
function measured({ figures }) {
  const found = Object.entries(figures).map(([set, { default: shares }]) =>
    Array.isArray(shares) ? `${short(set, 30)} ${Math.round(100 * shares[1])} %` : null
  ).filter(Boolean);
  if (!found.length) return "no figures.";
  return `right on sets that were left out: ${found.slice(0, 4).join(", ")}.`;
}

/** Say the rates of errors of a calibration in words. */
function rates({ false_merge: merge, false_split: split, source }) {
  const about = (rate) =>
    `${(100 * rate.estimate).toFixed(1)} % (at most ${(100 * rate.high).toFixed(1)} %)`;
  const what = source === "pairs" ? "" : " when the order of arrival changes";
  return el(
    "ul",
    { class: "rates" },
    el("li", {}, `Of pairs that are the same, ${about(split)} would be apart${what}.`),
    el("li", {}, `Of pairs that are not, ${about(merge)} would be together${what}.`),
  );
}
