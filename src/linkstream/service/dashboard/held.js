/**
 * Held: the vectors that wait for a decision, one at a time, with what they would get now and how
 * sure that is. Every action has a key; answers can be undone, the last answer first.
 */

import { button, counted, el, figure, foreign, number, slot } from "./elements.js";
import { chip, command, confirmed, empty, payload, percent, unknown } from "./parts.js";

const ASKED = 50; // vectors fetched
const SHOWN = 3; // vectors of the cluster that it would get
const NEW = -1; // stands for a new cluster
const KEYS = {
  a: "accept",
  arrowright: "accept",
  c: "new",
  arrowleft: "new",
  n: "skip",
  " ": "skip",
  u: "undo",
};

/**
 * @typedef {{vector: number, cluster: number, kind: string, probability: number|null,
 *   payload: any}} Waiting
 */

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Held(context);
  root.append(...view.parts);
  const keys = (event) => view.key(event);
  document.addEventListener("keydown", keys);
  context.signal.addEventListener("abort", () => document.removeEventListener("keydown", keys));
  await view.load();
}

class Held {
  constructor(context) {
    this.context = context;
    this.answers = []; // first events of answers that can be undone, oldest first
    this.skipped = new Set();
    this.busy = false;
    this.question = null;
    this.stage = el("div", { class: "stage" });
    this.count = el("span", { class: "quiet figures small-text" }, " ");
    this.spoken = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.undoButton = this.button("undo", "Undo", "U", "small");
    this.undoButton.disabled = true;
    this.parts = [
      el(
        "div",
        { class: "review-head" },
        el("h1", {}, "Held vectors"),
        this.count,
        el("div", { class: "buttons" }, this.undoButton),
      ),
      this.stage,
      this.spoken,
    ];
  }

  button(action, title, key, kind) {
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
    if (event.key === " " && target.closest?.("button, a")) return; // Space activates it
    const action = KEYS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    this.run(action);
  }

  async run(action) {
    if (this.busy) return;
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
  }

  async answer(action) {
    if (!this.context.may("write")) {
      this.context.say("Your token allows reading only.", { tone: "bad" });
      return;
    }
    const { vector, cluster } = this.question;
    const target = action === "new" ? NEW : cluster;
    const { cluster: given } = await this.context.post("assign", { vector, cluster: target });
    const event = await this.firstEvent(vector);
    if (event !== null) this.answers.push(event);
    const where = target === NEW ? `a new cluster, ID ${given}` : `ID ${given}`;
    await this.load(`Vector ${number(vector)} is in ${where}`);
  }

  /** Return the first event of the answer about a vector; null if it cannot be told any more. */
  async firstEvent(vector) {
    const { steps } = await this.context.get("steps", { limit: 5 });
    for (const { command: verb, event, undone } of steps) {
      if (undone || verb !== "assign") continue;
      const { events } = await this.context.get("events", { since: event, limit: 1 });
      if (events[0]?.member === vector) return event;
    }
    return null;
  }

  /** Undo the last answer; ask if that takes back what came after it, too. */
  async undo() {
    const to = this.answers.at(-1);
    if (to === undefined) {
      this.spoken.textContent = "There is no answer to undo.";
      return;
    }
    const { events } = await this.context.api.get(
      `/v1/namespaces/${encodeURIComponent(this.context.namespace)}/stats`,
    );
    const { steps } = await this.context.get("steps", { limit: 1 });
    const newest = steps.find((step) => !step.undone);
    if (newest?.event === to) await this.context.post("undo", { to, after: events });
    else if (!(await this.goesFurther())) return;
    else await this.context.post("undo", { to });
    this.answers.pop();
    await this.load("Undone");
  }

  goesFurther() {
    return confirmed(
      "Newer events exist",
      "Vectors or corrections followed this answer. Undo reverts them too, and the vectors must be sent again.",
      "Undo all",
      "Leave it",
    );
  }

  async skip() {
    this.skipped.add(this.question.vector);
    await this.load("Skipped");
  }

  async load(words = "") {
    const [{ held }, policy, sure] = await Promise.all([
      this.context.get("held", { limit: ASKED }),
      this.context.get("policy"),
      this.context.get("confidence", { brief: true }),
    ]);
    this.sure = sure;
    /** @type {Waiting[]} */
    const open = held.filter(({ vector }) => !this.skipped.has(vector));
    this.question = open[0] ?? null;
    this.undoButton.disabled = !this.answers.length;
    const left = held.length === ASKED ? `${ASKED} or more` : number(open.length);
    this.count.textContent = `${left} waiting`;
    this.stage.replaceChildren(
      this.question ? await this.asked(this.question) : this.nothing(policy, held.length),
    );
    const next = this.question ? `Vector ${number(this.question.vector)}` : "No vector waits";
    this.spoken.textContent = [words, next].filter(Boolean).join(". ");
    const first = /** @type {HTMLElement} */ (this.stage.firstElementChild);
    first.focus({ preventScroll: true });
  }

  /** @param {Waiting} question */
  async asked(question) {
    const { vector, cluster } = question;
    const fresh = cluster === NEW;
    return el(
      "article",
      {
        class: "question",
        "aria-label": "Held vector",
        tabindex: "-1",
        data: { vector: String(vector) },
      },
      el(
        "div",
        { class: "question-head" },
        el("h2", {}, fresh ? "Is this a new identity?" : "Does this vector belong there?"),
        el("span", { class: "tag" }, `vector ${number(vector)}`),
      ),
      el(
        "div",
        { class: "sides" },
        el(
          "section",
          { class: "side card", "aria-label": "The vector" },
          el("header", {}, el("strong", {}, "The vector")),
          el("ul", { class: "shown" }, member(this.context, question)),
        ),
        fresh ? newSide() : await this.clusterSide(cluster),
      ),
      this.probability(question),
      el(
        "div",
        { class: "answers" },
        !fresh && this.button("new", "A new cluster", "←", "answer no"),
        this.button("skip", "Skip", "N", "answer"),
        this.button("accept", fresh ? "Yes, a new cluster" : "Yes, there", "→", "answer yes"),
      ),
    );
  }

  probability({ probability }) {
    if (Number.isFinite(probability)) {
      const words = "Probability that this is right: ";
      return el("p", { class: "same-identity" }, words, el("strong", {}, percent(probability)));
    }
    return el(
      "p",
      { class: "same-identity quiet" },
      "Probability that this is right ",
      foreign(unknown(this.sure)),
    );
  }

  async clusterSide(id) {
    const [{ cluster }, { vectors }] = await Promise.all([
      this.context.get(`clusters/${id}`, { brief: true }),
      this.context.get(`clusters/${id}/vectors`, { limit: SHOWN }),
    ]);
    return el(
      "section",
      { class: `side card ${slot(id)}`, "aria-label": "The cluster it would get" },
      el(
        "header",
        {},
        chip(this.context, id, cluster.name),
        el("span", { class: "quiet figures small-text" }, counted(cluster.size, "vector")),
      ),
      el("ul", { class: "shown" }, ...vectors.map((each) => member(this.context, each))),
    );
  }

  /** Return why no vector waits, and how vectors come to be held. */
  nothing(policy, held) {
    const words = this.skipped.size && held ? "Only skipped vectors are left" : "No vector waits";
    const again = () => {
      this.skipped.clear();
      this.load().catch(this.context.report);
    };
    const more = this.skipped.size && held
      ? button("Ask about them again", again, { class: "main" })
      : told(this.context, policy);
    return el("section", { class: "card", tabindex: "-1" }, empty(words, more));
  }
}

function newSide() {
  return el(
    "section",
    { class: "side card", "aria-label": "What it would get" },
    el("header", {}, el("strong", {}, "A new cluster")),
    el("p", { class: "quiet" }, "No cluster is similar enough."),
  );
}

function member(context, { vector, payload: said, id = null, time = null }) {
  const words = [id ?? `vector ${number(vector)}`, time].filter(Boolean).join(", ");
  return el(
    "li",
    {},
    payload(context, said),
    el("span", { class: "quiet figures number" }, foreign(words, 80)),
  );
}

function told(context, { unsure, probability }) {
  if (unsure === "hold") {
    const sure = `Vectors are held if the decision on them is right with less than ${
      figure(100 * probability, 0)
    } %.`;
    return el("p", { class: "quiet" }, sure);
  }
  const url = `${location.origin}/v1/namespaces/${context.namespace}/accept`;
  const token = context.api.token ? ' -H "Authorization: Bearer $TOKEN"' : "";
  const body = '{"probability": 0.95, "unsure": "hold"}';
  return el(
    "div",
    {},
    el("p", {}, "Here all vectors are decided on at once. To hold unsure ones:"),
    command(`curl ${url}${token} -H "Content-Type: application/json" -d '${body}'`),
  );
}
