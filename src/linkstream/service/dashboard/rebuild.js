/**
 * Rebuild: what clustering all vectors again would change, before it is done.
 *
 * The service runs a rebuild as a job (POST …/rebuilds). This view starts it, shows how far it is, and
 * can leave and come back meanwhile: the job goes on. Applying computes it again, for what is there
 * by then; Undo takes the whole back.
 */

import { button, counted, el, figure, foreign, number } from "./elements.js";
import { card, chip, empty, marginBar } from "./parts.js";
import { takeBack } from "./corrections.js";

const LISTED = 40; // changes whose clusters are looked up and shown
const WAIT = 0.5; // seconds that the service waits for the end of a job before it tells how far it is
const RUNNING = ["waiting", "computing", "applying"];
const PHASES = {
  waiting: "Waiting for its turn",
  computing: "Computing; vectors and questions go on meanwhile",
  applying: "Applying",
};
const KINDS = {
  joined: { title: "joined", words: "all its vectors join" },
  split: { title: "parted", words: "some vectors become a new cluster" },
  moved: { title: "moved", words: "some vectors move" },
};

/**
 * @typedef {{kind: "joined"|"split"|"moved", cluster: number, to: number, vectors: number,
 *   margin: number}} Flow
 */

/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Rebuild(context);
  root.append(...view.parts);
  await view.resume();
}

/** Whether this view can apply a preview; one in another space needs its vectors again. */
const canApply = ({ apply, changes_space: changes, thresholds, report }) =>
  !apply && !changes && (report.flows.length > 0 || thresholds !== null);

class Rebuild {
  constructor(context) {
    this.context = context;
    this.may = context.may("write");
    this.names = new Map(); // of clusters, by ID; null: none
    this.build();
  }

  build() {
    this.stage = el("div", { class: "rebuild-stage" });
    this.told = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.thresholds = el(
      "select",
      { id: "rebuild-thresholds", disabled: !this.may },
      el("option", { value: "" }, "The present ones"),
      el("option", { value: "from clusters" }, "From clusters"),
    );
    const preview = () => this.start({ thresholds: this.thresholds.value || null });
    this.preview = button("Preview", preview, { class: "main", disabled: !this.may });
    this.parts = [
      el(
        "div",
        { class: "map-head" },
        el("h1", {}, "Rebuild"),
        el("p", { class: "quiet" }, "What would change if all vectors were clustered again?"),
      ),
      el(
        "div",
        { class: "rebuild-body" },
        card(
          "Cluster all vectors again",
          {},
          el(
            "p",
            {},
            "The clusters then follow from the set of vectors and your corrections alone, not from their order. IDs and names stay with most of their vectors, and every correction still holds.",
          ),
          el(
            "form",
            { class: "line-form rebuild-form", on: { submit: (event) => event.preventDefault() } },
            el("label", { for: "rebuild-thresholds" }, "Thresholds"),
            this.thresholds,
            this.preview,
          ),
          !this.may && el("p", { class: "quiet" }, "Your token allows reading only."),
        ),
        this.stage,
      ),
      this.told,
    ];
  }

  /** Show the job that runs, or the last one, if this service has one. */
  async resume() {
    const { rebuilds } = await this.context.get("rebuilds");
    const known = rebuilds[0];
    if (known && known.state !== "cancelled") await this.follow(known.job);
    else this.idle();
  }

  idle() {
    this.stage.replaceChildren(
      el(
        "section",
        { class: "card", "aria-label": "No preview yet" },
        empty(
          "No preview yet",
          el(
            "p",
            { class: "quiet" },
            "A preview changes nothing. It shows each cluster that would be joined or parted.",
          ),
        ),
      ),
    );
  }

  /**
   * Start a job and follow it to its end.
   * @param {{apply?: boolean, hold?: boolean, thresholds: object|string|null}} body
   */
  async start(body) {
    this.busy(true);
    try {
      const { job } = await this.context.post("rebuilds", body);
      await this.follow(job);
    } catch (error) {
      this.context.report(error);
      if (error.kind === "running") {
        await this.resume().catch((other) => this.context.report(other));
      }
    } finally {
      this.busy(false);
    }
  }

  busy(on) {
    this.preview.disabled = on || !this.may;
    this.thresholds.disabled = on || !this.may;
  }

  /** Show a job until it has ended. */
  async follow(id) {
    this.busy(true);
    try {
      let job = await this.context.get(`rebuilds/${id}`);
      while (RUNNING.includes(job.state) && !this.context.signal.aborted) {
        this.drawRunning(job);
        job = await this.context.get(`rebuilds/${id}`, { wait: WAIT });
      }
      if (!this.context.signal.aborted) await this.drawEnded(job);
    } finally {
      this.bar = null;
      this.busy(false);
    }
  }

  // While it runs

  drawRunning(job) {
    if (!this.bar) {
      this.bar = el("progress", { max: 1, value: 0, "aria-label": "Share of the rebuild" });
      this.count = el("span", { class: "quiet figures small-text" });
      this.phase = el("p", { class: "quiet" });
      const cancel = button("Cancel", () => this.cancel(job.job), { disabled: !this.may });
      this.stage.replaceChildren(
        card(
          job.apply ? "Rebuilding" : "Preview",
          { more: cancel, class: "rebuild-running" },
          el("div", { class: "progress" }, this.bar, this.count),
          this.phase,
        ),
      );
    }
    this.bar.value = job.share;
    this.count.textContent = `${Math.floor(100 * job.share)} % · ${job.seconds.toFixed(1)} s`;
    const again = job.tries > 1 ? `; vectors came meanwhile, try ${job.tries}` : "";
    this.phase.textContent = `${PHASES[job.state]}${again}.`;
    this.say(`${PHASES[job.state]}.`);
  }

  async cancel(id) {
    try {
      await this.context.remove(`rebuilds/${id}`);
    } catch (error) {
      this.context.report(error);
    }
  }

  /** Let screen readers read a text, once. */
  say(words) {
    if (this.told.textContent !== words) this.told.textContent = words;
  }

  // At its end

  async drawEnded(job) {
    if (job.state === "failed") this.drawFailed(job);
    else if (job.state === "cancelled") {
      this.idle();
      this.say("Cancelled: nothing has changed.");
      this.context.say("Cancelled: nothing has changed.");
    } else await this.drawReport(job);
  }

  drawFailed(job) {
    const { seen, remedy, kind } = job.error;
    const again = () => this.start({ apply: true, hold: true, thresholds: job.thresholds });
    const held = kind === "changed" && this.may && !job.changes_space &&
      button("Hold changes back and rebuild", again, { class: "main" });
    this.stage.replaceChildren(
      card(
        "That did not work",
        { class: "problem" },
        el("p", {}, foreign(seen)),
        el("p", { class: "quiet" }, foreign(remedy)),
        held && el("div", { class: "buttons" }, held),
      ),
    );
    this.say("The rebuild did not work.");
  }

  async drawReport(job) {
    const { report } = job;
    const flows = report.flows.slice(0, LISTED);
    await this.lookUp(flows, job.apply);
    if (this.context.signal.aborted) return;
    this.stage.replaceChildren(
      card(
        job.apply ? "What has changed" : "What would change",
        { more: this.buttons(job), class: "rebuild-report" },
        this.counts(job),
        this.named(flows),
        flows.length ? this.list(flows) : el("p", {}, "Every vector stays where it is."),
        report.flows.length > LISTED &&
          el(
            "p",
            { class: "quiet" },
            `And ${number(report.flows.length - LISTED)} smaller changes.`,
          ),
        canApply(job) &&
          el(
            "p",
            { class: "quiet small-text" },
            "Applying computes this again, for what is there by then. Undo takes all of it back.",
          ),
      ),
    );
    this.say(job.apply ? "Rebuilt." : "The preview is ready.");
  }

  buttons(job) {
    if (!this.may) return null;
    if (!job.apply) return canApply(job) ? this.applyButton(job) : null;
    const undo = button("Undo", async () => {
      undo.disabled = true;
      try {
        const done = { before: job.before, event: job.event, words: "the rebuild" };
        if (!(await takeBack(this.context, done))) return;
        await this.context.remove(`rebuilds/${job.job}`).catch(() => {});
        this.context.say("Taken back: the rebuild");
        this.names.clear();
        this.idle();
      } catch (error) {
        this.context.report(error);
      } finally {
        undo.disabled = false;
      }
    });
    return job.before === null ? null : undo;
  }

  /** Return the button that applies a preview, with the thresholds that it has shown. */
  applyButton({ thresholds, report }) {
    const shown = thresholds === null ? null : report.thresholds;
    return button("Apply", () => this.start({ apply: true, thresholds: shown }), { class: "main" });
  }

  counts({ report, thresholds }) {
    const [before, after] = report.n_clusters;
    const sum = (kind) => report.flows.filter((flow) => flow.kind === kind).length;
    const moved = report.flows.filter((flow) => flow.kind !== "joined")
      .reduce((total, flow) => total + flow.vectors, 0);
    const facts = [
      ["Clusters", `${number(before)} → ${number(after)}`],
      ["Joined", number(sum("joined"))],
      ["Parted", number(sum("split"))],
      ["Vectors that move", `${number(moved)} of ${number(report.n_vectors)}`],
    ];
    if (thresholds !== null) {
      const three = Object.values(report.thresholds).map((value) => figure(value));
      facts.push(["T_c, T_s, T_p", three.join(" · ")]);
    }
    return el(
      "dl",
      { class: "rebuild-counts" },
      ...facts.map(([name, value]) =>
        el("div", {}, el("dt", { class: "quiet" }, name), el("dd", { class: "figures" }, value))
      ),
    );
  }

  /** Return the names that the changes concern. */
  named(flows) {
    const ids = [...new Set(flows.flatMap((flow) => [flow.cluster, flow.to]))];
    const some = ids.filter((id) =>
      this.names.get(id) !== undefined && this.names.get(id) !== null
    );
    if (!some.length) return null;
    return el(
      "p",
      { class: "rebuild-names" },
      el("span", { class: "quiet" }, "Names concerned: "),
      ...some.map((id) => chip(this.context, id, this.names.get(id))),
    );
  }

  list(flows) {
    return el("ul", { class: "rebuild-flows" }, ...flows.map((flow) => this.row(flow)));
  }

  /** @param {Flow} flow */
  row(flow) {
    const { title, words } = KINDS[flow.kind];
    const fresh = flow.kind === "split" && !this.names.has(flow.to);
    return el(
      "li",
      { data: { kind: flow.kind } },
      el("span", { class: "tag", title: words }, title),
      el(
        "span",
        { class: "who" },
        chip(this.context, flow.cluster, this.names.get(flow.cluster) ?? null),
        el("span", { "aria-label": "to" }, "→"),
        fresh
          ? el("span", { class: "quiet" }, "a new cluster")
          : chip(this.context, flow.to, this.names.get(flow.to) ?? null),
      ),
      el("span", { class: "figures" }, counted(flow.vectors, "vector")),
      marginBar(flow.margin),
    );
  }

  /** Look up the names of the clusters that changes are about; new ones exist once applied. */
  async lookUp(flows, applied) {
    this.names.clear();
    const wanted = flows.flatMap((flow) =>
      flow.kind === "split" && !applied ? [flow.cluster] : [flow.cluster, flow.to]
    );
    await Promise.all([...new Set(wanted)].map(async (id) => {
      try {
        const { cluster } = await this.context.get(`clusters/${id}`, { brief: true });
        if (cluster && cluster.id === id) this.names.set(id, cluster.name);
      } catch (error) {
        if (error.status !== 404 && error.status !== 410) throw error;
      }
    }));
  }
}
