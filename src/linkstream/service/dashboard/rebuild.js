/**
 * Rebuild: what clustering all vectors again would change, before it is done.
 *
 * The service runs a rebuild as a job (POST …/rebuilds). This view starts it, shows how far it is, and
 * can leave and come back meanwhile: the job goes on. Applying computes it again, for what is there
 * by then; Undo takes the whole back. The end of a migration to another encoder is a job of the same
 * kind (POST …/migration/finish); migration.js has what is shown of it alone.
 */

import { button, el, figure, foreign, number } from "./elements.js";
import { flowList, named } from "./flows.js";
import { card, empty } from "./parts.js";
import { takeBack } from "./corrections.js";
import { disagreements, facts, MigrationCard, ordered, SEEN, warning } from "./migration.js";

const LISTED = 40; // changes whose clusters are looked up and shown
const WAIT = 0.5; // seconds that the service waits for the end of a job before it tells how far it is
const AGAIN = 1_000; // milliseconds until the next try while the service does not answer
const RUNNING = ["waiting", "computing", "applying"];
const PHASES = {
  waiting: "Waiting for its turn",
  computing: "Computing; vectors and questions go on meanwhile",
  applying: "Applying",
};
const OVERTAKEN =
  "Something changed during each of three computations, so that the result did not fit. Nothing was done.";
const HOLDING =
  "Changes can be held back: vectors and corrections then wait until it is done, and reads go on.";
/**
 * @param {HTMLElement} root
 * @param {import("./app.js").Context} context
 */
export async function show(root, context) {
  const view = new Rebuild(context);
  root.append(...view.parts);
  await Promise.all([view.migration.watch(), view.resume()]);
}

/** Whether this view can apply a preview; one in another space needs its vectors again. */
const canApply = ({ apply, changes_space: changes, thresholds, report }) =>
  !apply && !changes && (report.flows.length > 0 || thresholds !== null);

/** Return the three thresholds of the address, as the view Thresholds links to this one; or null. */
function givenThresholds(query) {
  const names = ["cluster_similarity", "subcluster_similarity", "pair_similarity_max"];
  if (!names.every((name) => Number.isFinite(Number(query.get(name) ?? NaN)))) return null;
  return Object.fromEntries(names.map((name) => [name, Number(query.get(name))]));
}

/** What the parts of the view are called: of a rebuild, and of the end of a migration. */
const WORDS = {
  rebuild: {
    running: "Rebuilding",
    before: "What would change",
    after: "What has changed",
    done: "Rebuilt.",
    what: "the rebuild",
    hold: "Hold changes back and rebuild",
  },
  migration: {
    running: "Going on with the other encoder",
    before: "What the end would change",
    after: "What the other encoder has changed",
    done: "The other encoder is in use.",
    what: "the end of the migration. What was re-embedded has to be added again",
    hold: "Hold changes back and finish",
  },
};
const wordsOf = (job) => (job.migration ? WORDS.migration : WORDS.rebuild);

class Rebuild {
  constructor(context) {
    this.context = context;
    this.may = context.may("write");
    this.names = new Map(); // of clusters, by ID; null: none
    this.payloads = new Map(); // of the vectors that stand for disagreements
    this.migration = new MigrationCard(
      context,
      (body) => this.start(body, "migration/finish"),
      () => this.forget(),
    );
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
    const given = givenThresholds(this.context.query);
    if (given) {
      const words = `As chosen: ${Object.values(given).map((value) => figure(value)).join(", ")}`;
      this.thresholds.append(el("option", { value: "given", selected: true }, words));
    }
    const preview = () => {
      const { value } = this.thresholds;
      this.start({ thresholds: value === "given" ? given : value || null });
    };
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
        this.migration.root,
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

  /** Forget what was shown of a migration that was abandoned. */
  async forget() {
    const { rebuilds } = await this.context.get("rebuilds");
    if (!rebuilds[0]?.migration) return;
    await this.context.remove(`rebuilds/${rebuilds[0].job}`);
    this.idle();
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
   * @param {{apply?: boolean, hold?: boolean, thresholds?: object|string|null}} body
   * @param {string} route
   */
  async start(body, route = "rebuilds") {
    this.busy(true);
    try {
      const { job } = await this.context.post(route, body);
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
    this.migration.busy(on);
  }

  /** Show a job until it has ended. */
  async follow(id) {
    this.busy(true);
    try {
      let job = await this.context.get(`rebuilds/${id}`);
      while (RUNNING.includes(job.state) && !this.context.signal.aborted) {
        this.drawRunning(job);
        job = await this.look(id);
      }
      if (!this.context.signal.aborted) await this.drawEnded(job);
    } catch (error) {
      if (error.status !== 404 || !this.bar) throw error;
      this.drawForgotten();
    } finally {
      this.bar = null;
      this.busy(false);
    }
    await this.migration.load();
  }

  /** Look at a job that runs; while the service does not answer, say so and try again. */
  async look(id) {
    for (;;) {
      try {
        return await this.context.get(`rebuilds/${id}`, { wait: WAIT });
      } catch (error) {
        if (error.kind !== "network" && error.status !== 503) throw error;
        this.phase.textContent = "The service does not answer; trying again.";
        this.say(this.phase.textContent);
        await new Promise((done) => setTimeout(done, AGAIN));
        if (this.context.signal.aborted) throw error;
      }
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
          job.apply ? wordsOf(job).running : "Preview",
          { more: cancel, class: "rebuild-running" },
          el("div", { class: "progress" }, this.bar, this.count),
          this.phase,
        ),
      );
    }
    this.bar.value = job.share;
    this.count.textContent = `${Math.floor(100 * job.share)} % · ${job.seconds.toFixed(1)} s`;
    const again = job.tries > 1 ? `; something changed meanwhile, try ${job.tries}` : "";
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

  /** Say what became of a job that the service does not know any more. */
  drawForgotten() {
    this.stage.replaceChildren(
      card(
        "The service was started again",
        { class: "problem" },
        el(
          "p",
          {},
          "It forgets what was being computed. What was to be changed has been changed as a whole or not at all: the clusters and their history show which.",
        ),
        el("div", { class: "buttons" }, button("Start over", () => this.idle())),
      ),
    );
    this.say("The service was started again.");
  }

  drawFailed(job) {
    const { seen, remedy, kind } = job.error;
    const again = () =>
      job.migration
        ? this.start({ apply: true, hold: true }, "migration/finish")
        : this.start({ apply: true, hold: true, thresholds: job.thresholds });
    const can = job.apply && (job.migration || !job.changes_space);
    const held = kind === "changed" && this.may && can &&
      button(wordsOf(job).hold, again, { class: "main" });
    const words = held ? [OVERTAKEN, HOLDING] : [foreign(seen), foreign(remedy)];
    this.stage.replaceChildren(
      card(
        "That did not work",
        { class: "problem" },
        el("p", {}, words[0]),
        el("p", { class: "quiet" }, words[1]),
        held && el("div", { class: "buttons" }, held),
      ),
    );
    this.say("That did not work.");
  }

  async drawReport(job) {
    const { report, migration } = job;
    const flows = report.flows.slice(0, LISTED);
    const words = wordsOf(job);
    const doubts = ordered(migration?.disagreements ?? []);
    await Promise.all([this.lookUp(flows, doubts, job.apply), this.lookAt(doubts)]);
    if (this.context.signal.aborted) return;
    this.stage.replaceChildren(
      card(
        job.apply ? words.after : words.before,
        { more: this.buttons(job), class: "rebuild-report" },
        this.counts(job),
        migration && !job.apply && warning(migration),
        named(this.context, flows, this.names),
        flows.length
          ? flowList(this.context, flows, this.names)
          : el("p", {}, "Every vector stays where it is."),
        report.flows.length > LISTED &&
          el(
            "p",
            { class: "quiet" },
            `And ${number(report.flows.length - LISTED)} smaller changes.`,
          ),
        disagreements(this.context, doubts, this.names, this.payloads, job.apply),
        (canApply(job) || (migration && !job.apply)) &&
          el(
            "p",
            { class: "quiet small-text" },
            migration
              ? "Finish computes this again, for what is there by then. Undo takes all of it back."
              : "Applying computes this again, for what is there by then. Undo takes all of it back.",
          ),
      ),
    );
    this.say(job.apply ? words.done : "The preview is ready.");
  }

  buttons(job) {
    if (!this.may) return null;
    if (!job.apply) return canApply(job) ? this.applyButton(job) : null;
    const undo = button("Undo", async () => {
      undo.disabled = true;
      try {
        const done = { before: job.before, event: job.event, words: wordsOf(job).what };
        if (!(await takeBack(this.context, done))) return;
        await this.context.remove(`rebuilds/${job.job}`).catch(() => {});
        this.context.say(`Taken back: ${done.words}`);
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

  counts({ report, thresholds, migration }) {
    const [before, after] = report.n_clusters;
    const sum = (kind) => report.flows.filter((flow) => flow.kind === kind).length;
    const moved = report.flows.filter((flow) => flow.kind !== "joined")
      .reduce((total, flow) => total + flow.vectors, 0);
    const told = [
      ["Clusters", `${number(before)} → ${number(after)}`],
      ["Joined", number(sum("joined"))],
      ["Parted", number(sum("split"))],
      ["Vectors that move", `${number(moved)} of ${number(report.n_vectors)}`],
    ];
    if (migration) told.push(...facts(migration));
    if (thresholds !== null || migration) {
      const three = Object.values(report.thresholds).map((value) => figure(value));
      told.push(["T_c, T_s, T_p", three.join(" · ")]);
    }
    return el(
      "dl",
      { class: "rebuild-counts" },
      ...told.map(([name, value]) =>
        el("div", {}, el("dt", { class: "quiet" }, name), el("dd", { class: "figures" }, value))
      ),
    );
  }

  /** Look up the names of the clusters that changes are about; new ones exist once applied. */
  async lookUp(flows, doubts, applied) {
    this.names.clear();
    const wanted = flows.flatMap((flow) =>
      flow.kind === "split" && !applied ? [flow.cluster] : [flow.cluster, flow.to]
    );
    const others = doubts.map(({ kind, clusters: [from, to] }) => (kind === "joined" ? to : from));
    await Promise.all([...new Set([...wanted, ...others])].map(async (id) => {
      try {
        const { cluster } = await this.context.get(`clusters/${id}`, { brief: true });
        if (cluster && cluster.id === id) this.names.set(id, cluster.name);
      } catch (error) {
        if (error.status !== 404 && error.status !== 410) throw error;
      }
    }));
  }

  /** Look up what the vectors are that stand for disagreements. */
  async lookAt(doubts) {
    this.payloads.clear();
    const vectors = doubts.slice(0, SEEN).flatMap((each) => each.vectors);
    await Promise.all([...new Set(vectors)].map(async (vector) => {
      try {
        const { payload, id } = await this.context.get(`vectors/${vector}`);
        this.payloads.set(vector, payload ?? id);
      } catch (error) {
        if (error.status !== 404 && error.status !== 410) throw error;
      }
    }));
  }
}
