/**
 * Review: one question at a time, first the question whose answer corrects the most vectors.
 * Every action has a key. Answers can be undone, the last answer first.
 */

import { button, counted, el, foreign, number, slot } from "./elements.js";
import { gauge, marginGauge } from "./charts.js";
import { addLine, chip, empty, payload, percent, unknown } from "./parts.js";
import { correct, takeBack } from "./corrections.js";
import { differ } from "./migration.js";

const ASKED = 50; // questions fetched
const KEYS = {
  s: "same",
  arrowright: "same",
  d: "different",
  arrowleft: "different",
  u: "undo",
  n: "skip",
  " ": "skip",
  "?": "help",
};
const DOUBTED = "The migration to another encoder has changed whether they are together";
/** @type {[string[], string][]} */
const HELP = [
  [["S", "→"], "They are the same"],
  [["D", "←"], "They are different"],
  [["N", "Space"], "Skip this one"],
  [["U"], "Undo the last answer"],
  [["?"], "Show this help"],
];

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Review(context);
  root.append(...view.parts);
  const keys = (event) => view.key(event);
  document.addEventListener("keydown", keys);
  context.signal.addEventListener("abort", () => document.removeEventListener("keydown", keys));
  await view.load();
}

class Review {
  constructor(context) {
    this.context = context;
    this.answers = []; // corrections that can be undone, oldest first
    this.answered = 0;
    this.skipped = new Set();
    this.busy = false;
    this.question = null;
    this.sure = { why: "", identities: null }; // what is known of probabilities
    this.build();
  }

  build() {
    this.progress = el("progress", { max: 1, value: 0, "aria-label": "Questions answered" });
    this.count = el("span", { class: "quiet figures small-text" }, " ");
    this.stage = el("div", { class: "stage" });
    this.spoken = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.undoButton = this.button("undo", "Undo", "U");
    this.help = el(
      "dl",
      { class: "keys", hidden: true },
      ...HELP.flatMap((
        [keys, words],
      ) => [el("dt", {}, ...keys.map((key) => el("kbd", {}, key))), el("dd", {}, words)]),
    );
    this.helpButton = this.button("help", "Keys", "?");
    this.helpButton.setAttribute("aria-expanded", "false");
    this.parts = [
      el(
        "div",
        { class: "review-head" },
        el("h1", {}, "Review"),
        el("div", { class: "progress" }, this.progress, this.count),
        el("a", { href: this.context.link("held"), class: "small-text" }, "Held vectors"),
        el("a", { href: this.context.link("confidence"), class: "small-text" }, "How sure?"),
        el("div", { class: "buttons" }, this.undoButton, this.helpButton),
      ),
      this.help,
      this.stage,
      this.spoken,
    ];
    this.undoButton.disabled = true;
  }

  button(action, title, key, kind = "small") {
    return el(
      "button",
      { type: "button", class: kind, data: { action }, on: { click: () => this.run(action) } },
      title,
      el("kbd", { "aria-hidden": "true" }, key),
    );
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const target = event.target;
    if (target.closest?.("input, select, textarea")) return;
    if (event.key === " " && target.closest?.("button, a")) return; // Space activates the focused button
    const action = KEYS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    this.run(action);
  }

  async run(action) {
    if (action === "help") return this.toggleHelp();
    if (this.busy) return undefined;
    this.busy = true;
    this.stage.classList.add("busy");
    try {
      if (action === "undo") await this.undo();
      else if (this.question) await (action === "skip" ? this.skip() : this.answer(action));
    } catch (error) {
      this.context.report(error);
      await this.load().catch((other) => this.context.report(other));
    } finally {
      this.busy = false;
      this.stage.classList.remove("busy");
    }
    return undefined;
  }

  toggleHelp() {
    this.help.hidden = !this.help.hidden;
    this.helpButton.setAttribute("aria-expanded", String(!this.help.hidden));
  }

  async answer(action) {
    if (!this.context.may("write")) {
      this.context.say("Your token allows reading only.", { tone: "bad" });
      return;
    }
    const { a, b, of } = this.question;
    const words = action === "same"
      ? "Same: they are one cluster now"
      : "Different: they stay apart";
    this.answers.push(await correct(this.context, action, { a, b, of }, words));
    this.answered += 1;
    await this.load(words);
  }

  async undo() {
    const done = this.answers.at(-1);
    if (!done) {
      this.spoken.textContent = "There is no answer to undo.";
      return;
    }
    const answer = await takeBack(this.context, done);
    if (!answer) return;
    this.answers.pop();
    this.answered -= 1;
    // If nothing happened between two answers, the earlier answer is the last event again.
    const last = this.answers.at(-1);
    if (last && last.event === done.before) last.event = answer.event;
    await this.load("Undone");
  }

  async skip() {
    this.skipped.add(named(this.question));
    await this.load("Skipped");
  }

  async load(words = "") {
    const [{ questions }, sure] = await Promise.all([
      this.context.get("review", { limit: ASKED }),
      this.context.get("confidence", { brief: true }),
    ]);
    this.sure = sure;
    const open = questions.filter((question) => !this.skipped.has(named(question)));
    this.question = open[0] ?? null;
    this.undoButton.disabled = !this.answers.length;
    this.progress.max = Math.max(this.answered + open.length, 1);
    this.progress.value = this.answered;
    const left = questions.length === ASKED ? `${ASKED} or more` : number(open.length);
    this.count.textContent = `${number(this.answered)} answered, ${left} left`;
    this.stage.replaceChildren(this.question ? this.asked(this.question) : await this.nothing());
    this.spoken.textContent = [
      words,
      this.question ? spoken(this.question) : "No more questions",
    ].filter(Boolean).join(". ");
    const first = /** @type {HTMLElement} */ (this.stage.firstElementChild);
    first.focus({ preventScroll: true });
  }

  asked(question) {
    const join = question.kind === "join";
    const doubted = Number.isFinite(question.before);
    const label = { "aria-label": "Question", tabindex: "-1", data: { pair: named(question) } };
    const gain = counted(Math.max(Math.round(question.gain), 1), "vector");
    return el(
      "article",
      { class: "question", ...label },
      el(
        "div",
        { class: "question-head" },
        el(
          "h2",
          {},
          join ? "Are these two clusters the same?" : "Do these two parts belong together?",
        ),
        el(
          "span",
          { class: "tags" },
          el("span", { class: "tag" }, join ? "now two clusters" : "now one cluster"),
          doubted &&
            el(
              "span",
              { class: "tag warn", title: DOUBTED },
              differ(question.before, question.margin)
                ? "the encoders disagree"
                : "changed with the encoder",
            ),
        ),
      ),
      el("div", { class: "sides" }, this.side(question, 0), this.side(question, 1)),
      doubted && marginGauge(question.before, "old encoder"),
      gauge(question.similarity, question.threshold, doubted ? "new encoder" : ""),
      join && this.sameIdentity(question),
      el(
        "div",
        { class: "answers" },
        this.button("different", "Different", "←", "answer no"),
        this.button("skip", "Skip", "N", "answer"),
        this.button("same", "Same", "→", "answer yes"),
      ),
      el("p", { class: "quiet small-text gain" }, `An answer is expected to correct ${gain}.`),
    );
  }

  /** Return the probability that two clusters are one identity, or why it is unknown. */
  sameIdentity({ probability }) {
    if (Number.isFinite(probability)) {
      const words = "Probability that they are one identity: ";
      return el("p", { class: "same-identity" }, words, el("strong", {}, percent(probability)));
    }
    if (this.sure.identities === null) return null;
    return el(
      "p",
      { class: "same-identity quiet" },
      "Probability that they are one identity ",
      foreign(unknown(this.sure)),
    );
  }

  side(question, place) {
    const id = question.clusters[place];
    const join = question.kind === "join";
    const shown = question.shown[place];
    const kind = `side card ${join || !place ? slot(id) : "part"}`;
    const part = place ? "second part, " : "first part, ";
    return el(
      "section",
      { class: kind, "aria-label": place ? "Second" : "First" },
      el(
        "header",
        {},
        chip(this.context, id, question.names[place]),
        el(
          "span",
          { class: "quiet figures small-text" },
          join ? "" : part,
          counted(question.sizes[place], "vector"),
        ),
      ),
      el(
        "ul",
        { class: "shown" },
        ...shown.map(({ vector, payload: said, id, time }) =>
          el(
            "li",
            {},
            payload(this.context, said),
            el(
              "span",
              { class: "quiet figures number" },
              [id ?? `vector ${number(vector)}`, time].filter(Boolean).join(", "),
            ),
          )
        ),
      ),
      !shown.length &&
        el(
          "p",
          { class: "quiet" },
          "Vectors are not kept; only the figures below are known.",
        ),
    );
  }

  async nothing() {
    const { total } = await this.context.get("clusters", { limit: 1 });
    return el("section", { class: "card", tabindex: "-1" }, this.why(total));
  }

  /** Return why there is no question, and what to do. */
  why(total) {
    if (this.skipped.size) {
      const again = () => {
        this.skipped.clear();
        this.load().catch(this.context.report);
      };
      return empty(
        "Only skipped questions are left",
        button("Ask them again", again, { class: "main" }),
      );
    }
    if (!total) {
      const words = "Questions appear with the first clusters. Add a vector:";
      return empty("Nothing to review yet", el("p", {}, words), addLine(this.context));
    }
    return empty(
      "Nothing to ask",
      el(
        "p",
        {},
        "No two clusters are similar enough to ask about, and no cluster depends on a weak edge. ",
        "New vectors may raise new questions.",
      ),
      el("a", { href: this.context.link("cluster") }, "Look at the clusters"),
    );
  }
}

const named = (question) => question.subclusters.join("-");

function spoken({ kind, clusters, names, sizes }) {
  const [one, other] = clusters.map(
    (id, place) => foreign(names[place] ?? `ID ${id}`, 40).textContent,
  );
  const [first, second] = sizes.map((size) => counted(size, "vector"));
  return kind === "join"
    ? `Is ${one}, of ${first}, the same as ${other}, of ${second}?`
    : `Do the two parts of ${one}, of ${first} and of ${second}, belong together?`;
}
