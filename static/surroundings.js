// The title of the tab, and what else follows from the parts.

import { chat, find } from "./dom.js";

export class Surroundings {
  constructor() {
    this.suffix = document.title.split(" · ").at(-1);
    this.finished = false;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.finished = false;
      this.update();
    });
    this.update();
  }

  update() {
    const row = chat && find(`[data-chat-id="${CSS.escape(chat)}"] > a:not([aria-current])`);
    if (row) row.setAttribute("aria-current", "page");
    const status = chat && find("[data-slot=status] [data-state]");
    if (!status) return;
    // A chat that is gone does nothing any more, whatever it did when it was last heard of.
    const gone = "gone" in document.body.dataset;
    const { state, busy } = gone ? { state: "gone", busy: "false" } : status.dataset;
    const log = find("[data-log]");
    if (log && log.getAttribute("aria-busy") !== busy) log.setAttribute("aria-busy", busy);
    if (this.state === "working" && state !== "working" && !gone && document.hidden) this.finished = true;
    if (state === "working") this.finished = false;
    this.state = state;
    const mark = state === "asking" ? "Needs you: " : this.finished ? "✓ " : "";
    const name = find("[data-slot=head] h1")?.textContent.trim();
    const title = mark + (name ? `${name} · ` : "") + this.suffix;
    if (document.title !== title) document.title = title;
  }
}
