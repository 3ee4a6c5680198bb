/**
 * A migration to another encoder, as the view Rebuild shows it: how far it is, what its end would
 * change, and where the two encoders disagree.
 *
 * Vectors of the other encoder come from the application (POST …/migration/vectors), so this page
 * follows the status, and ends the migration or abandons it.
 */

import { button, counted, el, figure, foreign, number, short } from "./elements.js";
import { card, chip, confirmed, marginBar, payloadLine } from "./parts.js";

const LOOK = 5_000; // milliseconds between two looks at the status
const LEAST = 10; // pairs from which the service translates
const SHOWN = 20; // missing vectors, and disagreements
export const SEEN = 8; // disagreements whose vectors are shown with their payloads
const MANY = 0.25; // share of answers that translation changes above which the page warns
const KINDS = {
  joined: ["joined", "The new encoder has them in one cluster"],
  split: ["parted", "The old encoder has them in one cluster"],
  moved: ["moved", "The old encoder has them in one cluster; the new one finds a nearer cluster"],
};

/**
 * @typedef {{n_vectors: number, reencoded: number, missing: number, dimension: number|null,
 *   model: string|null, share: number, pairs?: number}} Status  pairs: of vectors of both encoders,
 *   where vectors are not kept
 * @typedef {(body: {apply: boolean, hold?: boolean}) => Promise<void>} End  starts the job
 */

/** The card of the migration that is under way; hidden while there is none. */
export class MigrationCard {
  /**
   * @param {import("./app.js").Context} context
   * @param {End} end
   * @param {() => Promise<void>} gone  called once it is abandoned
   */
  constructor(context, end, gone) {
    this.context = context;
    this.end = end;
    this.gone = gone;
    this.may = context.may("write");
    this.running = false;
    this.status = null;
    this.root = el("div", { hidden: true });
  }

  /** Look at the status now and then, until the view is left. */
  async watch() {
    await this.load();
    const look = () => {
      if (!document.hidden && !this.running) this.load().catch(() => {}); // the next look tries again
    };
    const timer = setInterval(look, LOOK);
    this.context.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  async load() {
    const { migration } = await this.context.get("migration");
    this.draw(migration);
  }

  /** Disable the buttons while a job runs. */
  busy(on) {
    this.running = on;
    if (this.status) this.fill();
  }

  draw(status) {
    const before = this.status;
    this.status = status;
    this.root.hidden = status === null;
    if (status === null) this.root.replaceChildren();
    else {
      if (!before) this.build();
      this.fill();
    }
  }

  build() {
    this.bar = el("progress", { max: 1, value: 0, "aria-label": "Share re-embedded" });
    this.count = el("span", { class: "quiet figures small-text" });
    this.words = el("p", { class: "quiet" });
    this.list = el("ul", { class: "migration-missing" });
    this.missing = el(
      "details",
      { on: { toggle: () => this.open() } },
      el("summary", {}, "Which are missing?"),
      this.list,
    );
    const preview = () => this.end({ apply: false });
    this.buttons = {
      preview: button("Preview the end", preview, { class: "main" }),
      finish: button("Finish…", () => this.finish()),
      abandon: button("Abandon…", () => this.abandon(), { class: "danger" }),
    };
    const model = this.status.model === null ? "another encoder" : foreign(this.status.model, 80);
    this.root.replaceChildren(
      card(
        "Another encoder",
        { class: "migration" },
        el(
          "p",
          {},
          "The vectors are being embedded again by ",
          model,
          ". Until the end the present encoder decides. Then IDs, names and corrections stay with their vectors.",
        ),
        el("div", { class: "progress" }, this.bar, this.count),
        this.words,
        this.missing,
        el("div", { class: "buttons" }, ...Object.values(this.buttons)),
        !this.may && el("p", { class: "quiet" }, "Your token allows reading only."),
      ),
    );
  }

  fill() {
    const { n_vectors: all, reencoded, missing, dimension, share, pairs = 0 } = this.status;
    this.bar.value = share;
    const wide = dimension === null ? "" : `, ${counted(dimension, "dimension")}`;
    const both = pairs ? `, ${number(pairs)} with their old vector` : "";
    this.count.textContent = `${number(reencoded)} of ${number(all)} re-embedded${wide}${both}`;
    this.words.textContent = this.said();
    this.missing.hidden = missing === 0;
    const seen = Math.max(reencoded, pairs);
    const ready = all > 0 && seen > 0 && (missing === 0 || seen >= LEAST);
    this.buttons.preview.disabled = !this.may || this.running || !ready;
    this.buttons.finish.disabled = !this.may || this.running || !ready;
    this.buttons.abandon.disabled = !this.may || this.running;
  }

  /** Say what is missing, and what that means for the end. */
  said() {
    const { n_vectors: all, reencoded, missing, pairs = 0 } = this.status;
    if (!all) return "All vectors were removed: abandon the migration, or add vectors first.";
    if (!missing) return "All vectors are re-embedded.";
    const some = counted(missing, "vector");
    if (Math.max(reencoded, pairs) >= LEAST) {
      const are = missing === 1 ? "is" : "are";
      return `${some} ${are} missing, and would be translated from the old encoder by a linear map. The preview measures what that loses.`;
    }
    return `${some} missing. Send vectors of the other encoder to POST …/migration/vectors: all of them, or at least ${LEAST} from which to translate the others.`;
  }

  /** Show some vectors that are missing, with what is known of them. */
  async open() {
    if (!this.missing.open) return;
    try {
      const { vectors } = await this.context.get("migration/missing", { limit: SHOWN });
      this.list.replaceChildren(
        ...vectors.map(({ vector, id }) =>
          el(
            "li",
            { class: "figures" },
            `vector ${number(vector)}`,
            id !== null && el("span", { class: "quiet" }, " ", foreign(id, 60)),
          )
        ),
      );
      const more = this.status.missing - vectors.length;
      if (more > 0) this.list.append(el("li", { class: "quiet" }, `and ${number(more)} more`));
    } catch (error) {
      this.context.report(error);
    }
  }

  async finish() {
    const { model, missing } = this.status;
    const translated = missing ? ` ${counted(missing, "vector")} will be translated.` : "";
    const goes = await confirmed(
      `Go on with ${model === null ? "the other encoder" : short(model)}?`,
      "From then on the namespace takes vectors of that encoder alone." + translated +
        " Undo takes the change back; what was re-embedded is dropped either way.",
      "Finish",
      "Not yet",
    );
    if (goes) await this.end({ apply: true });
  }

  async abandon() {
    const goes = await confirmed(
      "Abandon the migration?",
      `${counted(this.status.reencoded, "vector")} of the other encoder will be dropped. ` +
        "Nothing else changes.",
      "Abandon it",
    );
    if (!goes) return;
    try {
      const { reencoded } = await this.context.post("migration/abandon", {});
      this.draw(null);
      await this.gone();
      this.context.say(`Abandoned: ${counted(reencoded, "vector")} dropped, nothing else changed.`);
    } catch (error) {
      this.context.report(error);
      await this.load().catch(() => {});
    }
  }
}

/** Return facts about translation for the report of a job: pairs of title and value. */
export function facts({ status, loss }) {
  const told = [["Re-embedded", `${number(status.reencoded)} of ${number(status.n_vectors)}`]];
  if (loss) {
    told.push(["Translated", number(status.missing)]);
    told.push(["Cosine of translations", figure(loss.cosine)]);
    told.push(["Answers changed by it", `${(100 * loss.changed).toFixed(1)} %`]);
  }
  return told;
}

/** Return a warning if translation loses much; null otherwise. */
export function warning({ loss }) {
  if (!loss || loss.changed <= MANY) return null;
  return el(
    "p",
    { class: "note warn" },
    "Translation changes more than a quarter of the answers. Re-embed more vectors before you finish.",
  );
}

/** Whether one encoder is above its threshold where the other is below. */
export const differ = (before, after) => (before < 0) !== (after < 0);

const marginOf = (each) => each.similarity - each.threshold;

/** Return disagreements: first those where one encoder is above its threshold and one below. */
export function ordered(found) {
  const some = (wanted) => found.filter((each) => differ(each.before, marginOf(each)) === wanted);
  return [...some(true), ...some(false)];
}

/**
 * Return a list of sets of vectors that change, as both encoders see them.
 * @param {import("./app.js").Context} context
 * @param {object[]} found
 * @param {Map<number, string|null>} names
 * @param {Map<number, any>} payloads  of the most central vectors, by number
 * @param {boolean} applied
 */
export function disagreements(context, found, names, payloads, applied) {
  if (!found.length) return null;
  const link = el("a", { href: context.link("review") }, "Answer them in Review");
  return el(
    "section",
    { class: "disagreements", "aria-label": "As both encoders see it" },
    el(
      "div",
      { class: "card-head" },
      el("h3", {}, "As both encoders see it"),
      applied ? link : el("span", { class: "quiet small-text" }, "Review asks about them after it"),
    ),
    el(
      "p",
      { class: "quiet small-text" },
      "Two sets of vectors each, and by how much their similarity is above the threshold of either encoder, or below it.",
    ),
    el(
      "ul",
      {},
      ...found.slice(0, SHOWN).map((each) => row(context, each, names, payloads)),
    ),
    found.length > SHOWN &&
      el("p", { class: "quiet" }, `And ${number(found.length - SHOWN)} smaller ones.`),
  );
}

function row(context, each, names, payloads) {
  const [title, words] = KINDS[each.kind];
  const [ours, theirs] = each.vectors.map((vector, place) =>
    el(
      "span",
      { class: "disagreement-side" },
      el("strong", { class: "figures" }, counted(each.sizes[place], "vector")),
      el("span", { class: "quiet line" }, sample(vector, payloads)),
    )
  );
  const cluster = each.kind === "joined" ? each.clusters[1] : each.clusters[0];
  return el(
    "li",
    { data: { kind: each.kind } },
    el(
      "span",
      { class: "tags" },
      el("span", { class: "tag", title: words }, title),
      differ(each.before, marginOf(each)) && el("span", { class: "tag warn" }, "they disagree"),
    ),
    el(
      "div",
      { class: "disagreement-sides" },
      ours,
      el("span", { class: "quiet" }, "and"),
      theirs,
      el("span", { class: "quiet" }, "of", " ", chip(context, cluster, names.get(cluster) ?? null)),
    ),
    el(
      "dl",
      { class: "views" },
      ...[["old", each.before], ["new", marginOf(each)]].map(([which, margin]) =>
        el(
          "div",
          {},
          el("dt", { class: "quiet" }, `${which} encoder`),
          el("dd", {}, marginBar(margin)),
        )
      ),
    ),
  );
}

function sample(vector, payloads) {
  const line = payloadLine(payloads.get(vector));
  return `such as ${line || `vector ${number(vector)}`}`;
}
