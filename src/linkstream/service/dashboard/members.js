/** The vectors of a cluster with what was said with them, newest first, page by page. */

import { button, el, number } from "/page/elements.js";
import { card, payload } from "/page/parts.js";

const PAGE = 24;
const MARKS = {
  central: ["accent", "among the most central"],
  doubtful: ["warn", "among the most doubtful"],
};

/** @returns {Promise<HTMLElement>} */
export async function members(context, { id, exemplars }) {
  const list = el("ul", { class: "members" });
  const again = () => load().catch((error) => { more.disabled = false; context.report(error); });
  const more = button("Show older ones", again, { hidden: true });
  let before;
  const load = async () => {
    more.disabled = true;
    const { vectors, next } = await context.get(`clusters/${id}/vectors`, { limit: PAGE, before });
    list.append(...vectors.map((vector) => member(context, vector, exemplars)));
    before = next;
    more.hidden = next === null;
    more.disabled = false;
  };
  const order = el("span", { class: "quiet small-text" }, "newest first");
  const box = card("Vectors", { more: order }, list, el("div", { class: "buttons centred" }, more));
  try {
    await load();
  } catch (error) {
    if (error.kind !== "not-tracked") throw error;
    list.replaceWith(el("p", { class: "quiet" },
      "This namespace does not keep track of vectors: it knows subclusters only."));
  }
  return box;
}

function member(context, { vector, payload: said }, exemplars) {
  const marks = Object.entries(MARKS).filter(([kind]) => exemplars?.[kind]?.includes(vector));
  return el("li", { class: "member" },
    el("span", { class: "quiet figures number" }, number(vector)),
    payload(context, said),
    el("span", { class: "tags" }, ...marks.map(([kind, [tone, title]]) =>
      el("span", { class: `tag ${tone}`, title }, kind))));
}
