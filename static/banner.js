// One banner says what is wrong with the connection, or that the chat is gone.

import { find } from "./dom.js";

export class Banner {
  constructor(element) {
    this.element = element;
    this.final = false;
  }

  show(name, { message, hint } = {}) {
    const template = find(`template[data-template="${name}"]`);
    if (!this.element || !template || this.final) return;
    const content = template.content.cloneNode(true);
    if (message) find("[data-message]", content).textContent = message;
    if (hint) find("[data-hint]", content).textContent = hint;
    this.element.replaceChildren(content);
    this.element.hidden = false;
  }

  connection(state) {
    if (state !== "live") this.show(state);
    else if (this.element && !this.final) this.element.hidden = true;
    if (state === "stranger") this.final = true;
  }

  gone({ code, message, hint }) {
    this.show(code === "restarted" ? "restarted" : "gone", { message, hint });
    this.final = true;
  }
}
