/**
 * Same or not? Pairs of rows side by side, answered by keys, from which the service finds thresholds.
 *
 * S, D and N answer; Backspace goes back to the pair before. Nothing is sent until "Find thresholds".
 */

import { button, counted, el } from "./elements.js";
import { payload } from "./parts.js";

const COUNT = 80; // pairs to ask about
const ENOUGH = 10; // answers of each kind that the service needs
const ANSWERS = [
  { value: "same", label: "Same", key: "s" },
  { value: "different", label: "Different", key: "d" },
  { value: null, label: "Not sure", key: "n" },
];

export class PairQuiz {
  /**
   * @param {import("./app.js").Context} context
   * @param {{name: string, path?: string, columns?: object}} given
   * @param {(answers: {same: number[][], different: number[][]}) => void} done
   */
  constructor(context, given, done) {
    this.given = given;
    this.done = done;
    this.context = { ...context, picture: (path) => this.picture(context, path) };
    this.answers = []; // in the order of the pairs
    this.two = el("div", { class: "pair" });
    this.count = el("p", { class: "small-text", role: "status" });
    this.buttons = ANSWERS.map(({ value, label, key }) =>
      button(label, () => this.answer(value), { data: { answer: label }, "aria-keyshortcuts": key })
    );
    this.buttons.forEach((each, place) =>
      each.append(el("kbd", {}, ANSWERS[place].key.toUpperCase()))
    );
    this.back = button("Back", () => this.undo(), { "aria-keyshortcuts": "Backspace" });
    this.find = button("Find thresholds", () => this.done(this.sorted()), { class: "main" });
    this.root = el(
      "section",
      {
        class: "quiz",
        tabindex: "-1",
        "aria-label": "Same or different?",
        on: { keydown: (event) => this.press(event) },
      },
      el("h3", {}, "Is this the same?"),
      this.two,
      el("div", { class: "buttons quiz-answers" }, ...this.buttons, this.back),
      this.count,
      el("div", { class: "buttons" }, this.find),
    );
  }

  /** Pictures come by the name of the namespace to be made: they are the same for all. */
  async picture(context, path) {
    const base = `/v1/namespaces/${encodeURIComponent(this.given.name)}/`;
    const url = await context.api.picture(base + path, context.signal);
    context.signal.addEventListener("abort", () => URL.revokeObjectURL(url), { once: true });
    return url;
  }

  async load() {
    this.count.textContent = "Choosing pairs…";
    const { api, signal } = this.context;
    const body = { ...this.given.columns, count: COUNT };
    const { pairs } = await api.post(`${this.given.path}/pairs`, body, signal);
    this.pairs = pairs;
    this.draw();
    this.root.focus({ preventScroll: true });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.pairs) return;
    const found = ANSWERS.find(({ key }) => key === event.key.toLowerCase());
    if (found) this.answer(found.value);
    else if (event.key === "Backspace") this.undo();
    else return;
    event.preventDefault();
  }

  answer(value) {
    if (this.answers.length >= this.pairs.length) return;
    this.answers.push(value);
    this.draw();
  }

  undo() {
    this.answers.pop();
    this.draw();
  }

  sorted() {
    const of = (kind) =>
      this.answers.flatMap((value, place) => (value === kind ? [this.pairs[place].rows] : []));
    return { same: of("same"), different: of("different") };
  }

  draw() {
    const { same, different } = this.sorted();
    const pair = this.pairs[this.answers.length];
    this.two.replaceChildren(
      ...(pair
        ? pair.payloads.map((value, side) => this.side(value, pair.rows[side]))
        : [el("p", { class: "quiet" }, "These were all the pairs.")]),
    );
    for (const each of this.buttons) each.disabled = !pair;
    this.back.disabled = !this.answers.length;
    const enough = same.length >= ENOUGH && different.length >= ENOUGH;
    this.find.disabled = !enough;
    this.count.textContent =
      `${counted(this.answers.length, "answer")} of ${this.pairs.length}: ${same.length} same, ` +
      `${different.length} different. ` +
      (enough ? "That is enough; more make it surer." : `${ENOUGH} of each are needed.`);
  }

  side(value, row) {
    return el(
      "div",
      { class: "pair-side" },
      value === null
        ? el("p", { class: "quiet" }, `Row ${row + 1}; nothing is stored with it.`)
        : payload(this.context, value),
    );
  }
}
