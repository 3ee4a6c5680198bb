/** Parts that several views are made of. */

import { el, foreign, harmless, short, signed, slot } from "/page/elements.js";

const PASSES = 6_000; // milliseconds that a note stays
const WIDEST = 0.3; // the margin that fills half of a bar

/**
 * A note that passes, read out by screen readers.
 * @param {string} words
 * @param {{tone?: "good"|"bad", detail?: string, action?: {label: string, run: () => void}}} [options]
 */
export function say(words, { tone = "good", detail = "", action = null } = {}) {
  const place = document.getElementById("toasts");
  const note = el("div", { class: `toast ${tone}` }, el("p", {}, harmless(words)));
  if (detail) note.append(el("p", { class: "quiet" }, harmless(detail)));
  const close = () => note.remove();
  if (action) {
    note.append(
      el(
        "button",
        { type: "button", class: "small", on: { click: () => { close(); action.run(); } } },
        action.label,
      ),
    );
  }
  while (place.children.length > 2) place.firstChild.remove();
  place.append(note);
  setTimeout(close, tone === "bad" ? 2 * PASSES : PASSES);
}

/** A card with a heading. `more` goes to the right of the heading. */
export function card(title, { more = null, ...props } = {}, ...children) {
  const head = el("div", { class: "card-head" }, el("h2", {}, title), more);
  return el(
    "section",
    { ...props, class: `card ${props.class ?? ""}`, "aria-label": title },
    head,
    ...children,
  );
}

/** What to show where there is nothing yet: a title, and what to do. */
export function empty(title, ...children) {
  return el("div", { class: "empty" }, el("h2", {}, title), ...children);
}

/** A line to type into a terminal, with a button that copies it. */
export function command(line) {
  const button = el(
    "button",
    { type: "button", class: "small", "aria-label": "Copy the command" },
    "Copy",
  );
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = "Copied";
    } catch {
      say("This browser does not let the page copy; select the line instead.", { tone: "bad" });
    }
  });
  return el(
    "div",
    { class: "command" },
    el("pre", { tabindex: "0" }, el("code", {}, line)),
    button,
  );
}

/** What went wrong, what was expected, what helps; `again` tries once more. */
export function problemPanel(problem, again) {
  const rows = [
    ["Seen", problem.seen],
    ["Expected", problem.expected],
    ["What helps", problem.remedy],
  ];
  const list = el("dl", { class: "rows" });
  for (const [name, words] of rows) {
    if (words) list.append(el("dt", {}, name), el("dd", {}, foreign(words)));
  }
  if (problem.chain) list.append(
    el("dt", {}, "Because"),
    el("dd", {}, foreign(JSON.stringify(problem.chain))),
  );
  return el("section", { class: "card problem", role: "alert" },
    el("h1", {}, "That did not work"), list,
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "main", on: { click: again } }, "Try again"),
    ));
}

/** The form that asks for a token; `problem` says why the last one was refused. */
export function tokenForm(problem, submit) {
  const input = el("input", {
    id: "token", name: "token", type: "password", autocomplete: "off", required: true,
    spellcheck: "false", placeholder: "lsk_…", "aria-describedby": "token-help",
  });
  const form = el("form", { class: "stack" },
    el("label", { for: "token" }, "Token"), input,
    problem && el("p", { class: "bad-words", role: "alert" }, foreign(problem.seen)),
    el(
      "p",
      { class: "quiet", id: "token-help" },
      "It is kept in this tab only and forgotten when you close it. Make one with:",
    ),
    command("linkstream token create DATA --scope '*=write'"),
    el("div", { class: "buttons" }, el("button", { class: "main", type: "submit" }, "Open")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(input.value.trim());
  });
  queueMicrotask(() => input.focus());
  return el(
    "section",
    { class: "card narrow" },
    el("h1", {}, "This service asks for a token"),
    form,
  );
}

/** What to do where there is no namespace. */
export function noNamespace(limited) {
  const body = '{"thresholds": {"cluster_similarity": 0.7, "subcluster_similarity": 0.8, "pair_similarity_max": 0.9}}';
  const token = limited ? ' -H "Authorization: Bearer $TOKEN"' : "";
  return el("section", { class: "card narrow" }, empty("There is nothing to look at yet",
    el("p", {}, limited
      ? "There is no namespace, or none that this token may read. One is made by:"
      : "A namespace is one stream of vectors and its clusters. Make one:"),
    command(
      `curl -X PUT ${location.origin}/v1/namespaces/people${token} -H "Content-Type: application/json" -d '${body}'`,
    ),
    el(
      "p",
      { class: "quiet" },
      "The three thresholds belong to your encoder; linkstream tune finds them. This page shows the namespace as soon as it is there. To see voices arrive instead: linkstream serve --demo",
    )));
}

/** A line that adds one vector, for empty states. */
export function addLine(context, dimension) {
  const vector = `[${Array.from({ length: Math.min(dimension || 3, 3) }, () => "0.1").join(", ")}, …]`;
  return command(
    `curl ${location.origin}/v1/namespaces/${context.namespace}/vectors -H "Content-Type: application/json" -d '{"vector": ${vector}, "payload": {"text": "hello"}}'`,
  );
}

/** A cluster by its name or ID, in its colour, leading to its view. */
export function chip(context, id, name = null) {
  const title = name === null ? null : `${short(name, 120)} (ID ${id})`;
  return el("a", { class: `chip ${slot(id)}`, href: context.link("cluster", id), title },
    el("span", { class: "dot", "aria-hidden": "true" }),
    name === null || name === undefined ? `ID ${id}` : foreign(name, 40));
}

/** A margin as a bar: to the right what lies above its threshold, to the left what lies below. */
export function marginBar(margin) {
  if (!Number.isFinite(margin)) return el("span", { class: "quiet" }, "–");
  const share = Math.max(
    Math.min(Math.abs(margin) / WIDEST, 1) * 50,
    2.5,
  ); // even the least can be seen
  const bar = el(
    "span",
    {
      class: `bar ${margin < 0 ? "under" : "over"}`,
      "aria-hidden": "true",
      vars: { "--share": `${share.toFixed(1)}%` },
    },
  );
  return el("span", { class: "margin" }, bar, el("span", { class: "figures" }, signed(margin)));
}

/** What was said with a vector: a picture, a text, or fields. */
export function payload(context, value) {
  if (value === null || value === undefined) return el("span", { class: "quiet" }, "no payload");
  if (typeof value !== "object") return foreign(value, 280);
  const fields = Array.isArray(value) ? [["items", value]] : Object.entries(value);
  const box = el("div", { class: "payload" });
  for (const [name, field] of fields.slice(0, 8)) {
    if (name === "image" && typeof field === "string") box.append(picture(context, field));
    else if (name === "text") box.append(el("p", { class: "said" }, foreign(field, 280)));
    else box.append(
      el(
        "span",
        { class: "field" },
        el("span", { class: "quiet" }, foreign(name, 30), " "),
        foreign(plain(field), 80),
      ),
    );
  }
  if (fields.length > 8) box.append(
    el("span", { class: "quiet" }, `and ${fields.length - 8} more`),
  );
  return box;
}

const plain = (field) => {
  if (typeof field === "number") return Number.isInteger(field) ? field : Number(field.toFixed(4));
  return typeof field === "object" ? JSON.stringify(field) : field;
};

/** A payload in one line of plain text, for labels and hovers. */
export function payloadLine(value, width = 60) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return short(value, width);
  if (typeof value.text === "string") return short(value.text, width);
  const line = Object.entries(value).map(([name, field]) => `${name} ${plain(field)}`).join(", ");
  return short(line, width);
}

function picture(context, path) {
  const image = el(
    "img",
    { alt: short(path, 80), class: "picture waiting", width: 96, height: 96 },
  );
  const route = path.split("/").map(encodeURIComponent).join("/");
  context.picture(`images/${route}`).then(
    (url) => { image.src = url; image.classList.remove("waiting"); },
    () => image.replaceWith(el("span", { class: "quiet" }, "no picture: ", foreign(path, 40))),
  );
  return image;
}

/**
 * A question in the page, before something that cannot be taken back lightly.
 * @returns {Promise<boolean>}
 */
export function confirmed(title, words, label, keep = "Keep it") {
  return new Promise((done) => {
    const answer = (value) => { dialog.close(); dialog.remove(); done(value); };
    const dialog = el("dialog", {
      class: "card",
      "aria-labelledby": "asked",
      on: { cancel: () => answer(false) },
    },
      el("h2", { id: "asked" }, title), el("p", {}, words),
      el("div", { class: "buttons" },
        el("button", { type: "button", on: { click: () => answer(false) } }, keep),
        el(
          "button",
          { type: "button", class: "danger", on: { click: () => answer(true) } },
          label,
        )));
    document.body.append(dialog);
    dialog.showModal();
  });
}
