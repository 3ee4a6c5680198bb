/** Parts that several views share. */

import { button, el, foreign, harmless, short, signed, slot } from "./elements.js";

const PASSES = 6_000; // milliseconds that a note is shown
const JSON_KIND = '-H "Content-Type: application/json"';
const bearer = (wanted) => (wanted ? ' -H "Authorization: Bearer $TOKEN"' : "");
const LONG = 500; // characters of a command that is scrolled
const WIDEST = 0.3; // the margin that fills half of a bar

/**
 * Show a note for some seconds; screen readers read it aloud.
 * @param {string} words
 * @param {{tone?: "good"|"bad", detail?: string, action?: {label: string, run: () => void}}} [more]
 */
export function say(words, { tone = "good", detail = "", action = null } = {}) {
  const place = document.getElementById("toasts");
  const note = el("div", { class: `toast ${tone}` }, el("p", {}, harmless(words)));
  if (detail) note.append(el("p", { class: "quiet" }, harmless(detail)));
  const close = () => note.remove();
  if (action) {
    const run = () => {
      close();
      action.run();
    };
    note.append(button(action.label, run, { class: "small" }));
  }
  while (place.children.length > 2) place.firstChild.remove();
  place.append(note);
  setTimeout(close, tone === "bad" ? 2 * PASSES : PASSES);
}

/**
 * Return a card with a heading.
 * @param {string} title
 * @param {{more?: import("./elements.js").Child, class?: string}} [props] more: right of the heading
 * @param {...import("./elements.js").Child} children
 */
export function card(title, { more = null, ...props } = {}, ...children) {
  const head = el("div", { class: "card-head" }, el("h2", {}, title), more);
  const kind = `card ${props.class ?? ""}`;
  return el("section", { ...props, class: kind, "aria-label": title }, head, ...children);
}

/** Return what to show where there is no data yet: a title and what to do. */
export function empty(title, ...children) {
  return el("div", { class: "empty" }, el("h2", {}, title), ...children);
}

/** Return a command line with a Copy button. */
export function command(line) {
  const run = async () => {
    try {
      await navigator.clipboard.writeText(line);
      copy.textContent = "Copied";
    } catch {
      say("This browser does not allow copying; select the line instead.", { tone: "bad" });
    }
  };
  const long = line.length > LONG ? { tabindex: "0", class: "long" } : {}; // scrolls
  const copy = button("Copy", run, { class: "small", "aria-label": "Copy the command" });
  return el("div", { class: "command" }, el("pre", long, el("code", {}, line)), copy);
}

/**
 * Return a panel with an error and its remedy; the button calls `again`.
 * @param {import("./api.js").Problem} problem
 * @param {() => void} again
 * @param {import("./elements.js").Child} [waiting]  says when the page tries again by itself
 */
export function problemPanel(problem, again, waiting = null) {
  const rows = [
    ["Seen", problem.seen],
    ["Expected", problem.expected],
    ["What to do", problem.remedy],
    ["Because", problem.chain && JSON.stringify(problem.chain)],
  ];
  const list = el("dl", { class: "rows" });
  for (const [name, words] of rows) {
    if (words) list.append(el("dt", {}, name), el("dd", {}, foreign(words)));
  }
  const label = waiting ? "Try now" : "Try again";
  return el(
    "section",
    { class: "card problem narrow", "aria-label": "Error" },
    el("div", { role: "alert" }, el("h1", {}, title(problem)), list),
    waiting && el("p", { class: "quiet" }, waiting),
    el("div", { class: "buttons" }, button(label, again, { class: "main" })),
  );
}

function title({ kind, passes }) {
  if (kind === "network") return "The service cannot be reached";
  if (kind === "cancelled") return "Cancelled";
  return passes ? "The service is busy" : "That did not work";
}

/**
 * Count down seconds in words, then call `run`. Ended by `stop`.
 * @param {number} seconds
 * @param {() => void} run
 */
export function countdown(seconds, run) {
  const node = el("span", { class: "figures" });
  const until = performance.now() + 1_000 * seconds;
  const tell = () => {
    const left = Math.ceil((until - performance.now()) / 1_000);
    node.textContent = `The page tries again by itself in ${Math.max(left, 1)} s.`;
    if (left > 0) return;
    stop();
    run();
  };
  const stop = () => {
    clearInterval(beat);
    globalThis.removeEventListener("online", now);
  };
  const now = () => {
    stop();
    run();
  };
  const beat = setInterval(tell, 250);
  globalThis.addEventListener("online", now);
  tell();
  return { node, stop };
}

/**
 * Return grey shapes in place of content that is loading.
 * @param {"page"|"cards"|"rows"|"canvas"} [shape]
 * @param {number} [count]
 */
export function skeleton(shape = "page", count = 8) {
  const pieces = Array.from({ length: shape === "canvas" ? 1 : count }, () => el("div"));
  return el("div", { class: `skeleton ${shape}`, "aria-hidden": "true" }, ...pieces);
}

/** Return the form that asks for a token; `problem` is why the last token was refused. */
export function tokenForm(problem, submit) {
  const input = el("input", {
    id: "token",
    name: "token",
    type: "password",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
    placeholder: "lsk_…",
    "aria-describedby": "token-help",
  });
  const form = el(
    "form",
    { class: "stack" },
    el("label", { for: "token" }, "Token"),
    input,
    problem && el("p", { class: "bad-words", role: "alert" }, foreign(problem.seen)),
    el(
      "p",
      { class: "quiet", id: "token-help" },
      "The token stays in this tab until you close it or sign out. Whoever runs the service makes ",
      "tokens; this says how:",
    ),
    command("linkstream token create --help"),
    el("div", { class: "buttons" }, el("button", { class: "main", type: "submit" }, "Open")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(input.value.trim());
  });
  queueMicrotask(() => input.focus());
  const title = el("h1", {}, "This service needs a token");
  return el("section", { class: "card narrow" }, title, form);
}

/** Return the command that adds one vector; the first one sets the dimension. */
export function addLine(context) {
  const payload = '"payload": {"text": "hello"}';
  return postLine(context, "vectors", `{"vector": ${exampleVector(null)}, ${payload}}`);
}

/** Return the JSON of a vector of a dimension (null: any), for a command. */
export function exampleVector(dimension) {
  const numbers = Array.from({ length: dimension ?? 4 }, (_, at) => (at === 0 ? 1 : 0.1));
  return `[${numbers.join(", ")}]`;
}

/** Return the command that sends a body to a route of the namespace; it runs as it is copied. */
export function postLine(context, route, body) {
  const url = `${location.origin}/v1/namespaces/${context.namespace}/${route}`;
  const line = command(`curl ${url}${bearer(context.api.token)} ${JSON_KIND} -d '${body}'`);
  return context.api.token === null ? line : el(
    "div",
    { class: "stack" },
    line,
    el("p", { class: "quiet small-text" }, "Set the variable TOKEN to your token first."),
  );
}

/** Return a link to a cluster, with its colour and its name or ID. */
export function chip(context, id, name = null) {
  const title = name === null ? null : `${short(name, 120)} (ID ${id})`;
  return el(
    "a",
    { class: `chip ${slot(id)}`, href: context.link("cluster", id), title },
    el("span", { class: "dot", "aria-hidden": "true" }),
    name === null || name === undefined ? `ID ${id}` : foreign(name, 40),
  );
}

/** Return a margin as a bar: to the right if above the threshold, to the left if below. */
export function marginBar(margin) {
  if (!Number.isFinite(margin)) return el("span", { class: "quiet" }, "–");
  const filled = Math.min(Math.abs(margin) / WIDEST, 1) * 50;
  const vars = { "--share": `${Math.max(filled, 2.5).toFixed(1)}%` }; // keeps a small margin visible
  const side = margin < 0 ? "under" : "over";
  const bar = el("span", { class: `bar ${side}`, "aria-hidden": "true", vars });
  return el("span", { class: "margin" }, bar, el("span", { class: "figures" }, signed(margin)));
}

/** Return a probability in per cent; certainty is never claimed. */
export function percent(probability) {
  if (!Number.isFinite(probability)) return "–";
  if (probability >= 0.995) return "> 99 %";
  if (probability < 0.005) return "< 1 %";
  return `${Math.round(100 * probability)} %`;
}

/** Return in words what a probability that is not known rests on. */
export function unknown({ why }) {
  return why ? `unknown: ${why}` : "unknown for this margin";
}

/**
 * Return the payload of a vector: a picture, a sound, a text, or fields.
 * @param {import("./app.js").Context} context
 * @param {any} value
 * @param {{size?: number}} [props] size: width and height of a picture in pixels
 */
export function payload(context, value, { size = 96 } = {}) {
  if (value === null || value === undefined) return el("span", { class: "quiet" }, "no payload");
  if (typeof value !== "object") return foreign(value, 280);
  const fields = Array.isArray(value) ? [["items", value]] : Object.entries(value);
  const box = el("div", { class: "payload" });
  for (const [name, field] of fields.slice(0, 8)) box.append(part(context, name, field, size));
  const more = fields.length - 8;
  if (more > 0) box.append(el("span", { class: "quiet" }, `and ${more} more`));
  return box;
}

function part(context, name, field, size) {
  if (name === "image" && typeof field === "string") return picture(context, field, size);
  if (name === "sound" && typeof field === "string") return sound(context, field);
  if (name === "text") return el("p", { class: "said" }, foreign(field, 280));
  return el(
    "span",
    { class: "field" },
    el("span", { class: "quiet" }, foreign(name, 30), " "),
    foreign(plain(field), 80),
  );
}

/**
 * Return a row of vectors to look at, all of one size: pictures cropped to squares, texts as short
 * quotes, sounds as small players, anything else as a line of text.
 * @param {import("./app.js").Context} context
 * @param {{vector: number, key?: string|null, payload: any}[]} members
 */
export function thumbs(context, members) {
  const kinds = members.map((member) => thumb(context, member));
  const pictures = kinds.filter(({ square }) => square).length;
  const shape = pictures * 2 > kinds.length ? "squares" : "lines";
  return el(
    "ul",
    { class: `thumbs ${shape}`, data: { count: kinds.length } },
    ...kinds.map(({ node }) => el("li", { class: "thumb" }, node)),
  );
}

function thumb(context, { vector, key = null, payload: value }) {
  const fields = value !== null && typeof value === "object" ? value : {};
  if (typeof fields.image === "string") {
    return { square: true, node: picture(context, fields.image, 160) };
  }
  if (typeof fields.sound === "string") {
    return { square: false, node: sound(context, fields.sound) };
  }
  const line = payloadLine(value, 160);
  if (line) return { square: false, node: el("span", { class: "quote" }, foreign(line, 160)) };
  const name = key === null ? `vector ${vector}` : foreign(key, 60);
  return { square: false, node: el("span", { class: "quote quiet" }, name) };
}

const plain = (field) => {
  if (typeof field === "number") return Number.isInteger(field) ? field : Number(field.toFixed(4));
  return typeof field === "object" ? JSON.stringify(field) : field;
};

/** Return a payload in one line of plain text, for labels. */
export function payloadLine(value, width = 60) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return short(value, width);
  if (typeof value.text === "string") return short(value.text, width);
  const line = Object.entries(value).map(([name, field]) => `${name} ${plain(field)}`).join(", ");
  return short(line, width);
}

const media = (path) => `images/${path.split("/").map(encodeURIComponent).join("/")}`;

/** Return a picture of the media folder; it is fetched when it comes near the visible part. */
function picture(context, path, size) {
  const image = el("img", {
    alt: short(path, 80),
    class: "picture waiting",
    width: size,
    height: size,
    decoding: "async",
  });
  whenSeen(context, image, () =>
    context.picture(media(path)).then(
      (url) => {
        image.src = url;
        image.classList.remove("waiting");
      },
      () => image.replaceWith(el("span", { class: "quiet" }, "no picture: ", foreign(path, 40))),
    ));
  return image;
}

/** Return a button that plays a sound of the media folder; then it is a player. */
function sound(context, path) {
  const name = short(path.split("/").at(-1), 40);
  const play = async () => {
    start.disabled = true;
    try {
      const url = await context.picture(media(path));
      const player = el("audio", { src: url, controls: true, "aria-label": name, class: "player" });
      start.replaceWith(player);
      player.focus();
      await player.play();
    } catch (error) {
      start.disabled = false;
      if (error.name === "NotAllowedError" || error.name === "AbortError") return;
      start.replaceWith(el("span", { class: "quiet" }, "no sound: ", foreign(path, 40)));
    }
  };
  const start = button(`▶ ${name}`, play, { class: "small sound", "aria-label": `Play ${name}` });
  return start;
}

/**
 * Call `run` once when an element comes near the visible part of the page.
 * @param {import("./app.js").Context} context
 * @param {Element} node
 * @param {() => void} run
 */
export function whenSeen(context, node, run) {
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    run();
  }, { rootMargin: "300px" });
  watch.observe(node);
  context.signal.addEventListener("abort", () => watch.disconnect(), { once: true });
}

/**
 * Ask for confirmation in a dialog.
 * @returns {Promise<boolean>}
 */
export function confirmed(title, words, label, keep = "Keep it") {
  return new Promise((done) => {
    const answer = (value) => {
      dialog.close();
      dialog.remove();
      done(value);
    };
    const on = { cancel: () => answer(false) };
    const dialog = el(
      "dialog",
      { class: "card", "aria-labelledby": "asked", on },
      el("h2", { id: "asked" }, title),
      el("p", {}, words),
      el(
        "div",
        { class: "buttons" },
        button(keep, () => answer(false)),
        button(label, () => answer(true), { class: "danger" }),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
