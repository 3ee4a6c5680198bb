/** What can be done with a cluster: name it, join it with another, set it aside, forget it. */

import { button, called, counted, el, foreign, slot } from "/page/elements.js";
import { confirmed } from "/page/parts.js";
import { correct, offerUndo } from "/page/undoing.js";

/** The row of buttons, and the form that one of them opens. */
export function actions(context, id, cluster) {
  const place = el("div", { class: "action-form", hidden: true });
  const may = context.may("write");
  const run = async (route, body, words, then = () => context.refresh()) => {
    try {
      const done = await correct(context, route, body, words);
      offerUndo(context, done, () => context.navigate("cluster", id));
      then();
    } catch (error) {
      context.report(error);
    }
  };
  const open = (make) => {
    place.replaceChildren(make(() => { place.hidden = true; }));
    place.hidden = false;
    place.querySelector("input")?.focus();
  };
  const who = called(id, cluster.name);
  const forget = async () => {
    const goes = await confirmed(`Forget ${who}?`,
      `${counted(cluster.size, "vector")} and all that was learnt from them will be dropped. ` +
      "Undo brings them back until the store is compacted.", "Forget it");
    if (goes) run("forget", { cluster: id }, `Forgot ${who}`, () => context.navigate("cluster"));
  };
  const deed = (title, click, kind = "") => button(title, click, { class: kind, disabled: !may });
  return el("div", { class: "actions" },
    el("div", { class: "buttons" },
      deed(
        cluster.name === null ? "Name" : "Rename",
        () => open((close) => nameForm(id, cluster, run, close)),
        "main",
      ),
      deed("Join with…", () => open((close) => joinForm(context, id, who, run, close))),
      deed(cluster.ignored ? "Take notice again" : "Ignore", () =>
        run(
          "ignore",
          { cluster: id, on: !cluster.ignored },
          cluster.ignored ? `${who} counts again` : `${who} is set aside: no questions about it`,
        )),
      deed("Forget", forget, "danger")),
    !may && el("p", { class: "quiet" }, "Your token may read here, not change anything."),
    place);
}

function nameForm(id, cluster, run, close) {
  const input = el("input", {
    id: "new-name", maxlength: 200, autocomplete: "off", value: cluster.name ?? "",
  });
  const form = el("form", { class: "line-form" },
    el("label", { for: "new-name" }, "Name"), input,
    el("button", { class: "main", type: "submit" }, "Save"),
    button("Cancel", close));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = input.value.trim() || null;
    const words = name === null ? "has no name now" : `is called ${called(id, name)}`;
    if (name === cluster.name) close();
    else run("rename", { cluster: id, name }, `ID ${id} ${words}`);
  });
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  return form;
}

const CHOICES = 8;

function joinForm(context, id, who, run, close) {
  const input = el("input", {
    id: "other", type: "search", autocomplete: "off", maxlength: 200, placeholder: "Name or ID",
  });
  const found = el("ul", { class: "choices", "aria-label": "Clusters found" });
  let asked = 0;
  const look = async () => {
    const mine = ++asked;
    try {
      const wanted = { q: input.value.trim(), order: "size", limit: CHOICES + 1 };
      const { clusters } = await context.get("clusters", wanted);
      if (mine !== asked) return;
      const others = clusters.filter((other) => other.id !== id).slice(0, CHOICES);
      found.replaceChildren(...others.map((other) => el("li", {}, choice(other))));
      if (!others.length) found.append(el("li", {}, "No other cluster is called so."));
    } catch (error) {
      context.report(error);
    }
  };
  const choice = (other) => {
    const words = `${who} and ${called(other.id, other.name)} are one now`;
    const join = () => run("same", { a: id, b: other.id, of: "clusters" }, words);
    return el("button", { type: "button", class: `choice ${slot(other.id)}`, on: { click: join } },
      el("span", { class: "dot", "aria-hidden": "true" }),
      other.name === null ? `ID ${other.id}` : foreign(other.name, 40),
      el("span", { class: "quiet figures" }, counted(other.size, "vector")));
  };
  input.addEventListener("input", look);
  look();
  const form = el("form", { class: "stack", on: { submit: (event) => event.preventDefault() } },
    el("div", { class: "line-form" },
      el("label", { for: "other" }, "The same as"), input, button("Cancel", close)),
    found);
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  return form;
}
