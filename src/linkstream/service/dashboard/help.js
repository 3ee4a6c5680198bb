/**
 * The keys of a view in a dialog. `?` opens it in any view that offers keys; Esc closes it.
 *
 * A view calls `offerKeys` once and puts the button that it returns where its tools are.
 */

import { button, el } from "./elements.js";

/** @typedef {[string[], string][]} KeyRows  keys, and what they do */

/**
 * Offer the help on keys until the view is left; return the button that opens it.
 * @param {import("./app.js").Context} context
 * @param {string} title  of the view
 * @param {KeyRows} rows
 */
export function offerKeys(context, title, rows) {
  const open = () => keysDialog(title, rows);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || isTyping(event) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    open();
  }, { signal: context.signal });
  const shown = button("Keys", open, { class: "small keys-button", "aria-haspopup": "dialog" });
  shown.append(el("kbd", { "aria-hidden": "true" }, "?"));
  return shown;
}

/** Return whether a key belongs to a field, or to the browser. */
export function isTyping(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  return Boolean(event.target.closest?.("input, select, textarea, [contenteditable]"));
}

/**
 * Show the keys of a view in a dialog.
 * @param {string} title
 * @param {KeyRows} rows
 */
export function keysDialog(title, rows) {
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  /** @type {KeyRows} */
  const all = [...rows, [["?"], "Show these keys"], [["Esc"], "Close a dialog"]];
  const dialog = el(
    "dialog",
    { class: "card keys-dialog", "aria-labelledby": "keys-title", on: { cancel: close } },
    el("h2", { id: "keys-title" }, `Keys: ${title}`),
    el(
      "dl",
      { class: "keys-list" },
      ...all.flatMap(([keys, words]) => [
        el("dt", {}, ...keys.map((key) => el("kbd", {}, key))),
        el("dd", {}, words),
      ]),
    ),
    el("div", { class: "buttons" }, button("Close", close, { class: "main" })),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close(); // beside the dialog
  });
  document.body.append(dialog);
  dialog.showModal();
}
