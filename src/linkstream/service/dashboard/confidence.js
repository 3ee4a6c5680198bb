/**
 * How sure: whether decisions have a probability, why not, and whether it holds.
 *
 * All figures come from the service (GET …/confidence): what the model rests on, and of the answers
 * of people how often decisions were right that were told a probability.
 */

import { counted, el, figure, foreign, number, signed, svg } from "./elements.js";
import { card, empty, percent, postLine } from "./parts.js";

const SIZE = 320; // of the diagram, with its margins
const [LEFT, TOP, RIGHT, BOTTOM] = [44, 12, 308, 276]; // of the square from 0 to 1
const LEAST = 20; // answers from which a tuning is checked

/**
 * @typedef {{told: number, right: number, error: number, answers: number}} Bin
 */

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const found = await context.get("confidence", { brief: true });
  root.append(
    el(
      "div",
      { class: "map-head" },
      el("h1", {}, "How sure"),
      el("p", { class: "quiet" }, "Can the probabilities of decisions be relied on?"),
    ),
    el("div", { class: "sure-body" }, status(found), reliability(context, found)),
  );
}

function status(found) {
  const { why, identities, answers, check } = found;
  const facts = [
    ["Tuned on", identities === null ? "–" : counted(identities, "identity", "identities")],
    ["Answers", answers === null ? "–" : number(answers)],
  ];
  const drifted = found.drifted || Boolean(check?.has_drifted);
  return card(
    "Probabilities",
    {},
    el("p", {}, ...said(why)),
    drifted &&
      el(
        "p",
        { class: "note warn", role: "status" },
        "The answers contradict the probabilities: more than chance explains. Tune again on vectors of this stream.",
      ),
    el(
      "dl",
      { class: "rebuild-counts" },
      ...facts.map(([name, value]) =>
        el("div", {}, el("dt", { class: "quiet" }, name), el("dd", { class: "figures" }, value))
      ),
    ),
    identities !== null && el("p", { class: "quiet" }, checked(check)),
    el(
      "p",
      { class: "quiet small-text" },
      "A probability says how likely the decision on a vector was right: for a vector that was given a cluster, that most of the cluster is its identity; for a new cluster, that the identity was not seen before.",
    ),
  );
}

function said(why) {
  if (!why) return ["Decisions have the probability that they are right."];
  return ["Probabilities are unknown: ", foreign(why), "."];
}

function checked(check) {
  if (check === null) {
    return `From ${LEAST} answers on, the tuning is compared with what was right.`;
  }
  return `The tuning told ${figure(check.told)} in the mean of ${
    counted(check.answers, "answer")
  }; ` +
    `${figure(check.right)} were right (${signed(check.deviation, 1)} standard deviations).`;
}

/** Return the card with the reliability diagram, or with how to answer. */
function reliability(context, { bins, identities }) {
  if (identities === null) {
    return el(
      "section",
      { class: "card", "aria-label": "Reliability" },
      empty(
        "No model yet",
        el(
          "p",
          { class: "quiet" },
          "A namespace gets one when it is made: with the model of a tuning as confidence, or with ",
          el("code", {}, '"confidence": true'),
          ", which learns from answers alone.",
        ),
      ),
    );
  }
  if (!bins.length) {
    const body = '{"vector": 0, "right": true}';
    return el(
      "section",
      { class: "card", "aria-label": "Reliability" },
      empty(
        "No answers to compare yet",
        el(
          "p",
          { class: "quiet" },
          "Say of decisions as they come, or at random, whether they were right:",
        ),
        postLine(context, "judge", body),
      ),
    );
  }
  return card(
    "Reliability",
    {},
    diagram(bins),
    el(
      "details",
      {},
      el("summary", {}, "As a table"),
      table(bins),
    ),
    el(
      "p",
      { class: "quiet small-text" },
      "Each point is the answered decisions that were told about the same probability; its line is one standard error in either direction. Points on the diagonal are well calibrated.",
    ),
  );
}

const across = (value) => LEFT + value * (RIGHT - LEFT);
const up = (value) => BOTTOM - Math.max(0, Math.min(1, value)) * (BOTTOM - TOP);

/** @param {Bin[]} bins */
function diagram(bins) {
  const all = bins.reduce((sum, bin) => sum + bin.answers, 0);
  const most = Math.max(...bins.map((bin) => bin.answers));
  const label =
    `Share that was right over the probability that was told, of ${counted(all, "answer")}: ` +
    bins.map((bin) => `${percent(bin.told)} told, ${percent(bin.right)} right`).join("; ");
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const text = (words, x, y, anchor) =>
    svg(
      "text",
      { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor, class: "sure-tick" },
      words,
    );
  return el(
    "figure",
    { class: "sure-diagram" },
    svg(
      "svg",
      { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": label },
      ...ticks.flatMap((tick) => [
        svg("line", { class: "sure-grid", x1: LEFT, x2: RIGHT, y1: up(tick), y2: up(tick) }),
        svg("line", {
          class: "sure-grid",
          y1: TOP,
          y2: BOTTOM,
          x1: across(tick),
          x2: across(tick),
        }),
        text(`${100 * tick}`, LEFT - 8, up(tick) + 4, "end"),
        text(`${100 * tick}`, across(tick), BOTTOM + 18, "middle"),
      ]),
      svg("line", { class: "sure-even", x1: LEFT, y1: BOTTOM, x2: RIGHT, y2: TOP }),
      ...bins.flatMap((bin) => point(bin, most)),
      text("told, %", (LEFT + RIGHT) / 2, SIZE - 8, "middle"),
      svg(
        "text",
        {
          class: "sure-tick",
          "text-anchor": "middle",
          transform: `translate(12 ${(TOP + BOTTOM) / 2}) rotate(-90)`,
        },
        "right, %",
      ),
    ),
  );
}

function point(bin, most) {
  const x = across(bin.told);
  return [
    svg("line", {
      class: "sure-error",
      x1: x,
      x2: x,
      y1: up(bin.right - bin.error),
      y2: up(bin.right + bin.error),
    }),
    svg("circle", {
      class: "sure-point",
      cx: x,
      cy: up(bin.right),
      r: (3 + 4 * Math.sqrt(bin.answers / most)).toFixed(1),
    }),
  ];
}

/** @param {Bin[]} bins */
function table(bins) {
  const head = ["Told", "Right", "Standard error", "Answers"];
  return el(
    "table",
    { class: "sure-table figures" },
    el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))),
    el(
      "tbody",
      {},
      ...bins.map((bin) =>
        el(
          "tr",
          {},
          ...[figure(bin.told), figure(bin.right), figure(bin.error), number(bin.answers)].map((
            words,
          ) => el("td", {}, words)),
        )
      ),
    ),
  );
}
