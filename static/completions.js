// Suggestions of a server for what is typed into a field of its templates and prompts.

import { find } from "./dom.js";

const PAUSE = 150; // milliseconds without a key before the server is asked

const asked = new WeakMap(); // field -> its newest request

async function suggest(field) {
  const { form } = field;
  asked.get(field)?.abort();
  const request = new AbortController();
  asked.set(field, request);
  const body = new URLSearchParams(new FormData(form));
  body.set("argument", field.dataset.complete);
  try {
    const { completions } = form.dataset;
    const answer = await fetch(completions, { method: "POST", body, signal: request.signal });
    if (!answer.ok) return;
    const { values } = await answer.json();
    if (asked.get(field) !== request || !field.isConnected) return;
    const options = values.map((value) => Object.assign(document.createElement("option"), { value }));
    find(`#${CSS.escape(field.getAttribute("list"))}`)?.replaceChildren(...options);
  } catch {
    // Nothing is suggested; the field takes any text.
  }
}

export function offerCompletions() {
  let waiting;
  const soon = ({ target }) => {
    if (!target.dataset || !("complete" in target.dataset)) return;
    clearTimeout(waiting);
    waiting = setTimeout(suggest, PAUSE, target);
  };
  document.addEventListener("input", soon);
  document.addEventListener("focusin", soon);
}
