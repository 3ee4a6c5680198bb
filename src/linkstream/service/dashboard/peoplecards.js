/** A cluster in the list: a card with vectors to look at, or a row of the table. */

import { button, called, counted, el, figure, foreign, number, slot } from "./elements.js";
import { chip, percent, thumbs, whenSeen } from "./parts.js";
import { timeOf } from "./times.js";
import { offerUndo } from "./corrections.js";
import { giveName, nameField } from "./naming.js";
import { onPick } from "./selection.js";

const AT_ONCE = 2; // questions about similar clusters at a time
const SIMILAR = -0.3; // the least margin of a cluster that is called similar

/** Return the card of a cluster. */
export function personCard(context, cluster, list) {
  const { id, name } = cluster;
  const who = called(id, name);
  const similar = el("p", { class: "similar small-text quiet" });
  const node = el(
    "li",
    { class: `person ${slot(id)}`, data: { cluster: id } },
    el(
      "a",
      { class: "person-look", href: context.link("cluster", id), tabindex: "-1" },
      el("span", { class: "unseen" }, `Open ${who}`),
    ),
    el("div", { class: "person-shown" }, ...shown(context, cluster)),
    el("div", { class: "person-head" }, pick(list, id, who), title(context, cluster, list)),
    el(
      "p",
      { class: "quiet small-text figures" },
      `${counted(cluster.size, "vector")} · last seen `,
      lastSeen(cluster),
      ...tags(cluster),
    ),
    similar,
  );
  whenSeen(context, node, () => alike(context, id, similar));
  return node;
}

function shown(context, { exemplars, size }) {
  if (!exemplars?.length) {
    return [el("p", { class: "quiet small-text" }, `${counted(size, "vector")} without payloads`)];
  }
  return [thumbs(context, exemplars)];
}

function pick(list, id, who) {
  const box = el("input", { type: "checkbox", class: "pick", "aria-label": `Select ${who}` });
  onPick(box, (on, range) => list.selection.set(id, on, range));
  return box;
}

const lastSeen = ({ last_seen: vector, time }) =>
  timeOf({ vector, time }, `at vector ${number(vector)}`);

const tags = ({ pending, ignored }) => [
  pending && el("span", { class: "tag warn" }, "pending"),
  ignored && el("span", { class: "tag" }, "ignored"),
];

/** Return the name as a link with a button that changes it; a field if there is none. */
function title(context, cluster, list) {
  const { id, name } = cluster;
  const place = el("div", { class: "person-name" });
  const still = () => {
    const link = el(
      "a",
      { href: context.link("cluster", id), class: "person-link" },
      el("span", { class: "dot", "aria-hidden": "true" }),
      name === null ? `ID ${id}` : foreign(name, 60),
    );
    const edit = button("Rename", change, {
      class: "small plain",
      "aria-label": `Rename ${called(id, name)}`,
    });
    place.replaceChildren(link, ...(context.may("write") ? [edit] : []));
  };
  const change = () => {
    place.replaceChildren(...field(context, cluster, list, still));
    place.querySelector("input").select();
  };
  if (name === null && context.may("write")) {
    const link = el(
      "a",
      { href: context.link("cluster", id), class: "person-link quiet small-text" },
      el("span", { class: "dot", "aria-hidden": "true" }),
      `ID ${id}`,
    );
    place.append(...field(context, cluster, list, null), link);
  } else still();
  return place;
}

function field(context, cluster, list, cancel) {
  const who = called(cluster.id, cluster.name);
  const { input, list: names } = nameField(context, {
    value: cluster.name ?? "",
    label: `Name of ${who}`,
  });
  const save = async () => {
    input.disabled = true;
    try {
      const done = await giveName(context, cluster, input.value);
      if (!done) {
        input.disabled = false;
        return cancel?.();
      }
      offerUndo(context, done, () => list.load());
      const after = follower(input);
      await list.load();
      list.focusName(after);
    } catch (error) {
      input.disabled = false;
      context.report(error);
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") save();
    else if (event.key === "Escape") cancel ? cancel() : (input.value = cluster.name ?? "");
  });
  if (cancel) input.addEventListener("blur", () => input.disabled || cancel());
  return [input, names];
}

/** Return the cluster of the next field for a name, where a person goes on naming. */
function follower(input) {
  const fields = [...document.querySelectorAll(".person .name-field")];
  const next = fields[fields.indexOf(input) + 1]?.closest("[data-cluster]");
  return next ? Number(/** @type {HTMLElement} */ (next).dataset.cluster) : null;
}

// What is asked about similar clusters, so that a long list does not ask all at once.
const waiting = [];
let running = 0;

async function alike(context, id, place) {
  if (running >= AT_ONCE) await new Promise((go) => waiting.push(go));
  running += 1;
  try {
    if (context.signal.aborted || !place.isConnected) return;
    const { clusters: [near] } = await context.get("nearest", { cluster: id, limit: 1 });
    if (!near || near.margin < SIMILAR) return;
    const told = Number.isFinite(near.probability)
      ? percent(near.probability)
      : figure(near.similarity, 2);
    place.append("similar: ", chip(context, near.id, near.name), ` ${told}`);
  } catch {
    // The list is useful without it; a cluster may be gone meanwhile.
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}

/** Return the row of a cluster in the table. */
export function tableRow(context, cluster, list) {
  const link = chip(context, cluster.id, cluster.name);
  const share = `${Math.max(1, 100 * cluster.size / list.most).toFixed(1)}%`;
  return el(
    "li",
    { class: `cluster-row ${link.classList[1]}`, data: { cluster: cluster.id } },
    el(
      "span",
      { class: "who" },
      pick(list, cluster.id, called(cluster.id, cluster.name)),
      link,
      cluster.name !== null && el("span", { class: "quiet small-text" }, `ID ${cluster.id}`),
      ...tags(cluster),
    ),
    el("span", { class: "size-bar", "aria-hidden": "true", vars: { "--share": share } }),
    el("span", { class: "figures" }, counted(cluster.size, "vector")),
    el("span", { class: "quiet figures" }, counted(cluster.subclusters, "subcluster")),
    el("span", { class: "quiet figures" }, "last seen ", lastSeen(cluster)),
  );
}
