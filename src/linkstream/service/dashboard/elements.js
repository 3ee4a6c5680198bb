/**
 * Elements without markup: every text becomes a text node, so text from users of the service
 * (names, payloads, errors) cannot become an element, a script or a style.
 */

const SVG = "http://www.w3.org/2000/svg";
// Control and format characters, lone surrogates, line separators: they move or hide text.
const HARMFUL = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const JOINERS = "\u200c\u200d"; // needed by some scripts and by emoji
const GROUPED = new Intl.NumberFormat("en-GB");
const SLOTS = 12; // colours of clusters in styles.css

/**
 * @typedef {Node|string|number|null|undefined|false} Child
 * @typedef {Object<string, any>} Props  class, on: {event: handler}, data: {name: value},
 *   vars: {"--name": value} (custom properties), any property that is a boolean, and attributes.
 */

/**
 * Return a new HTML element: `el("p", {class: "quiet"}, "some ", strong)`.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props} [props]
 * @param {...(Child|Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, props, children);
  return node;
}

/**
 * Return a new SVG element; see `el`.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Props} [props]
 * @param {...(Child|Child[])} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  fill(node, props, children);
  return node;
}

/** Return a button with a text; `props` may set its class or disable it. */
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
 * Return a text with harmful characters escaped, so that every character is visible.
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
 * Return an element with a user's text, in its own direction, with harmful characters escaped.
 * @param {unknown} words
 * @param {number} [width] longest text shown, in characters
 */
export function foreign(words, width = 400) {
  const letters = Array.from(String(words));
  const node = el("bdi", { class: "foreign" });
  let plain = "";
  const flush = () => {
    if (plain) node.append(plain);
    plain = "";
  };
  for (const letter of letters.slice(0, width)) {
    if (!isHarmful(letter)) {
      plain += letter;
      continue;
    }
    flush();
    node.append(el("span", { class: "escape" }, shown(letter)));
  }
  if (letters.length > width) plain += "…";
  flush();
  return node;
}

/** Return the start of an escaped text, for titles and labels. */
export function short(words, width = 40) {
  const letters = Array.from(harmless(words));
  return letters.length <= width ? letters.join("") : letters.slice(0, width - 1).join("") + "…";
}

/** Return the name of a cluster, or its ID if it has no name, as plain text. */
export function called(id, name) {
  return name === null || name === undefined ? `ID ${id}` : short(name, 32);
}

/** Format an integer with separators of thousands. */
export const number = (value) => GROUPED.format(value ?? 0);

/** Format a number with fixed decimals; a dash if it is not finite. */
export const figure = (value, places = 3) => (Number.isFinite(value) ? value.toFixed(places) : "–");

/** Format a number with its sign. */
export const signed = (value, places = 3) =>
  Number.isFinite(value) ? (value < 0 ? "−" : "+") + Math.abs(value).toFixed(places) : "–";

/** Format a count with its noun: "1 vector", "2 vectors". */
export const counted = (count, one, many = `${one}s`) =>
  `${number(count)} ${count === 1 ? one : many}`;

/** Return the class that sets the colour of a cluster (`--colour`), the same in every view. */
export const slot = (id) => `c${((Number(id) % SLOTS) + SLOTS) % SLOTS}`;

/** Return the current colour of a cluster (light or dark), for canvases. */
export function colourOf(id) {
  return styleOf(`--cluster-${slot(id).slice(1)}`);
}

/** Return the value of a design token of styles.css, for canvases: `styleOf("--ink")`. */
export function styleOf(token) {
  return getComputedStyle(document.documentElement).getPropertyValue(token).trim();
}
