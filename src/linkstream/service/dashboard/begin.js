/**
 * Begin here: from a file to clusters, without a terminal. Also what the page shows while there is
 * no namespace.
 *
 * The steps of an upload are in upload.js; the address keeps the upload (`upload`, `to`), so that a
 * reload goes on with it. Below it: ask about a vector (trying.js), and take tables away (exporting.js).
 */

import { button, el } from "./elements.js";
import { card } from "./parts.js";
import { UploadFlow } from "./upload.js";
import { tryCard } from "./trying.js";
import { exportCard } from "./exporting.js";

const DEMO = "voices"; // the namespace of the demo
const AGAIN = 2_000; // milliseconds between two looks for a first namespace

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const flow = new UploadFlow(context);
  const inside = context.namespace !== "";
  root.append(
    el(
      "div",
      { class: "map-head" },
      el("h1", {}, "Begin here"),
      el(
        "p",
        { class: "quiet" },
        "Send a file of vectors: photos, voices, texts. linkstream sorts them into clusters that you can name.",
      ),
    ),
    el(
      "div",
      { class: "begin-body" },
      flow.root,
      el(
        "div",
        { class: "begin-side" },
        demoCard(context),
        inside && tryCard(context),
        inside && exportCard(context),
      ),
    ),
  );
  await flow.resume();
  const timer = inside ? null : setInterval(() => waitForOne(context, flow), AGAIN);
  return () => {
    clearInterval(timer);
    flow.leave();
  };
}

/** Show the first namespace once a program has made one, unless somebody is at work here. */
async function waitForOne(context, flow) {
  const name = /** @type {HTMLInputElement} */ (document.getElementById("begin-name"));
  if (!flow.idle || name?.value) return;
  const { namespaces } = await context.api.get("/v1/namespaces", {}, context.signal)
    .catch(() => ({ namespaces: [] }));
  if (namespaces.length && flow.idle) context.navigate("live");
}

/** Return the card that starts the demo with voices; nothing without the scope for it. */
function demoCard(context) {
  const start = async () => {
    run.disabled = true;
    run.textContent = "Starting…";
    try {
      const path = `/v1/namespaces/${DEMO}/demo`;
      const { namespace } = await context.api.post(path, {}, context.signal);
      location.hash = `#/live?${new URLSearchParams({ in: namespace })}`;
    } catch (error) {
      context.report(error);
      run.textContent = "Play the voices";
      run.disabled = false;
    }
  };
  const may = context.may("admin");
  const run = button("Play the voices", start, { disabled: !may });
  return card(
    "No file at hand?",
    { class: "begin-demo" },
    el(
      "p",
      {},
      "Five people read aloud, window by window. Watch how their voices become five clusters.",
    ),
    !may && el("p", { class: "quiet small-text" }, "This needs a token with the scope admin."),
    el("div", { class: "buttons" }, run),
  );
}
