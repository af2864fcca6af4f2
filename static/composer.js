// The message box.

import { chat, find } from "./dom.js";
import { LONGEST, readDraft, writeDraft } from "./drafts.js";
import { randomId } from "./random.js";

export class Composer {
  constructor(form) {
    this.form = form;
    this.box = find("textarea[name=text]", form);
    this.requestId = find("input[name=request_id]", form);
    this.saved = this.box.defaultValue; // what the server has
    this.composed = -Infinity; // when an IME composition ended, on the clock of events
    this.tooLong = false; // more than a message may have
    this.restore();
    this.tellLength();
    this.box.addEventListener("input", () => this.typed());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("compositionend", (event) => (this.composed = event.timeStamp));
    addEventListener("pagehide", () => this.saveOnServer(true));
    this.fit();
  }

  restore() {
    if (this.box.value !== this.box.defaultValue) return this.typed(); // typed before we came
    const draft = readDraft(chat);
    const savedAt = Number(this.box.dataset.draftAt ?? 0) * 1000;
    if (draft && draft.at >= savedAt && draft.text !== this.box.value) this.box.value = draft.text;
    if (document.activeElement === this.box) this.box.setSelectionRange(LONGEST, LONGEST);
  }

  typed() {
    this.fit();
    this.tellLength();
    writeDraft(chat, this.box.value || this.saved ? this.box.value : null);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.saveOnServer(), 800);
  }

  /** Keeps a copy on the server, so that another browser has it too. */
  async saveOnServer(leaving = false) {
    clearTimeout(this.saving);
    const { value: text, dataset } = this.box;
    if (!dataset.draft || text === this.saved || text.length > dataset.mostDraft) return;
    // A request that outlives the page may carry 64 KB; a longer text stays in this browser.
    const keepalive = leaving && text.length < 15_000;
    try {
      const answer = await fetch(dataset.draft, {
        method: "POST",
        keepalive,
        body: new URLSearchParams({ text }),
      });
      if (!answer.ok) return;
      this.saved = text;
      if (!text && !this.box.value) writeDraft(chat, null);
    } catch {
      // Not reachable: this browser keeps it, and the next change tries again.
    }
  }

  /** Says what a message takes while there is more of it: then it is not even sent. */
  tellLength() {
    const { value, dataset } = this.box;
    const most = Number(dataset.most ?? Infinity);
    // The server counts whole characters; of a text that long it makes no difference.
    const length = value.length > most && value.length <= 2 * most ? [...value].length : value.length;
    const line = find("[data-length]", this.form);
    this.tooLong = length > most;
    this.box.setAttribute("aria-invalid", String(this.tooLong));
    if (!line || (!this.tooLong && line.hidden)) return;
    line.hidden = !this.tooLong;
    if (!this.tooLong) return line.replaceChildren();
    const [has, takes] = [length, most].map((number) => number.toLocaleString("en"));
    const small = document.createElement("small");
    const kept = dataset.draft && length <= dataset.mostDraft;
    small.textContent = `Shorten it, or put it into a file and attach that. ${kept ? "What you typed is kept." : "So much is kept in this tab alone."}`;
    line.replaceChildren(`This has ${has} characters; a message takes at most ${takes}. `, small);
  }

  /** The chat is gone from the server: what is typed stays in this browser. */
  keepHere() {
    clearTimeout(this.saving);
    delete this.box.dataset.draft;
  }

  /** Whether a key belongs to an input method. Safari sends the Enter that ends a composition after
   * compositionend, as key code 229. */
  composing(event) {
    return event.isComposing || event.keyCode === 229 || event.timeStamp - this.composed < 40;
  }

  /** Whether something goes with the message, or is on its way to: then it needs no words. */
  get hasFiles() {
    return find(".attachment, .upload:not(.told)") !== null;
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey || this.composing(event)) return;
    event.preventDefault();
    if (this.box.value.trim() || this.hasFiles) this.form.requestSubmit();
  }

  /** Before a request: a text that is not the one that was tried before gets an id of its own. */
  sending() {
    clearTimeout(this.saving);
    if (this.tried !== undefined && this.tried !== this.box.value) this.requestId.value = randomId();
    this.tried = this.box.value;
  }

  /** After a request that succeeded. `next` is the chat that it leads to, if another. */
  sent(next) {
    const rest = this.box.value === this.tried ? "" : this.box.value;
    this.requestId.value = randomId();
    this.tried = undefined;
    if (next) {
      writeDraft(chat, null);
      if (rest) writeDraft(next, rest);
      return;
    }
    if (!rest) this.box.value = "";
    this.typed();
    if (!rest && !this.saved) writeDraft(chat, null);
    this.saveOnServer();
  }

  /** Puts text before what is there. */
  put(text) {
    if (text) this.box.value = this.box.value.trim() ? `${text}\n\n${this.box.value}` : text;
    this.typed();
    this.box.focus();
  }

  /** A command was chosen: its name is no message, and no draft. */
  clear() {
    this.box.value = "";
    this.typed();
  }

  /** The height of the text, where CSS can't do it (field-sizing). */
  fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, innerHeight / 2)}px`;
  }
}
