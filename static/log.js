// The log follows the text while the reader is at its end.

import { find } from "./dom.js";

export class Log {
  constructor(scroller) {
    this.scroller = scroller;
    this.jump = find("[data-jump]");
    this.following = true;
    this.top = 0;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // An opened <details> stays under the eyes of who opened it.
    scroller.addEventListener("click", (event) => this.opening(event.target.closest("summary")));
    this.jump?.addEventListener("click", () => {
      this.follow(true);
      this.scroller.focus({ preventScroll: true });
    });
    // Called after layout and before painting, so following costs no layout of its own.
    const sizes = new ResizeObserver(() => this.settle());
    for (const element of [scroller, ...scroller.children]) sizes.observe(element);
    this.settle();
  }

  /** A summary is clicked: a form of a question that it opens is brought into view. */
  opening(summary) {
    if (!summary) return;
    this.follow(false);
    const details = summary.closest(".ask-card details[data-keep]");
    details?.addEventListener("toggle", () => details.open && reveal(details), { once: true });
  }

  get below() {
    return this.scroller.scrollHeight - this.scroller.clientHeight - this.scroller.scrollTop;
  }

  scrolled() {
    const { scrollTop } = this.scroller;
    const { below } = this;
    if (scrollTop < this.top - 1 && below > 2) this.following = false;
    else if (below <= 40) this.following = true;
    this.top = scrollTop;
    this.show();
  }

  settle() {
    if (this.following && this.below > 0) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
    this.show();
  }

  follow(following) {
    this.following = following;
    if (following) this.settle();
  }

  show() {
    if (this.jump) this.jump.hidden = this.following || this.below <= 40;
  }
}

function reveal(details) {
  details.lastElementChild.scrollIntoView({ block: "nearest" });
  find("textarea, input", details)?.focus({ preventScroll: true });
}
