/** A bar of progress with its figure in words. */

import { el } from "./elements.js";

/**
 * Return a bar, and a function that sets its share and its words.
 * @param {string} label
 */
export function progressBar(label) {
  const bar = el("progress", { max: "1", value: "0", "aria-label": label });
  const words = el("p", { class: "quiet small-text figures" });
  return {
    root: el("div", { class: "begin-progress" }, bar, words),
    /** @param {number} share @param {string} [text] */
    set(share, text = "") {
      bar.value = Math.min(Math.max(share, 0), 1);
      words.textContent = text;
    },
  };
}

/** Format a number of bytes. */
export function bytes(size) {
  const [unit, name] = size >= 1e9 ? [1e9, "GB"] : size >= 1e6 ? [1e6, "MB"] : [1e3, "kB"];
  return `${(size / unit).toFixed(size / unit < 10 ? 1 : 0)} ${name}`;
}
