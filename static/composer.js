// The message box.

import { chat, find } from "./dom.js";
import { LONGEST, readDraft, writeDraft } from "./drafts.js";
import { randomId } from "./random.js";

export class Composer {
  constructor(form) {
    this.form = form;
    this.box = find("textarea[name=text]", form);
    this.requestId = find("input[name=request_id]", form);
    this.draft = find("input[name=draft]", form); // not in a chat that is new
    this.saved = this.box.defaultValue; // what the server has
    this.composed = -Infinity; // when an IME composition ended, on the clock of events
    this.tooLong = false; // more than a message may have
    this.taken = new Set(); // chips of what went with messages; they may still be shown
    this.spent = false; // a message went, and nothing was typed since
    this.follows = false; // another message is to go after the one under way
    this.next = ""; // the chat that the page is being left for
    this.restore();
    this.tellLength();
    this.box.addEventListener("input", () => {
      this.spent = false;
      this.typed();
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("compositionend", (event) => (this.composed = event.timeStamp));
    document.addEventListener("attachments-sent", ({ detail }) => this.take(detail.ids));
    addEventListener("pagehide", () => this.saveOnServer(true));
    addEventListener("pageshow", ({ persisted }) => persisted && this.next && this.comeBack());
    this.fit();
  }

  restore() {
    if (this.box.value !== this.box.defaultValue) return this.typed(); // typed before we came
    const draft = readDraft(chat);
    // Where the server had something else then, it was changed by another browser since, or sent.
    if (draft && (draft.saved ?? this.saved) === this.saved) this.box.value = draft.text;
    if (document.activeElement === this.box) this.box.setSelectionRange(LONGEST, LONGEST);
  }

  typed() {
    this.fit();
    this.tellLength();
    writeDraft(this.next || chat, this.box.value || this.saved ? this.box.value : null, this.saved);
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
      writeDraft(chat, this.box.value === text ? null : this.box.value, text);
      if (this.spent) this.saveOnServer(); // it was on its way when the message went
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

  get chips() {
    return [...document.querySelectorAll(".attachment")].map((chip) => chip.id);
  }

  take(ids) {
    for (const id of ids ?? []) this.taken.add(id);
  }

  /** Whether something goes with the message, or is on its way to: then it needs no words. */
  get hasFiles() {
    return this.chips.some((id) => !this.taken.has(id)) || find(".upload:not(.told)") !== null;
  }

  get isEmpty() {
    return !this.box.value.trim() && !this.hasFiles;
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey || this.composing(event)) return;
    event.preventDefault();
    // A key that is held down means it once.
    if (!event.repeat && !this.isEmpty) this.form.requestSubmit();
  }

  /** Whether a message may go now; `underway` says that one has no answer yet. Pressed twice, at any
   * speed, it goes once. Another one that was typed meanwhile goes when the first was taken. */
  mayGo(underway) {
    if (this.next) location.assign(`/chats/${this.next}`);
    else if (underway) this.follows = this.box.value.trim() !== this.tried.trim();
    else return !(this.spent && this.isEmpty);
    return false;
  }

  /** Before a request: a text that is not the one that was tried before gets an id of its own. */
  sending() {
    clearTimeout(this.saving);
    const again = this.tried === this.box.value;
    if (this.tried !== undefined && !again) this.requestId.value = randomId();
    // What the server may have taken without our hearing of it is not counted twice.
    if (!again) this.along = undefined;
    this.along ??= { ids: this.chips, rows: document.querySelectorAll(".upload[data-taken]") };
    this.tried = this.box.value;
    // What the server has may be an earlier state of this, or what another tab typed since.
    if (this.draft) this.draft.value = this.saved === this.tried ? "" : this.saved;
  }

  /** After a request that did not succeed. `heard` says that the server took nothing. */
  notSent(heard) {
    this.follows = false;
    if (heard) this.along = undefined;
  }

  /** After a request that succeeded. `next` is the chat that it leads to, if another. */
  sent(next) {
    if (next) return this.leaveFor(next);
    const rest = this.box.value === this.tried ? "" : this.box.value;
    this.take(this.along?.ids);
    for (const row of this.along?.rows ?? []) row.remove();
    this.renew();
    if (!rest) this.box.value = "";
    this.spent = !rest;
    this.typed();
    if (!rest && !this.saved) writeDraft(chat, null);
    this.saveOnServer();
    // Once htmx is done with the first one.
    if (this.follows && rest.trim()) queueMicrotask(() => this.form.requestSubmit());
    this.follows = false;
  }

  renew() {
    this.requestId.value = randomId();
    this.tried = this.along = undefined;
  }

  /** The page goes to a chat that was made: nothing is sent from here any more, and what else was
   * typed goes along. */
  leaveFor(next) {
    this.next = next;
    writeDraft(chat, null);
    if (this.box.value !== this.tried && this.box.value) writeDraft(next, this.box.value);
  }

  /** The page is shown again as it was left: what went is not there to go once more. */
  comeBack() {
    this.next = "";
    this.box.value = "";
    this.renew();
    this.typed();
  }

  /** Puts text before what is there; `kept` says that the server has done so with its draft. */
  put(text, kept = false) {
    const before = (there) => [text, there].filter((part) => part.trim()).join("\n\n");
    if (kept) this.saved = before(this.saved);
    if (text) this.box.value = before(this.box.value);
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
