/**
 * Held: the items that wait for a decision, one at a time, with what they would get now and how
 * sure that is.
 */

import { button, called, counted, el, figure, foreign, number, slot } from "./elements.js";
import { chip, confirmed, empty, payload, percent, unknown } from "./parts.js";
import { keepsakes, Sitting } from "./sitting.js";
import { timeOf } from "./times.js";

const ASKED = 50; // items fetched
const SHOWN = 3; // items of the cluster that it would get
const NEW = -1; // stands for a new cluster
const RECENT = 10; // changes among which an answer is looked for
const ABOUT = {
  title: "Held vectors",
  links: /** @type {[string, string][]} */ ([["review", "Review"], ["confidence", "How sure?"]]),
  choices: [
    { action: "new", words: "A new cluster", key: "c", sign: "←", kind: "no" },
    { action: "unsure", words: "Not sure", key: "n", sign: "N", kind: "" },
    { action: "accept", words: "Yes, there", key: "a", sign: "→", kind: "yes" },
  ],
  keys: {
    a: "accept",
    arrowright: "accept",
    c: "new",
    arrowleft: "new",
    n: "unsure",
    " ": "unsure",
    u: "undo",
  },
  help: /** @type {import("./help.js").KeyRows} */ ([
    [["A", "→"], "Accept what it would get"],
    [["C", "←"], "Begin a new cluster with it"],
    [["N", "Space"], "Not sure: ask again after the others"],
    [["U"], "Take back the last answer"],
  ]),
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
  root.append(...view.sitting.parts);
  await view.sitting.begin();
}

class Held {
  constructor(context) {
    this.context = context;
    this.sitting = new Sitting(context, ABOUT, this);
    this.sure = { why: "", identities: null };
  }

  named({ vector }) {
    return String(vector);
  }

  labelled(action, { cluster }) {
    const fresh = cluster === NEW;
    if (action === "new") return fresh ? null : "A new cluster";
    if (action === "accept") return fresh ? "Yes, a new cluster" : "Yes, there";
    return "Not sure";
  }

  async fetch() {
    const [{ held }, policy, sure] = await Promise.all([
      this.context.get("held", { limit: ASKED }),
      this.context.get("policy"),
      this.context.get("confidence", { brief: true }),
    ]);
    this.sure = sure;
    return { questions: held, more: held.length === ASKED, policy };
  }

  async answer(action, { vector, cluster }) {
    const shown = [0, 1].map((side) => keepsakes(this.sitting.stage, side));
    const target = action === "new" ? NEW : cluster;
    const { cluster: given } = await this.context.post("assign", { vector, cluster: target });
    const [{ before, event }, { cluster: about }] = await Promise.all([
      this.eventsOf(vector),
      this.context.get(`clusters/${given}`, { brief: true }),
    ]);
    const where = called(given, about?.name ?? null);
    const fresh = target === NEW;
    const words = fresh
      ? `Decided: it is in a new cluster, ${where}`
      : `Decided: it is in ${where}`;
    return { words, before, event, shown, outcome: fresh ? "new" : "placed", items: 0 };
  }

  /** Return the events of the answer about a vector; none if they cannot be told any more. */
  async eventsOf(vector) {
    const wanted = { kind: "move", by: "people", limit: RECENT };
    const { changes } = await this.context.get("activity", wanted);
    const mine = changes.find(({ verb, said, undone }) =>
      verb === "assign" && said.vector === vector && !undone
    );
    return mine ? { before: mine.event, event: mine.until } : { before: -1, event: -1 };
  }

  /** Undo an answer; ask first if that takes back what came after it, too. */
  async undo(answer) {
    const place = this.sitting.answers.indexOf(answer);
    try {
      await this.context.post("undo", { to: answer.before, after: answer.event });
    } catch (error) {
      if (error.kind !== "undo") throw error;
      if (!(await goesFurther())) return null;
      await this.context.post("undo", { to: answer.before });
    }
    const { events } = await this.context.api.get(
      `/v1/namespaces/${encodeURIComponent(this.context.namespace)}/stats`,
    );
    const last = this.sitting.answers[place - 1];
    if (last && last.event === answer.before) last.event = events;
    return this.sitting.answers.slice(place);
  }

  /** @param {Waiting} question */
  async asked(question, again) {
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
        again && el("span", { class: "tag accent" }, "you were not sure"),
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

  told({ vector }) {
    return `Item ${number(vector)}`;
  }

  /** Return why no item waits, and a form that says from when on items are held. */
  nothing({ policy }) {
    return el(
      "section",
      { class: "card", tabindex: "-1" },
      empty("No vector waits", this.policy(policy)),
    );
  }

  policy({ unsure, probability }) {
    const holds = unsure === "hold" && probability !== null;
    const words = holds
      ? `Vectors are held if the decision on them is right with less than ${
        figure(100 * probability, 0)
      } %.`
      : "Here all vectors are decided on at once. Unsure ones can wait for you instead.";
    const input = el("input", {
      id: "hold-below",
      type: "number",
      min: 50,
      max: 99.9,
      step: "any",
      required: true,
      value: holds ? Number((100 * probability).toFixed(2)) : 95,
    });
    const set = async (body, done) => {
      try {
        await this.context.post("accept", body);
        this.context.say(done);
        await this.sitting.load();
      } catch (error) {
        this.context.report(error);
      }
    };
    const stop = () =>
      set({ probability: null }, "Vectors are not held any more; those that wait still do");
    const form = el(
      "form",
      { class: "line-form" },
      el("label", { for: "hold-below" }, "Hold vectors below"),
      input,
      el("span", {}, "%"),
      el("button", { type: "submit", class: "main" }, holds ? "Change" : "Hold unsure vectors"),
      holds && button("Hold no more", stop),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const share = input.valueAsNumber / 100;
      set({ probability: share, unsure: "hold" }, "Unsure vectors wait here from now on");
    });
    const known = !this.sure.why;
    return el(
      "div",
      { class: "policy" },
      el("p", { class: "quiet" }, words),
      !known && el(
        "p",
        { class: "quiet" },
        "The service does not know yet how sure its decisions are: until then nothing is held. ",
        el("a", { href: this.context.link("confidence") }, "How sure?"),
      ),
      known && this.context.may("write") && form,
    );
  }
}

function goesFurther() {
  return confirmed(
    "Newer changes exist",
    "Vectors or corrections followed this answer. Undo reverts them too, and the vectors must be sent " +
      "again. Or leave it, and move the vector to another cluster.",
    "Undo all",
    "Leave it",
  );
}

function newSide() {
  return el(
    "section",
    { class: "side card", "aria-label": "What it would get" },
    el("header", {}, el("strong", {}, "A new cluster")),
    el("p", { class: "quiet" }, "No cluster is similar enough."),
  );
}

function member(context, each) {
  return el(
    "li",
    {},
    payload(context, each.payload),
    el("span", { class: "quiet number" }, timeOf(each)),
  );
}
