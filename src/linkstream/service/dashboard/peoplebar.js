/** The bar for several selected clusters: join, name, ignore, forget; each one undoable step. */

import { button, called, counted, el } from "./elements.js";
import { confirmed } from "./parts.js";
import { correctAll, offerUndo } from "./corrections.js";
import { nameField } from "./naming.js";

/**
 * @param {import("./app.js").Context} context
 * @param {import("./selection.js").Selection} selection
 * @param {Map<number, {id: number, name: string|null, size: number, ignored: boolean}>} clusters
 * @param {() => Promise<void>} again shows the list again
 */
export function selectionBar(context, selection, clusters, again) {
  const told = el("strong", { role: "status" });
  const form = el("form", { class: "bar-form", hidden: true });
  const chosen = () => selection.items.map((id) => clusters.get(id)).filter(Boolean);
  const run = async (corrections, words) => {
    form.hidden = true;
    try {
      const done = await correctAll(context, corrections, words);
      selection.clear();
      offerUndo(context, done, again);
    } catch (error) {
      context.report(error);
      if (error.done) offerUndo(context, { ...error.done, words: "A part was done" }, again);
    }
    await again().catch(context.report);
  };
  const act = actions(context, chosen, run, form);
  const clear = button("Clear", () => selection.clear(), { class: "small plain" });
  const node = el(
    "section",
    { class: "selection-bar", "aria-label": "Selected clusters", hidden: true },
    el("div", { class: "bar-row" }, told, el("div", { class: "buttons" }, ...act.buttons, clear)),
    form,
  );
  const draw = () => {
    node.hidden = !selection.size;
    if (node.hidden) form.hidden = true;
    told.textContent = `${counted(selection.size, "cluster")} selected`;
    act.draw(chosen());
  };
  const escape = (event) => {
    if (event.key === "Escape" && selection.size && !event.target.closest("input, dialog")) {
      selection.clear();
    }
  };
  document.addEventListener("keydown", escape);
  return { node, draw, end: () => document.removeEventListener("keydown", escape) };
}

function actions(context, chosen, run, form) {
  const may = context.may("write");
  const make = (title, click, kind = "") =>
    button(title, click, { class: `small ${kind}`, disabled: !may });
  const join = make("Join", () => {
    const [first, ...others] = largestFirst(chosen());
    const words = `${counted(others.length + 1, "cluster")} are one now`;
    run(others.map(({ id }) => ["same", { a: first.id, b: id, of: "clusters" }]), words);
  }, "main");
  const name = make("Name…", () => openName(context, chosen(), run, form));
  const ignore = make("Ignore", () => {
    const some = chosen();
    const on = !some.every(({ ignored }) => ignored);
    const words = on ? "are ignored: review skips them" : "are no longer ignored";
    run(
      some.map(({ id }) => ["ignore", { cluster: id, on }]),
      `${counted(some.length, "cluster")} ${words}`,
    );
  });
  const forget = make("Forget…", async () => {
    const some = chosen();
    const vectors = some.reduce((sum, { size }) => sum + size, 0);
    const goes = await confirmed(
      `Forget ${counted(some.length, "cluster")}?`,
      `${counted(vectors, "vector")} and everything learnt from them will be removed. ` +
        "Undo brings them back until the store is compacted.",
      "Forget them",
      "Keep them",
    );
    if (!goes) return;
    const all = some.map(({ id }) => ["forget", { cluster: id }]);
    run(all, `Forgot ${counted(some.length, "cluster")}`);
  }, "danger");
  const draw = (some) => {
    join.disabled = !may || some.length < 2;
    ignore.textContent = some.length && some.every(({ ignored }) => ignored)
      ? "Stop ignoring"
      : "Ignore";
  };
  return { buttons: [join, name, ignore, forget], draw };
}

/** Return clusters with those that have a name first, then the largest. */
const largestFirst = (some) =>
  [...some].sort((a, b) => Number(a.name === null) - Number(b.name === null) || b.size - a.size);

/** Show the form that joins the selected clusters under one name. */
function openName(context, some, run, form) {
  const [first, ...others] = largestFirst(some);
  const label = others.length ? "Name for all, which joins them" : `Name of ${called(first.id)}`;
  const { input, list } = nameField(context, { value: first.name ?? "", label });
  form.replaceChildren(
    input,
    list,
    el("button", { type: "submit", class: "small main" }, others.length ? "Join and name" : "Save"),
    button("Cancel", () => (form.hidden = true), { class: "small" }),
  );
  form.onsubmit = (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    const joined = others.map(({ id }) => ["same", { a: first.id, b: id, of: "clusters" }]);
    const words = others.length
      ? `${counted(some.length, "cluster")} are called ${called(first.id, name)}`
      : `${called(first.id, first.name)} is called ${called(first.id, name)}`;
    run([...joined, ["rename", { cluster: first.id, name }]], words);
  };
  form.hidden = false;
  input.focus();
}
