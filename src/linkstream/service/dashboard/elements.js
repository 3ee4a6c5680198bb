/**
 * DOM without markup: every text goes in as a text node, so nothing that a caller of the service
 * wrote (names, payloads, errors) can become an element, a script or a style.
 */

const SVG = "http://www.w3.org/2000/svg";
// Controls, marks of format, lone surrogates, separators of lines: all that moves or hides text.
const HARMFUL = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const JOINERS = "\u200c\u200d"; // parts of words in some scripts, and of pictures
const GROUPED = new Intl.NumberFormat("en-GB");
const SLOTS = 12; // colours of clusters in styles.css

/**
 * @typedef {Node|string|number|null|undefined|false} Child
 * @typedef {Object<string, any>} Props  class, on: {event: handler}, data: {name: value},
 *   vars: {"--name": value} (custom properties), any property that is a boolean, and attributes.
 */

/**
 * An HTML element. `el("p", {class: "quiet"}, "some ", strong)`.
 * @param {string} tag @param {Props} [props] @param {...(Child|Child[])} children
 * @returns {HTMLElement}
 */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * An SVG element, built as `el` builds HTML.
 * @param {string} tag @param {Props} [props] @param {...(Child|Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** A button with words on it; `props` may give it a class, or disable it. */
export function button(title, click, props = {}) {
  return el("button", { type: "button", ...props, on: { click } }, title);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    const each = (run) => Object.entries(value).forEach(([key, to]) => run(key, to));
    if (name === "on") each((kind, run) => node.addEventListener(kind, run));
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "vars") each((key, to) => node.style.setProperty(key, to));
    else if (name === "style" || name === "innerHTML" || name.startsWith("on")) {
      throw new TypeError(`${name}: neither markup nor inline style or script`);
    } else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(
    ...children.flat().filter((child) => child || child === 0 || child === "").map(asNode),
  );
  return node;
}

const asNode = (child) => (child instanceof Node ? child : document.createTextNode(String(child)));

/**
 * A text in which everything shows: what moves the cursor or turns a line round is spelt out.
 * @param {unknown} words
 */
export function harmless(words) {
  return Array.from(String(words), shown).join("");
}

function shown(letter) {
  if (!isHarmful(letter)) return letter;
  const code = letter.codePointAt(0);
  const named = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  if (named) return named;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

const isHarmful = (letter) => HARMFUL.test(letter) && !JOINERS.includes(letter);

/**
 * Anybody's text as an element of its own direction; what was spelt out is set apart.
 * @param {unknown} words @param {number} [width] letters to show at most
 */
export function foreign(words, width = 400) {
  const letters = Array.from(String(words));
  const node = el("bdi", { class: "foreign" });
  let plain = "";
  const flush = () => { if (plain) node.append(plain); plain = ""; };
  for (const letter of letters.slice(0, width)) {
    if (!isHarmful(letter)) { plain += letter; continue; }
    flush();
    node.append(el("span", { class: "escape" }, shown(letter)));
  }
  if (letters.length > width) plain += "…";
  flush();
  return node;
}

/** The beginning of a harmless text, for titles and labels of pictures. */
export function short(words, width = 40) {
  const letters = Array.from(harmless(words));
  return letters.length <= width ? letters.join("") : letters.slice(0, width - 1).join("") + "…";
}

/** What to call a cluster in plain text: its name, or its ID. */
export function called(id, name) {
  return name === null || name === undefined ? `ID ${id}` : short(name, 32);
}

/** A whole number with its thousands apart. */
export const number = (value) => GROUPED.format(value ?? 0);

/** A figure with a fixed number of places; a dash where there is none. */
export const figure = (value, places = 3) =>
  (Number.isFinite(value) ? value.toFixed(places) : "–");

/** A figure with its sign. */
export const signed = (value, places = 3) =>
  Number.isFinite(value) ? (value < 0 ? "−" : "+") + Math.abs(value).toFixed(places) : "–";

/** "1 vector", "2 vectors". */
export const counted = (count, one, many = `${one}s`) =>
  `${number(count)} ${count === 1 ? one : many}`;

/** The class that gives a cluster its colour (`--colour`), the same in every view. */
export const slot = (id) => `c${((Number(id) % SLOTS) + SLOTS) % SLOTS}`;

/** A cluster's colour as it is now (light or dark), for canvases that take no class. */
export function colourOf(id) {
  return styleOf(`--cluster-${slot(id).slice(1)}`);
}

/** The value of a design token of styles.css, for canvases: `styleOf("--ink")`. */
export function styleOf(token) {
  return getComputedStyle(document.documentElement).getPropertyValue(token).trim();
}
