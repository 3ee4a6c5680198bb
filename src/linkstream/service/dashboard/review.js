/**
 * Review: one question at a time, first the question whose answer corrects the most items.
 *
 * An answer names the clusters that were shown. If they have changed meanwhile, the service refuses
 * it; the page then answers the same question about the clusters as they are, or says why not.
 */

import { called, counted, el, foreign, number, slot } from "./elements.js";
import { gauge, marginGauge } from "./charts.js";
import { addLine, chip, empty, payload, percent, unknown } from "./parts.js";
import { correct } from "./corrections.js";
import { differ } from "./migration.js";
import { Problem } from "./api.js";
import { keepsakes, Sitting } from "./sitting.js";
import { timeOf } from "./times.js";

const ASKED = 50; // questions fetched
const MOVED = ["changed", "unknown-id", "removed"]; // errors of questions that have changed
const DOUBTED = "The migration to another encoder has changed whether they are together";
const ABOUT = {
  title: "Review",
  links:
    /** @type {[string, string][]} */ ([["held", "Held vectors"], ["confidence", "How sure?"]]),
  choices: [
    { action: "different", words: "Different", key: "d", sign: "←", kind: "no" },
    { action: "unsure", words: "Not sure", key: "n", sign: "N", kind: "" },
    { action: "same", words: "Same", key: "s", sign: "→", kind: "yes" },
  ],
  keys: {
    s: "same",
    arrowright: "same",
    d: "different",
    arrowleft: "different",
    n: "unsure",
    " ": "unsure",
    u: "undo",
  },
  help: /** @type {import("./help.js").KeyRows} */ ([
    [["S", "→"], "They are the same"],
    [["D", "←"], "They are different"],
    [["N", "Space"], "Not sure: ask again after the others"],
    [["U"], "Take back the last answer"],
  ]),
};
const OUTCOMES = {
  same: { join: "joined", cut: "confirmed" },
  different: { join: "kept apart", cut: "cut" },
};

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Review(context);
  root.append(...view.sitting.parts);
  await view.sitting.begin();
}

class Review {
  constructor(context) {
    this.context = context;
    this.sitting = new Sitting(context, ABOUT, this);
    this.sure = { why: "", identities: null }; // what is known of probabilities
  }

  named(question) {
    return question.subclusters.join("-");
  }

  labelled(action) {
    return ABOUT.choices.find((choice) => choice.action === action)?.words ?? null;
  }

  async fetch() {
    const [{ questions }, sure] = await Promise.all([
      this.context.get("review", { limit: ASKED }),
      this.context.get("confidence", { brief: true }),
    ]);
    this.sure = sure;
    return { questions, more: questions.length === ASKED };
  }

  async answer(action, question) {
    const shown = [0, 1].map((side) => keepsakes(this.sitting.stage, side));
    const words = told(action, question);
    const { before, event } = await this.send(action, question, words);
    const outcome = OUTCOMES[action][question.kind];
    const changes = ["joined", "cut"].includes(outcome);
    const items = changes ? Math.min(...question.sizes) : 0;
    return { words, before, event, shown, outcome, items };
  }

  /** Send an answer about the clusters that were shown. */
  async send(action, question, words) {
    const post = ({ a, b, of, clusters }) =>
      correct(this.context, action, { a, b, of, clusters }, words);
    try {
      return await post(question);
    } catch (error) {
      if (!MOVED.includes(error.kind)) throw error;
      const again = await this.sameAgain(question);
      if (again) return post(again);
      throw new Problem({
        kind: "changed",
        seen: "These clusters have changed while you looked at them. Nothing was done.",
        remedy: "Look at the question that is shown now.",
      });
    }
  }

  /** Return the question about the same two clusters as they are now; null if there is none. */
  async sameAgain({ kind, clusters }) {
    if (kind !== "join") return null;
    const pair = [...clusters].sort().join("-");
    const { questions } = await this.fetch();
    return questions.find((other) =>
      other.kind === "join" && [...other.clusters].sort().join("-") === pair
    ) ?? null;
  }

  /** Take an answer back exactly if nothing came since, else this correction alone. */
  async undo(answer) {
    const newest = answer === this.sitting.answers.at(-1);
    try {
      if (!newest) throw new Problem({ kind: "undo", seen: "" });
      const { event } = await this.context.post("undo", { to: null, after: answer.event });
      // If nothing happened between two answers, the earlier one is the last change again.
      const last = this.sitting.answers.at(-2);
      if (last && last.event === answer.before) last.event = event;
    } catch (error) {
      if (error.kind !== "undo") throw error;
      await this.context.post("retract", { correction: answer.before });
    }
    return [answer];
  }

  asked(question, again) {
    const join = question.kind === "join";
    const doubted = Number.isFinite(question.before);
    const label = {
      "aria-label": "Question",
      tabindex: "-1",
      data: { pair: this.named(question) },
    };
    const gain = counted(Math.max(Math.round(question.gain), 1), "vector");
    const words = join ? "Are these two clusters the same?" : "Do these two parts belong together?";
    return el(
      "article",
      { class: "question", ...label },
      el(
        "div",
        { class: "question-head" },
        el("h2", {}, words),
        el(
          "span",
          { class: "tags" },
          again && el("span", { class: "tag accent" }, "you were not sure"),
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
    const kind = `side card ${join || !place ? slot(id) : "part"}`;
    const part = join ? "" : place ? "second part, " : "first part, ";
    const shown = question.shown[place];
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
          part,
          counted(question.sizes[place], "vector"),
        ),
      ),
      el(
        "ul",
        { class: "shown" },
        ...shown.map((each) =>
          el(
            "li",
            {},
            payload(this.context, each.payload),
            el("span", { class: "quiet number" }, timeOf(each)),
          )
        ),
      ),
      !shown.length &&
        el("p", { class: "quiet" }, "Vectors are not kept; only the figures below are known."),
    );
  }

  async nothing() {
    const { total } = await this.context.get("clusters", { limit: 1 });
    return el("section", { class: "card", tabindex: "-1" }, this.why(total));
  }

  /** Return why there is no question, and what to do. */
  why(total) {
    if (!total) {
      const words = "Questions appear with the first clusters. Add a vector:";
      return empty("Nothing to review yet", el("p", {}, words), addLine(this.context));
    }
    const done = this.sitting.answers.length;
    return empty(
      done ? "All done" : "Nothing to ask",
      el(
        "p",
        {},
        "No two clusters are similar enough to ask about, and no cluster depends on a weak edge. ",
        "New vectors may raise new questions; they appear here by themselves.",
      ),
      el("a", { href: this.context.link("cluster") }, "Look at the clusters"),
    );
  }

  told({ kind, clusters, names, sizes }) {
    const [one, other] = clusters.map((id, place) => called(id, names[place]));
    const [first, second] = sizes.map((size) => counted(size, "vector"));
    return kind === "join"
      ? `Is ${one}, of ${first}, the same as ${other}, of ${second}?`
      : `Do the two parts of ${one}, of ${first} and of ${second}, belong together?`;
  }
}

/** Return what an answer did, in words. */
function told(action, { kind, clusters, names }) {
  const [one, other] = clusters.map((id, place) => called(id, names[place]));
  if (kind === "join") {
    return action === "same"
      ? `Same: ${one} and ${other} are one cluster now`
      : `Different: ${one} and ${other} stay apart`;
  }
  return action === "same"
    ? `Same: the two parts of ${one} stay together`
    : `Different: ${one} was cut into two clusters`;
}
