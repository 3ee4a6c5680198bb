/** Which cluster is this vector? Asks without adding anything. */

import { called, el, foreign, number, signed } from "./elements.js";
import { card, chip, payload } from "./parts.js";

const NEAR = 3; // clusters that are shown
const EXAMPLES = 3; // vectors of each

/** Return the card where one pastes a vector, or gives the number of one that is there. */
export function tryCard(context) {
  const input = el("textarea", {
    id: "try-vector",
    name: "vector",
    rows: "3",
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "[0.12, -0.03, …]  or  17",
    "aria-describedby": "try-help",
  });
  const found = el("div", { class: "try-answer", "aria-live": "polite" });
  const form = el(
    "form",
    { class: "stack" },
    el("label", { for: "try-vector" }, "A vector, or the number of one that is here"),
    input,
    el("p", { class: "quiet small-text", id: "try-help" }, "Nothing is added or changed."),
    el("div", { class: "buttons" }, el("button", { type: "submit" }, "Which cluster?")),
    found,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    found.replaceChildren(el("p", { class: "quiet" }, "Asking…"));
    try {
      found.replaceChildren(await answerTo(context, input.value.trim()));
    } catch (error) {
      found.replaceChildren(problem(error));
    }
  });
  return card("Which cluster is this?", { class: "begin-try" }, form);
}

async function answerTo(context, text) {
  if (/^\d+$/.test(text)) return stored(context, text);
  return explained(context, parsed(text));
}

function parsed(text) {
  let value = null;
  try {
    value = JSON.parse(text.startsWith("[") ? text : `[${text}]`);
  } catch {
    // told below
  }
  if (Array.isArray(value) && value.length > 1 && value.every(Number.isFinite)) return value;
  throw new Error("Write numbers with commas, such as [0.1, 0.2, 0.3], or one whole number.");
}

function problem(error) {
  return el(
    "p",
    { class: "bad-words", role: "alert" },
    foreign([error.message, error.remedy].filter(Boolean).join(" ")),
  );
}

/** Show where a vector that is there is now. */
async function stored(context, text) {
  const vector = await context.get(`vectors/${text}`);
  if (vector.cluster < 0) {
    const words = `Vector ${text} is held: it waits for a decision.`;
    return el("div", { class: "stack" }, el("p", {}, words), payload(context, vector.payload));
  }
  const about = await context.get(`clusters/${vector.cluster}`, { brief: true });
  return el(
    "div",
    { class: "stack" },
    el("p", {}, `Vector ${text} is in `, chip(context, about.id, about.cluster?.name), "."),
    payload(context, vector.payload),
  );
}

/**
 * Return what a vector would become, with examples of the nearest clusters.
 * @param {import("./app.js").Context} context
 * @param {number[]} vector
 */
export async function explained(context, vector) {
  const why = await context.post("explain", { vector, limit: NEAR });
  const ids = [...new Set(why.nearest.map(({ cluster }) => cluster))];
  const near = await Promise.all(ids.map((id) => example(context, id)));
  const names = new Map(near.map(({ id, name }) => [id, name]));
  return el(
    "div",
    { class: "stack" },
    verdict(context, why, names),
    ...near.map((each) => nearest(context, each, why)),
    el(
      "details",
      {},
      el("summary", {}, "The numbers"),
      el("pre", { class: "try-numbers" }, foreign(why.words, 4000)),
    ),
  );
}

async function example(context, id) {
  const [about, { vectors }] = await Promise.all([
    context.get(`clusters/${id}`, { brief: true }),
    context.get(`clusters/${id}/vectors`, { limit: EXAMPLES }),
  ]);
  return { id, name: null, size: vectors.length, ...about.cluster, vectors };
}

/** Say in words what would happen, and how clearly. */
function verdict(context, why, names) {
  if (why.kind === "new" || why.cluster === null || why.cluster < 0) {
    return el(
      "p",
      {},
      el("strong", {}, "It would begin a new cluster."),
      ` ${clearly(why.margin)}`,
    );
  }
  return el(
    "p",
    {},
    el("strong", {}, "It would go to "),
    chip(context, why.cluster, names.get(why.cluster) ?? null),
    el("strong", {}, "."),
    ` ${clearly(why.margin)}`,
  );
}

function clearly(margin) {
  if (!Number.isFinite(margin)) return "There is nothing near it.";
  const far = Math.abs(margin);
  const words = far > 0.1 ? "That is clear" : far > 0.03 ? "That is fairly clear" : "That is close";
  return `${words}: margin ${signed(margin)}.`;
}

function nearest(context, { id, name, size, vectors }, why) {
  const best = why.nearest.find(({ cluster }) => cluster === id);
  return el(
    "section",
    { class: "try-near", "aria-label": called(id, name) },
    el(
      "p",
      { class: "small-text" },
      chip(context, id, name),
      el("span", { class: "quiet" }, ` ${number(size)} vectors, similarity `),
      el("span", { class: "figures" }, best.similarity.toFixed(2)),
    ),
    el("div", { class: "examples" }, ...vectors.map((each) => payload(context, each.payload))),
  );
}
