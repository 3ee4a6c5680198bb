/**
 * User corrections of clusters, and undo.
 *
 * Undo reverts the last event. That may be a vector that arrived after the correction, so the page
 * sends the number of the event to undo, and the service refuses if newer events exist. The page
 * then says how many events would be lost and asks.
 */

import { button, called, counted, el } from "./elements.js";
import { confirmed } from "./parts.js";
import { joinPanel } from "./targets.js";

/**
 * @typedef {import("./app.js").Context} Context
 * @typedef {{event: number, before: number, words: string}} Done  the event of a correction, the
 *   event before it, and its description
 */

/**
 * Post a correction and return what is needed to undo it.
 * @param {Context} context
 * @param {string} route
 * @param {object} body
 * @param {string} words describes the correction to the user
 * @returns {Promise<Done>}
 */
export async function correct(context, route, body, words) {
  const done = await context.post(route, body);
  return { ...done, words };
}

/**
 * Post several corrections, one after the other; return what is needed to undo all at once.
 *
 * If one is refused, those before it stay, and the error has them as `done`.
 * @param {Context} context
 * @param {[string, object][]} corrections routes and bodies
 * @param {string} words
 * @returns {Promise<Done>}
 */
export async function correctAll(context, corrections, words) {
  const all = { before: -1, event: -1, words };
  for (const [route, body] of corrections) {
    try {
      const done = await context.post(route, body);
      if (all.before < 0) all.before = done.before;
      all.event = done.event;
    } catch (error) {
      if (all.before >= 0) error.done = { ...all };
      throw error;
    }
  }
  return all;
}

/**
 * Undo a correction; return null if the user decides to keep it.
 * @param {Context} context
 * @param {Done} done
 * @returns {Promise<{event: number}|null>}
 */
export async function takeBack(context, done) {
  try {
    return await context.post("undo", { to: done.before, after: done.event });
  } catch (error) {
    if (error.kind !== "undo") throw error;
    return takeBackMore(context, done);
  }
}

async function takeBackMore(context, done) {
  const { events } = await context.api.get(
    `/v1/namespaces/${encodeURIComponent(context.namespace)}/stats`,
  );
  const more = events - done.event;
  const goes = await confirmed(
    "Newer events exist",
    `${counted(more, "event")} followed this correction: vectors, or corrections by others. Undo ` +
      "reverts them too, and the vectors must be sent again. Or leave it, and correct the " +
      "clusters by hand.",
    "Undo all",
    "Leave it",
  );
  return goes ? context.post("undo", { to: done.before }) : null;
}

/** Show a note with an Undo button; run `after` after an undo. */
export function offerUndo(context, done, after) {
  if (done.before === done.event) {
    context.say(`${done.words} (nothing had to change)`);
    return;
  }
  context.say(done.words, {
    action: {
      label: "Undo",
      run: async () => {
        try {
          if (!(await takeBack(context, done))) return;
          context.say(`Taken back: ${done.words}`);
          after();
        } catch (error) {
          context.report(error);
        }
      },
    },
  });
}

/** Return the buttons of a cluster (name, join, ignore, forget) and the form they open. */
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
    place.replaceChildren(make(() => {
      place.hidden = true;
    }));
    place.hidden = false;
    place.querySelector("input")?.focus();
  };
  const who = called(id, cluster.name);
  const forget = async () => {
    const goes = await confirmed(
      `Forget ${who}?`,
      `${counted(cluster.size, "vector")} and everything learnt from them will be removed. ` +
        "Undo brings them back until the store is compacted.",
      "Forget it",
    );
    if (goes) run("forget", { cluster: id }, `Forgot ${who}`, () => context.navigate("cluster"));
  };
  const action = (title, click, kind = "") => button(title, click, { class: kind, disabled: !may });
  return el(
    "div",
    { class: "actions" },
    el(
      "div",
      { class: "buttons" },
      action(
        cluster.name === null ? "Name" : "Rename",
        () => open((close) => nameForm(id, cluster, run, close)),
        "main",
      ),
      action("Join with…", () => open((close) => joinPanel(context, id, cluster, run, close))),
      action(cluster.ignored ? "Stop ignoring" : "Ignore", () =>
        run(
          "ignore",
          { cluster: id, on: !cluster.ignored },
          cluster.ignored ? `${who} is no longer ignored` : `${who} is ignored: review skips it`,
        )),
      action("Forget", forget, "danger"),
    ),
    !may && el("p", { class: "quiet" }, "Your token allows reading only."),
    place,
  );
}

/** Return the form for the name of a cluster; it calls `run` with the correction. */
export function nameForm(id, cluster, run, close) {
  const input = el("input", {
    id: "new-name",
    maxlength: 200,
    autocomplete: "off",
    value: cluster.name ?? "",
  });
  const form = el(
    "form",
    { class: "line-form" },
    el("label", { for: "new-name" }, "Name"),
    input,
    el("button", { class: "main", type: "submit" }, "Save"),
    button("Cancel", close),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = input.value.trim() || null;
    const words = name === null ? "has no name now" : `is called ${called(id, name)}`;
    if (name === cluster.name) close();
    else run("rename", { cluster: id, name }, `ID ${id} ${words}`);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  return form;
}
