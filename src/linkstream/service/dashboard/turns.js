/**
 * Turns: who spoke when. The recordings in memory (`#/turns`), or one recording (`#/turns/monday`):
 * a lane for each speaker, time from left to right, turns that may still change lighter.
 */

import { button, called, counted, el, figure, foreign, number, slot, svg } from "./elements.js";
import { correct, nameForm, offerUndo } from "./corrections.js";
import { card, chip, empty, exampleVector, postLine } from "./parts.js";

const BEAT = 250; // milliseconds between two drawings
const AGAIN = 3_000; // milliseconds between two requests for the estimated turns
const LANES = 40; // shown
const NEWEST = 12; // turns in the list
const [WIDTH, HEIGHT] = [1000, 20]; // of a lane
const THINNEST = 1.5; // width of the shortest turn
const TICKS = 5;
const MOMENTS = {
  final: "as told live",
  current: "estimated again",
};
const SPANS = { 0: "the whole recording", 60: "the last minute", 300: "the last five minutes" };

/**
 * @typedef {{start: number, end: number, speaker: string, cluster: number}} Turn
 */

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  if (!context.parts.length) return showList(root, context);
  const view = new Lanes(context, context.parts[0]);
  await view.load();
  root.append(...view.parts);
  view.draw();
  context.stream(`${view.route}/stream?since=${view.told}`, view.handlers, (state) => {
    view.connection(state);
  });
  const beat = setInterval(() => view.beat(), BEAT);
  return () => clearInterval(beat);
}

async function showList(root, context) {
  const { recordings } = await context.get("turns");
  const input = el("input", { id: "recording", maxlength: 100, autocomplete: "off" });
  const form = el(
    "form",
    { class: "line-form" },
    el("label", { for: "recording" }, "Recording"),
    input,
    el("button", { type: "submit" }, "Open"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) context.navigate("turns", input.value.trim());
  });
  const rows = recordings.map((each) =>
    el(
      "li",
      { class: "turns-row" },
      el("a", { href: context.link("turns", each.recording) }, foreign(each.recording)),
      each.finished && el("span", { class: "tag" }, "ended"),
      el("span", { class: "quiet figures" }, `${clock(each.seconds)} · ${told(each)}`),
    )
  );
  const body = rows.length ? el("ul", { class: "turns-list" }, ...rows) : await nothing(context);
  root.append(
    el("h1", {}, "Turns"),
    card("Recordings", {}, body),
    card("An earlier recording", { class: "turns-open" }, form),
  );
}

async function nothing(context) {
  const { dimension } = await context.get("stats");
  return empty(
    "No recording in memory",
    el("p", {}, "Who spoke when: send segments of speech with their times. One, for a try:"),
    postLine(
      context,
      "turns/monday",
      `{"vectors": [${exampleVector(dimension)}], "times": [[0, 1.6]]}`,
    ),
  );
}

const told = ({ segments }) => counted(segments, "segment");

class Lanes {
  constructor(context, name) {
    this.context = context;
    this.name = name;
    this.route = `turns/${encodeURIComponent(name)}`;
    this.moment = "final";
    this.span = 0;
    this.dirty = this.stale = false;
    this.lanes = new Map(); // by cluster
    this.handlers = {
      final: (turn) => this.add(turn),
      pending: ({ turns }) => {
        this.pending = turns;
        this.dirty = true;
      },
      finished: () => this.ended(true),
      changed: () => {
        this.stale = true;
      },
    };
    this.build();
  }

  build() {
    const choice = (id, label, options, change) => {
      const picker = el(
        "select",
        { id },
        ...Object.entries(options).map(([value, words]) => el("option", { value }, words)),
      );
      picker.addEventListener("change", () => change(picker.value));
      return el("span", { class: "line-form" }, el("label", { for: id }, label), picker);
    };
    const moment = choice("moment", "Turns", MOMENTS, (value) => {
      this.moment = value;
      this.askAgain();
    });
    const span = choice("span", "Show", SPANS, (value) => {
      this.span = Number(value);
      this.draw();
    });
    this.state = el("span", { class: "state" }, "connecting");
    this.end = el("span", { class: "tag", hidden: true }, "ended");
    this.figures = el("p", { class: "quiet figures" });
    this.list = el("ol", { class: "lanes" });
    this.more = el("p", { class: "quiet", hidden: true });
    this.axis = el("div", { class: "lane-axis quiet figures", "aria-hidden": "true" });
    this.form = el("div", { class: "action-form", hidden: true });
    this.newest = el("ol", { class: "turns-newest" });
    const title = el("h1", {}, foreign(this.name));
    this.parts = [
      el(
        "a",
        { href: this.context.link("turns"), class: "small-text back" },
        "← All recordings",
      ),
      el("div", { class: "live-head" }, title, this.state, this.end),
      this.figures,
      el("div", { class: "turns-tools" }, moment, span),
      this.form,
      card("Speakers", {}, this.list, this.axis, this.more),
      card(
        "Newest turns",
        { more: el("span", { class: "quiet small-text" }, "lighter: may still change") },
        this.newest,
      ),
    ];
  }

  connection(state) {
    this.state.textContent = state === "open" ? "connected" : "reconnecting…";
    this.state.classList.toggle("open", state === "open");
  }

  ended(finished) {
    this.end.hidden = !finished;
  }

  /** Request all turns. */
  async load() {
    this.stale = false;
    this.asked = performance.now();
    const found = await this.context.get(this.route, { moment: this.moment });
    this.turns = found.turns;
    this.pending = found.pending;
    this.gap = found.gap;
    this.told = Math.max(this.told ?? 0, found.final);
    this.ended(found.finished);
    this.dirty = true;
  }

  askAgain() {
    this.load().catch((error) => this.context.report(error));
  }

  /** Add a final turn; those of one speaker that touch become one. */
  add({ number: place, ...turn }) {
    this.ended(false);
    if (place < this.told) return;
    this.told = place + 1;
    if (this.moment !== "final") {
      this.stale = true;
      return;
    }
    this.turns.push(...joined([...this.turns.splice(-1), turn], this.gap));
    this.dirty = true;
  }

  beat() {
    if (document.hidden) return;
    if (this.stale && performance.now() - this.asked > AGAIN) this.askAgain();
    if (this.dirty) this.draw();
  }

  draw() {
    this.dirty = false;
    const open = this.moment === "final" ? this.pending : [];
    const all = [...this.turns, ...open];
    const end = all.reduce((most, turn) => Math.max(most, turn.end), 1);
    const from = this.span ? Math.max(end - this.span, 0) : 0;
    const window = { from, to: end };
    const speakers = bySpeaker(this.turns, open);
    const shown = [...speakers.values()].slice(0, LANES);
    for (const cluster of this.lanes.keys()) {
      if (!shown.some((speaker) => speaker.cluster === cluster)) this.lanes.delete(cluster);
    }
    const rows = shown.map((speaker) => this.lane(speaker, window));
    const there = [...this.list.children];
    if (rows.length !== there.length || rows.some((row, place) => row !== there[place])) {
      this.list.replaceChildren(...rows);
    }
    this.more.hidden = speakers.size <= LANES;
    this.more.textContent = `and ${counted(speakers.size - LANES, "more speaker")}`;
    this.figures.textContent = `${counted(speakers.size, "speaker")} · ` +
      `${counted(joined(all, this.gap).length, "turn")} · ${clock(end)}`;
    this.drawAxis(window);
    const last = all.slice(-NEWEST).reverse();
    this.newest.replaceChildren(
      ...last.map((turn) => this.row(turn, open.includes(turn))),
    );
  }

  /** Return the lane of a speaker, with its present turns. */
  lane(speaker, window) {
    const known = this.lanes.get(speaker.cluster) ?? this.newLane(speaker.cluster);
    const { cluster, turns, open } = speaker;
    const name = nameOf(speaker);
    if (known.name !== name) {
      known.name = name;
      const link = speakerChip(this.context, cluster, name);
      known.chip.replaceWith(link);
      known.chip = link;
      known.button.textContent = name === null ? "Name" : "Rename";
      known.button.setAttribute(
        "aria-label",
        `${known.button.textContent} ${called(cluster, name)}`,
      );
    }
    known.final.setAttribute("d", bars(turns, window));
    known.open.setAttribute("d", bars(open, window));
    const all = joined([...turns, ...open], this.gap);
    const seconds = all.reduce((sum, turn) => sum + turn.end - turn.start, 0);
    known.seconds.textContent = `${figure(seconds, 1)} s`;
    const words = `${called(cluster, name)}: ${counted(all.length, "turn")}, ` +
      `${figure(seconds, 1)} seconds`;
    known.picture.setAttribute("aria-label", words);
    return known.root;
  }

  newLane(cluster) {
    const [final, open] = ["lane-final", "lane-pending"].map((kind) =>
      svg("path", { class: kind })
    );
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      final,
      open,
    );
    const link = speakerChip(this.context, cluster, null);
    const seconds = el("span", { class: "quiet figures" });
    const rename = button("", () => this.askName(cluster), {
      class: "small",
      disabled: !this.context.may("write"),
    });
    rename.hidden = cluster < 0;
    const who = el("span", { class: "lane-who" }, link, seconds, rename);
    const root = el(
      "li",
      { class: `lane ${slot(cluster)}`, data: { cluster } },
      who,
      el("div", { class: "lane-plot" }, picture),
    );
    const made = {
      root,
      chip: link,
      name: undefined,
      button: rename,
      seconds,
      picture,
      final,
      open,
    };
    this.lanes.set(cluster, made);
    return made;
  }

  /** Show the form for the name of a speaker. */
  askName(cluster) {
    const known = this.lanes.get(cluster);
    const close = () => {
      this.form.hidden = true;
      this.lanes.get(cluster)?.button.focus();
    };
    const run = async (route, body, words) => {
      try {
        const done = await correct(this.context, route, body, words);
        close();
        offerUndo(this.context, done, () => this.askAgain());
        this.askAgain();
      } catch (error) {
        this.context.report(error);
      }
    };
    this.form.replaceChildren(nameForm(cluster, { name: known.name }, run, close));
    this.form.hidden = false;
    this.form.querySelector("input").focus();
  }

  row(turn, open) {
    return el(
      "li",
      { class: open ? "turns-row lighter" : "turns-row" },
      el("span", { class: "figures" }, `${clock(turn.start)} – ${clock(turn.end)}`),
      speakerChip(this.context, turn.cluster, nameOf(turn)),
      open && el("span", { class: "tag warn" }, "pending"),
      el("span", { class: "quiet figures" }, `${figure(turn.end - turn.start, 1)} s`),
    );
  }

  drawAxis({ from, to }) {
    const times = Array.from({ length: TICKS }, (_, n) => from + ((to - from) * n) / (TICKS - 1));
    const words = times.map(clock).join(" ");
    if (this.axis.dataset.words === words) return;
    this.axis.dataset.words = words;
    this.axis.replaceChildren(...times.map((time) => el("span", {}, clock(time))));
  }
}

/** Return the speakers in order of their first turns, each with final and pending turns. */
function bySpeaker(turns, open) {
  const speakers = new Map();
  const put = (turn, kind) => {
    const { cluster, speaker } = turn;
    if (!speakers.has(cluster)) speakers.set(cluster, { cluster, speaker, turns: [], open: [] });
    speakers.get(cluster)[kind].push(turn);
  };
  turns.forEach((turn) => put(turn, "turns"));
  open.forEach((turn) => put(turn, "open"));
  return speakers;
}

/** Return turns in order of time; those of one speaker with a short gap become one. */
function joined(turns, gap) {
  const made = [];
  for (const turn of turns) {
    const last = made.at(-1);
    if (last && last.cluster === turn.cluster && turn.start - last.end <= gap) {
      made[made.length - 1] = { ...last, end: Math.max(last.end, turn.end) };
    } else made.push(turn);
  }
  return made;
}

/** Return the chip of a speaker; held segments without one are no cluster to look at. */
const speakerChip = (context, cluster, name) =>
  cluster < 0 ? el("span", { class: "chip" }, name ?? "") : chip(context, cluster, name);

/** Return the name of a speaker; null if it has only an ID. */
const nameOf = ({ cluster, speaker }) => (speaker === `speaker-${cluster}` ? null : speaker);

/** Return the bars of turns as a path. */
function bars(turns, { from, to }) {
  const x = (time) => (WIDTH * (Math.max(time, from) - from)) / (to - from);
  return turns.filter((turn) => turn.end > from).map(({ start, end }) => {
    const wide = Math.max(x(end) - x(start), THINNEST);
    return `M${x(start).toFixed(2)} 0h${wide.toFixed(2)}v${HEIGHT}h${(-wide).toFixed(2)}z`;
  }).join("");
}

/** Return seconds as minutes and seconds: 3:07.5. */
function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  const rest = (tenths % 600) / 10;
  const minutes = Math.floor(tenths / 600);
  const two = (value, places) => value.toFixed(places).padStart(places ? 4 : 2, "0");
  if (minutes < 60) return `${minutes}:${two(rest, 1)}`;
  return `${number(Math.floor(minutes / 60))}:${two(minutes % 60, 0)}:${two(rest, 1)}`;
}
