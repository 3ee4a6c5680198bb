/** Names typed in place, with the names that exist; the name of another cluster joins both. */

import { called, counted, el } from "./elements.js";
import { confirmed } from "./parts.js";
import { correct } from "./corrections.js";

const NAMES = 8; // completed names shown
const TYPING = 150; // milliseconds from the last keystroke to the search
let inputs = 0;

/**
 * Return a field for a name, completed by the names that exist.
 * @param {import("./app.js").Context} context
 * @param {{value?: string, label: string, placeholder?: string}} props
 */
export function nameField(context, { value = "", label, placeholder = "Add a name" }) {
  const id = `names-${++inputs}`;
  const list = el("datalist", { id });
  const input = el("input", {
    class: "name-field",
    "aria-label": label,
    placeholder,
    value,
    maxlength: 200,
    autocomplete: "off",
    spellcheck: "false",
    list: id,
  });
  let timer = 0;
  const complete = async () => {
    const q = input.value.trim();
    if (!q) return list.replaceChildren();
    const wanted = { q, filter: "named", order: "name", limit: NAMES };
    const { clusters } = await context.get("clusters", wanted).catch(() => ({ clusters: [] }));
    list.replaceChildren(...clusters.map(({ name }) => el("option", { value: name })));
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(complete, TYPING);
  });
  return { input, list };
}

/**
 * Name a cluster. If another one has the name, ask whether both are one, and join them.
 * @param {import("./app.js").Context} context
 * @param {{id: number, name: string|null, size: number}} cluster
 * @param {string} typed
 * @returns {Promise<import("./corrections.js").Done|null>} null if nothing was done
 */
export async function giveName(context, { id, name: old, size }, typed) {
  const name = typed.trim() || null;
  if (name === old) return null;
  const other = name === null ? null : await bearer(context, name);
  if (!other || other.id === id) {
    const words = name === null ? "has no name now" : `is called ${called(id, name)}`;
    return correct(context, "rename", { cluster: id, name }, `${called(id, old)} ${words}`);
  }
  const goes = await confirmed(
    `Join with ${called(other.id, other.name)}?`,
    `${called(other.id, other.name)} exists already, with ${counted(other.size, "vector")}. ` +
      `Both clusters become one, with ${counted(other.size + size, "vector")}.`,
    "Join both",
    "Cancel",
  );
  if (!goes) return null;
  const words = `${called(id, old)} and ${called(other.id, other.name)} are one cluster now`;
  return correct(context, "same", { a: other.id, b: id, of: "clusters" }, words);
}

/** Return the cluster that has a name; undefined if none has. */
async function bearer(context, name) {
  const { clusters } = await context.get("clusters", { q: name, filter: "named", limit: 100 });
  return clusters.find((cluster) => cluster.name === name);
}
