/**
 * A sitting: questions one after another, answered by buttons or keys. Review and Held are sittings.
 *
 * A question stays until it is answered, whatever the stream does meanwhile. "Not sure" puts it
 * behind the others. The answers of the sitting are listed, and each can be taken back.
 */

import { button, counted, el, number } from "./elements.js";
import { card } from "./parts.js";
import { isTyping, offerKeys } from "./help.js";
import { fillTimes } from "./times.js";

/**
 * @typedef {object} Answer  of this sitting
 * @property {string} words
 * @property {number} before  the first event of the answer
 * @property {number} event  the event after it
 * @property {Node[][]} shown  what the question was about, to be shown in the list
 * @property {string} outcome  what it changed, for the summary: "joined", "cut", …
 * @property {number} items  how many items it has put elsewhere
 *
 * @typedef {object} View  what a kind of question needs
 * @property {(question: any) => string} named  the same for equal questions
 * @property {(action: string, question: any) => string|null} labelled
 *   the words of a choice for a question; null if it is not offered
 * @property {() => Promise<{questions: any[], more: boolean}>} fetch
 * @property {(question: any, again: boolean) => HTMLElement|Promise<HTMLElement>} asked
 *   the element of a question; again: it comes again, because the user was not sure
 * @property {(question: any) => string} told  the question in plain text
 * @property {(found: any) => HTMLElement|Promise<HTMLElement>} nothing
 *   what to show if there is no question
 * @property {(action: string, question: any) => Promise<Answer>} answer  sends an answer
 * @property {(answer: Answer) => Promise<Answer[]|null>} undo
 *   takes an answer back; returns all answers that went with it, null for none
 *
 * @typedef {{action: string, words: string, key: string, sign: string, kind: string}} Choice
 */

const READS_ONLY = "Your token allows reading only: you can look at the questions, " +
  "and need a token with the scope write to answer them.";
const AGAIN = 1_500; // milliseconds between two looks for questions while there are none

/** Questions, answers and keys, for any kind of question. */
export class Sitting {
  /**
   * @param {import("./app.js").Context} context
   * @param {{title: string, choices: Choice[], keys: Object<string, string>,
   *   help: import("./help.js").KeyRows, links: [string, string][]}} about
   * @param {View} view
   */
  constructor(context, about, view) {
    this.context = context;
    this.view = view;
    this.about = about;
    this.may = context.may("write");
    /** @type {Answer[]} */
    this.answers = []; // oldest first
    this.unsure = new Map(); // names of questions, in the order in which they come again
    this.busy = false;
    /** @type {any} */
    this.question = null;
    this.build();
  }

  build() {
    const { title, links, help } = this.about;
    this.progress = el("progress", { max: 1, value: 0, "aria-label": "Questions answered" });
    this.count = el("span", { class: "quiet figures small-text" }, " ");
    this.stage = el("div", { class: "stage" });
    this.spoken = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.undoButton = button("Undo", () => this.run("undo"), {
      class: "small",
      data: { action: "undo" },
      disabled: true,
    });
    this.undoButton.append(el("kbd", { "aria-hidden": "true" }, "U"));
    this.choices = this.about.choices.map((choice) => this.choice(choice));
    this.bar = el(
      "div",
      { class: "answer-bar", role: "group", "aria-label": "Answers" },
      el("div", { class: "answers" }, ...this.choices),
    );
    this.list = el("ol", { class: "answered" });
    this.summary = el("span", { class: "quiet small-text" });
    this.log = card("This sitting", { more: this.summary }, this.list);
    this.log.hidden = true;
    this.parts = [
      el(
        "div",
        { class: "review-head" },
        el("h1", {}, title),
        el("div", { class: "progress" }, this.progress, this.count),
        ...links.map(([view, words]) =>
          el("a", { href: this.context.link(view), class: "small-text" }, words)
        ),
        el(
          "div",
          { class: "buttons" },
          this.undoButton,
          offerKeys(this.context, title, help),
        ),
      ),
      !this.may && el("p", { class: "notice" }, READS_ONLY),
      this.stage,
      this.bar,
      this.log,
      this.spoken,
    ].filter(Boolean);
  }

  /** @param {Choice} choice */
  choice({ action, words, sign, kind }) {
    const made = button(words, () => this.run(action), {
      class: `answer ${kind}`,
      data: { action },
      disabled: true,
    });
    made.append(el("kbd", { "aria-hidden": "true" }, sign));
    return made;
  }

  /** Begin: show the first question, and listen to keys. */
  async begin() {
    const { signal } = this.context;
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    await this.load();
    // While nothing is asked, new questions appear by themselves.
    this.context.stream("live", { stats: ({ events }) => this.news(events) });
    signal.addEventListener("abort", () => clearTimeout(this.waiting));
  }

  news(events) {
    const changed = events !== this.events;
    this.events = events;
    if (!changed || this.question || this.busy || this.waiting) return;
    this.waiting = setTimeout(() => {
      this.waiting = undefined;
      if (!this.question && !this.busy) this.load("", { calm: true }).catch(() => {});
    }, AGAIN);
  }

  key(event) {
    if (isTyping(event) || document.querySelector("dialog[open]")) return;
    if ([" ", "Enter"].includes(event.key) && event.target.closest?.("button, a, summary")) return;
    const action = this.about.keys[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    this.run(action);
  }

  async run(action) {
    if (this.busy) return;
    if (!this.may && action !== "unsure") {
      this.spoken.textContent = READS_ONLY;
      return;
    }
    this.busy = true;
    this.stage.classList.add("busy");
    try {
      if (action === "undo") await this.takeBack(this.answers.at(-1));
      else if (this.question && this.allows(action)) {
        await (action === "unsure" ? this.putOff() : this.take(action));
      }
    } catch (error) {
      this.context.report(error);
      await this.load().catch((other) => this.context.report(other));
    } finally {
      this.busy = false;
      this.stage.classList.remove("busy");
    }
  }

  async take(action) {
    const answer = await this.view.answer(action, this.question);
    if (answer.event > answer.before) this.answers.push(answer);
    this.unsure.delete(this.view.named(this.question));
    await this.load(answer.words);
  }

  /** Ask about a question again after the others. */
  async putOff() {
    const name = this.view.named(this.question);
    this.unsure.delete(name);
    this.unsure.set(name, true);
    await this.load("Not sure: it comes again after the others");
  }

  /** Take back an answer of this sitting. @param {Answer|undefined} answer */
  async takeBack(answer) {
    if (!answer) {
      this.spoken.textContent = "There is no answer to undo.";
      return;
    }
    const gone = await this.view.undo(answer);
    if (!gone) return;
    this.answers = this.answers.filter((each) => !gone.includes(each));
    await this.load("Undone");
  }

  /** Ask for the questions, and show the first one. */
  async load(words = "", { calm = false } = {}) {
    const found = await this.view.fetch();
    const put = (question) => this.unsure.has(this.view.named(question));
    const open = found.questions.filter((question) => !put(question));
    const late = [...this.unsure.keys()]
      .map((name) => found.questions.find((question) => this.view.named(question) === name))
      .filter(Boolean);
    this.question = open[0] ?? late[0] ?? null;
    const left = open.length + late.length;
    const article = this.question
      ? await this.view.asked(this.question, open.length === 0)
      : await this.view.nothing(found);
    this.stage.replaceChildren(article);
    this.show(found, left);
    fillTimes(this.context, article);
    if (calm && !this.question) return;
    const again = this.question && !open.length ? "You were not sure about this one" : "";
    const next = this.question ? this.view.told(this.question) : "No more questions";
    this.spoken.textContent = [words, again, next].filter(Boolean).join(". ");
    article.focus({ preventScroll: true });
  }

  show({ more }, left) {
    const { length } = this.answers;
    this.progress.max = Math.max(length + left, 1);
    this.progress.value = length;
    const rest = more ? `${number(left)} or more left` : `${number(left)} left`;
    this.count.textContent = [
      `${number(length)} answered`,
      rest,
      this.unsure.size && `${number(this.unsure.size)} not sure`,
    ].filter(Boolean).join(", ");
    this.undoButton.disabled = !length || !this.may;
    this.bar.hidden = this.question === null;
    for (const made of this.choices) {
      made.disabled = !this.may && made.dataset.action !== "unsure";
      const words = this.question && this.view.labelled(made.dataset.action, this.question);
      made.hidden = words === null;
      if (words) made.firstChild.textContent = words;
    }
    this.log.hidden = !length;
    this.list.replaceChildren(...this.answers.map((each) => this.line(each)).reverse());
    this.summary.textContent = this.changed();
  }

  /** Return what the answers of this sitting have changed, in words. */
  changed() {
    const sums = new Map();
    this.answers.forEach(({ outcome }) => sums.set(outcome, (sums.get(outcome) ?? 0) + 1));
    const parts = [...sums].map(([outcome, count]) => `${number(count)} ${outcome}`);
    const items = this.answers.reduce((sum, each) => sum + each.items, 0);
    if (items) parts.push(`${counted(items, "vector")} corrected`);
    return parts.join(", ");
  }

  /** @param {Answer} answer */
  line(answer) {
    const back = button("Take back", async () => {
      if (this.busy) return;
      this.busy = true;
      try {
        await this.takeBack(answer);
      } catch (error) {
        this.context.report(error);
      } finally {
        this.busy = false;
      }
    }, { class: "small", "aria-label": `Take back: ${answer.words}` });
    return el(
      "li",
      {},
      el(
        "div",
        { class: "answered-shown", "aria-hidden": "true" },
        ...answer.shown.map((side) => el("div", {}, ...side)),
      ),
      el("p", {}, answer.words),
      back,
    );
  }

  /** Return whether a question can be answered so. */
  allows(action) {
    return this.view.labelled(action, this.question) !== null;
  }
}

/** Return copies of the pictures and texts of a side, for the list of answers. */
export function keepsakes(root, side) {
  const node = root.querySelectorAll(".side")[side]?.querySelector(".shown li > :first-child");
  return node ? [node.cloneNode(true)] : [];
}
