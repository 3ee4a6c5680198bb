/** Tables of a namespace to take away: every vector with its cluster, and every cluster. */

import { button, el } from "./elements.js";
import { card } from "./parts.js";

const TABLES = [
  ["vectors", "Vectors", "One row for each vector: its cluster, name, key, time and payload."],
  ["clusters", "Clusters", "One row for each cluster: name, size, first and last vector."],
];
const FORMATS = [["csv", "CSV"], ["parquet", "Parquet"], ["jsonl", "JSON lines"]];

/** Return the card with a button for each table and format. */
export function exportCard(context) {
  const rows = TABLES.map(([table, title, words]) =>
    el(
      "div",
      { class: "export-row" },
      el("div", {}, el("h3", {}, title), el("p", { class: "quiet small-text" }, words)),
      el(
        "div",
        { class: "buttons", role: "group", "aria-label": `Save the table of ${table}` },
        ...FORMATS.map(([format, name]) => saveButton(context, table, format, name)),
      ),
    )
  );
  return card("Take the result away", { class: "begin-export" }, ...rows);
}

function saveButton(context, table, format, name) {
  const save = async () => {
    it.disabled = true;
    it.setAttribute("aria-busy", "true");
    try {
      await download(context, table, format);
    } catch (error) {
      context.report(error);
    } finally {
      it.disabled = false;
      it.removeAttribute("aria-busy");
    }
  };
  const it = button(name, save, { class: "small", "aria-label": `Save ${table} as ${name}` });
  return it;
}

async function download(context, table, format) {
  const base = `/v1/namespaces/${encodeURIComponent(context.namespace)}`;
  const path = `${base}/tables/${table}?format=${format}`;
  const answer = await context.api.send(path, { signal: context.signal });
  const url = URL.createObjectURL(await answer.blob());
  const link = el("a", { href: url, download: `${context.namespace}-${table}.${format}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
