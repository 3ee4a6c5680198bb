/**
 * The steps of an upload: file, columns, thresholds (of a new namespace), adding.
 *
 * The service does all the work: it takes the file in pieces, looks at it, checks every row and adds
 * those that are new (see "Files: uploads" in docs/http-api.md). Each step is a card; the ones before
 * stay visible as one line.
 */

import { Problem } from "./api.js";
import { button, counted, el, foreign, number } from "./elements.js";
import { badList, figures } from "./uploaded.js";
import { namespaces, targetForm } from "./target.js";
import { card, confirmed } from "./parts.js";
import { ColumnsStep } from "./columns.js";
import { NewNamespace } from "./namespace.js";
import { bytes, progressBar } from "./progress.js";

const PIECE = 4 << 20; // bytes of one request
const TRIES = 4; // of one piece
const WAIT = 1; // seconds that the service waits before it tells how far it is
const KINDS = ".npy,.npz,.parquet,.arrow,.feather,.jsonl,.ndjson,.csv";
const STEPS = ["File", "Columns", "Thresholds", "Adding"];

export class UploadFlow {
  /** @param {import("./app.js").Context} context */
  constructor(context) {
    this.context = context;
    this.leaving = new AbortController();
    this.sending = null;
    this.step = null; // the columns, once the file is there
    this.told = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.steps = el("ol", { class: "steps", "aria-label": "Steps" });
    this.stage = el("div", { class: "begin-stage", tabindex: "-1" });
    this.root = el("div", { class: "begin-flow" }, this.steps, this.stage, this.told);
  }

  leave() {
    this.leaving.abort();
    this.sending?.abort();
  }

  /** Whether nothing was begun. */
  get idle() {
    return !this.id && !this.sending;
  }

  /** The path of the namespace that the file is for; it need not exist yet. */
  get base() {
    return `/v1/namespaces/${encodeURIComponent(this.to)}`;
  }

  get path() {
    return `${this.base}/uploads/${this.id}`;
  }

  /** Whether the namespace is still to be made. */
  get fresh() {
    return !this.made && !namespaces().includes(this.to);
  }

  /** Go on with the upload of the address; else begin with the first step. */
  async resume() {
    const { query } = this.context;
    this.id = query.get("upload");
    this.to = query.get("to") ?? this.context.namespace;
    if (!this.id) return this.first();
    try {
      const known = await this.context.api.get(this.path, {}, this.context.signal);
      if (known.state === "receiving") throw new Error("incomplete");
      this.file = known;
      if (known.state === "ready") await this.columns();
      else await this.follow();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.context.keep({ upload: null, to: null });
      this.first();
    }
  }

  /** Whether the steps have one for thresholds: not if rows go to a namespace that is there. */
  get asksThresholds() {
    return !this.to || this.made || this.fresh;
  }

  at(step) {
    const names = STEPS.filter((name) => name !== "Thresholds" || this.asksThresholds);
    const current = names.indexOf(STEPS[step]);
    this.steps.replaceChildren(
      ...names.map((name, place) =>
        el(
          "li",
          {
            class: place < current ? "done" : place === current ? "now" : null,
            "aria-current": place === current ? "step" : null,
          },
          name,
        )
      ),
    );
    this.told.textContent = `Step ${current + 1} of ${names.length}: ${STEPS[step]}`;
  }

  say(...parts) {
    const inside = this.stage.contains(document.activeElement);
    this.stage.replaceChildren(...parts.filter(Boolean));
    if (inside) this.stage.focus({ preventScroll: true }); // its control has gone
    if (this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView();
  }

  // The file

  first() {
    this.at(0);
    this.id = this.step = null;
    this.made = false;
    const { context } = this;
    const target = targetForm(context);
    const input = el("input", {
      type: "file",
      id: "begin-file",
      name: "file",
      accept: KINDS,
      "aria-describedby": "begin-kinds",
    });
    const take = (file) => {
      const to = target.value();
      if (file && to) this.send(to, file);
      input.value = "";
    };
    input.addEventListener("change", () => take(input.files[0]));
    const drop = el(
      "div",
      { class: "drop" },
      el("label", { for: "begin-file" }, el("strong", {}, "Choose a file"), " or drop it here"),
      input,
      el(
        "p",
        { class: "quiet small-text", id: "begin-kinds" },
        "NumPy (.npy, .npz), Parquet, Arrow, JSON lines or CSV, with one vector a row. Other columns can hold a text, the path of a picture or a sound, a key and a time.",
      ),
    );
    for (const kind of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", kind === "dragover");
        if (kind === "drop") take(/** @type {DragEvent} */ (event).dataTransfer.files[0]);
      });
    }
    const allowed = context.may("write") || context.may("admin");
    this.say(
      card(
        "Your file",
        {},
        target.root,
        allowed ? drop : el("p", { class: "quiet" }, "Your token allows reading only."),
        context.may("admin") && el("div", { class: "buttons" }, this.emptyButton(target)),
      ),
    );
  }

  /** Return the button that makes a namespace without a file, for programs that feed it. */
  emptyButton(target) {
    const made = () => {
      location.hash = `#/live?${new URLSearchParams({ in: this.to })}`;
    };
    const open = async () => {
      const name = target.fresh();
      if (!name) return;
      this.to = name;
      this.at(2);
      const step = new NewNamespace(this.context, { name, back: () => this.first(), made });
      this.say(step.root);
      await step.load().catch((error) => this.context.report(error));
    };
    return button("New namespace without a file", open, { class: "small" });
  }

  /** Send a file piece by piece. */
  async send(to, file) {
    this.to = to;
    this.sending = new AbortController();
    const bar = progressBar(`Sending ${file.name}`);
    const stop = button("Cancel", () => this.sending.abort(), {});
    this.say(
      card(
        "Sending",
        {},
        el("p", {}, foreign(file.name, 80), ` (${bytes(file.size)})`),
        bar.root,
        el("div", { class: "buttons" }, stop),
      ),
    );
    try {
      const body = { file: file.name, size: file.size };
      this.file = await this.context.api.post(`${this.base}/uploads`, body, this.sending.signal);
      this.id = this.file.upload;
      for (let offset = 0; offset < file.size; offset += PIECE) {
        await this.piece(file.slice(offset, offset + PIECE), offset);
        const sent = Math.min(offset + PIECE, file.size);
        bar.set(sent / file.size, `${bytes(sent)} of ${bytes(file.size)}`);
      }
      this.context.keep({ upload: this.id, to: this.to });
      await this.columns();
    } catch (error) {
      await this.drop();
      if (!this.leaving.signal.aborted) {
        if (error.name !== "AbortError") this.context.report(error);
        this.first();
      }
    }
  }

  /** Send a piece; again if the outcome is not known, which does no harm. */
  async piece(part, offset) {
    const request = {
      method: "PUT",
      headers: { "Content-Type": "application/octet-stream" },
      body: part,
      signal: this.sending.signal,
    };
    for (let tried = 1;; tried += 1) {
      try {
        await this.context.api.send(`${this.path}?offset=${offset}`, request);
        return;
      } catch (error) {
        if (!["network", "busy", "too-slow"].includes(error.kind) || tried === TRIES) throw error;
        await new Promise((done) => setTimeout(done, 500 * 2 ** tried));
      }
    }
  }

  /** Remove the file from the service. */
  async drop() {
    if (this.id) await this.context.api.remove(this.path).catch(() => {});
    this.context.keep({ upload: null, to: null });
    this.id = null;
  }

  again() {
    return button("Another file", () => this.drop().then(() => this.first()), {});
  }

  // The columns

  async columns() {
    this.at(1);
    this.step ??= new ColumnsStep(this.context, this.path, this.fresh);
    await this.step.load();
    this.say(this.step.card(this.again(), () => this.afterColumns()));
  }

  afterColumns() {
    if (this.fresh) this.thresholds();
    else this.add();
  }

  // The thresholds of a new namespace

  async thresholds() {
    this.at(2);
    const step = new NewNamespace(this.context, {
      name: this.to,
      path: this.path,
      columns: this.step.body(),
      dimension: this.step.look.dimension,
      back: () => this.columns(),
      made: () => {
        this.made = true;
        this.add();
      },
    });
    this.say(step.root);
    await step.load();
  }

  // Adding

  async add(skip = false) {
    try {
      const body = { ...this.step.body(), skip_bad: skip };
      await this.context.api.post(`${this.path}/add`, body, this.context.signal);
      await this.follow();
    } catch (error) {
      this.context.report(error);
    }
  }

  /** Show how far adding is until it ends. */
  async follow() {
    this.at(3);
    const bar = progressBar("Adding");
    const line = el("p", { class: "figures" });
    const stop = async () => {
      const sure = await confirmed(
        "Stop adding?",
        "Rows that were added stay. The same file can be sent again later; it goes on where it was.",
        "Stop",
        "Go on",
      );
      if (sure) await this.stopped();
    };
    const title = el("h2", {}, "Checking every row");
    this.say(
      el(
        "section",
        { class: "card", "aria-label": "Adding" },
        title,
        line,
        bar.root,
        el("div", { class: "buttons" }, button("Stop", stop, {})),
      ),
    );
    for (let wait = 0; !this.leaving.signal.aborted; wait = WAIT) {
      const now = await this.context.api.get(this.path, { wait }, this.context.signal)
        .catch((error) => this.lost(error));
      if (!now) return;
      this.file = now;
      if (now.state !== "checking" && now.state !== "adding") return this.ended(now);
      const adding = now.state === "adding";
      title.textContent = adding ? "Adding the rows" : "Checking every row";
      line.textContent = adding
        ? `${number(now.added)} added of ${counted(now.rows, "row")}` +
          (now.known ? `; ${number(now.known)} were there before` : "")
        : `${counted(now.rows, "row")} read. Nothing is added yet.`;
      bar.set(now.share, `${Math.round(100 * now.share)} %`);
    }
  }

  lost(error) {
    if (error.name === "AbortError" || this.halted) return null;
    this.context.report(error);
    this.first();
    return null;
  }

  async stopped() {
    this.halted = true;
    const last = await this.context.api.remove(this.path).catch(() => null);
    this.context.keep({ upload: null, to: null });
    this.id = null;
    if (last) this.ended({ ...last, state: last.state === "done" ? "done" : "cancelled" });
    this.halted = false;
  }

  /** Show how adding has ended, and what one can do next. */
  ended(now) {
    const shown = {
      "done": () => this.done(now),
      "bad-rows": () => this.bad(now),
      "cancelled": () => this.cancelled(now),
      "failed": () => this.failed(now),
    }[now.state];
    this.say(shown());
  }

  done(now) {
    this.context.keep({ upload: null, to: null });
    const skipped = now.bad.count;
    return card(
      now.added ? "Your rows are in" : "Nothing new in this file",
      { class: "begin-done" },
      figures([
        [now.added, "new"],
        [now.known, "there before"],
        [skipped, "left out"],
      ]),
      skipped > 0 && badList(now.bad),
      el(
        "div",
        { class: "buttons" },
        el("a", { class: "button main", href: this.seen() }, "See the clusters"),
        this.undoButton(now),
        this.again(),
      ),
    );
  }

  seen() {
    return `#/cluster?${new URLSearchParams({ in: this.to })}`;
  }

  undoButton({ before, event, added }) {
    if (before === null || !added) return null;
    const undo = async () => {
      try {
        await this.context.api.post(`${this.base}/undo`, { to: before, after: event });
        this.context.say(`${counted(added, "row")} taken back.`);
        this.first();
      } catch (error) {
        this.context.report(error);
      }
    };
    return button("Take them back", undo, {});
  }

  cancelled(now) {
    return card(
      "Stopped",
      {},
      el(
        "p",
        {},
        now.added
          ? `${counted(now.added, "row")} had been added and stay. Send the file again to go on.`
          : "Nothing was added.",
      ),
      el("div", { class: "buttons" }, this.undoButton(now), this.again()),
    );
  }

  bad(now) {
    const all = now.bad.count;
    const good = now.rows;
    return card(
      `${counted(all, "row")} cannot be added`,
      { class: "begin-bad" },
      el("p", {}, `${counted(good, "row is", "rows are")} good. Nothing was added yet.`),
      badList(now.bad),
      el(
        "div",
        { class: "buttons" },
        good > 0 && this.step &&
          button(
            `Leave ${all === 1 ? "it" : "them"} out and add ${number(good)}`,
            () => this.add(true),
            { class: "main" },
          ),
        button("Change the columns", () => this.columns(), {}),
        this.again(),
      ),
    );
  }

  failed(now) {
    const problem = new Problem(now.error);
    return card(
      "The file could not be added",
      { class: "problem" },
      el("p", {}, foreign(problem.seen)),
      el("p", { class: "quiet" }, "Expected: ", foreign(problem.expected)),
      el("p", {}, foreign(problem.remedy)),
      el(
        "div",
        { class: "buttons" },
        button("Change the columns", () => this.columns(), {}),
        this.again(),
      ),
    );
  }
}
