// The page of a chat: composer, log, dialogs and keys. What is shown comes by stream.js; forms are
// posted by htmx; everything here also works, plainer, without this script.

import { Live, Page, randomId, timesFor } from "./stream.js";

const { body } = document;
const chat = body.dataset.chat ?? "";
const find = (selector, root = document) => root.querySelector(selector);

// ---- Drafts: what was typed and not sent -----------------------------------------------------

const DRAFTS = 40; // kept in this browser
const LONGEST = 200_000; // characters
const draftKey = (id) => `harness-web:draft:${id || "new"}`;

function readDraft(id) {
  try {
    return JSON.parse(localStorage.getItem(draftKey(id)));
  } catch {
    return null;
  }
}

function writeDraft(id, text) {
  try {
    if (text === null) return localStorage.removeItem(draftKey(id));
    if (text.length > LONGEST) return;
    localStorage.setItem(draftKey(id), JSON.stringify({ text, at: Date.now() }));
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(draftKey("x").slice(0, -1)));
    if (keys.length <= DRAFTS) return;
    const age = (key) => JSON.parse(localStorage.getItem(key)).at ?? 0;
    keys.sort((a, b) => age(a) - age(b));
    localStorage.removeItem(keys[0]);
  } catch {
    // Storage is full or switched off; the server has a copy.
  }
}

// ---- Composer --------------------------------------------------------------------------------

class Composer {
  constructor(form) {
    this.form = form;
    this.box = find("textarea[name=text]", form);
    this.requestId = find("input[name=request_id]", form);
    this.saved = this.box.defaultValue; // what the server has
    this.composed = -Infinity; // when an IME composition ended, on the clock of events
    this.restore();
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
    writeDraft(chat, this.box.value || this.saved ? this.box.value : null);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.saveOnServer(), 800);
  }

  /** Keeps a copy on the server, so that another browser has it too. */
  async saveOnServer(leaving = false) {
    clearTimeout(this.saving);
    const { value: text, dataset } = this.box;
    if (!dataset.draft || text === this.saved || text.length > LONGEST) return;
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

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    // The Enter that ends a composition: Safari sends it after compositionend, as key code 229.
    const composing = event.isComposing || event.keyCode === 229;
    if (composing || event.timeStamp - this.composed < 40) return;
    event.preventDefault();
    if (this.box.value.trim()) this.form.requestSubmit();
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
    this.box.value = this.box.value.trim() ? `${text}\n\n${this.box.value}` : text;
    this.typed();
    this.box.focus();
  }

  /** The height of the text, where CSS can't do it (field-sizing). */
  fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, innerHeight / 2)}px`;
  }
}

// ---- The log follows the text while the reader is at its end ---------------------------------

class Log {
  constructor(scroller) {
    this.scroller = scroller;
    this.jump = find("[data-jump]");
    this.following = true;
    this.top = 0;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // An opened <details> stays under the eyes of who opened it.
    scroller.addEventListener("click", (event) => event.target.closest("summary") && this.follow(false));
    this.jump?.addEventListener("click", () => {
      this.follow(true);
      this.scroller.focus({ preventScroll: true });
    });
    // Called after layout and before painting, so following costs no layout of its own.
    const sizes = new ResizeObserver(() => this.settle());
    for (const element of [scroller, ...scroller.children]) sizes.observe(element);
    this.settle();
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

// ---- One banner says what is wrong with the connection, or that the chat is gone -------------

class Banner {
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
  }

  gone({ code, message, hint }) {
    this.show(code === "restarted" ? "restarted" : "gone", { message, hint });
    this.final = true;
  }
}

// ---- The title of the tab, and what follows from the parts -----------------------------------

class Surroundings {
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
    const { state, busy } = status.dataset;
    const log = find("[data-log]");
    if (log && log.getAttribute("aria-busy") !== busy) log.setAttribute("aria-busy", busy);
    if (this.state === "working" && state !== "working" && document.hidden) this.finished = true;
    if (state === "working") this.finished = false;
    this.state = state;
    const mark = state === "asking" ? "Needs you: " : this.finished ? "✓ " : "";
    const name = find("[data-slot=head] h1")?.textContent.trim();
    const title = mark + (name ? `${name} · ` : "") + this.suffix;
    if (document.title !== title) document.title = title;
  }
}

// ---- Setting up ------------------------------------------------------------------------------

const composer = find("[data-composer]") && new Composer(find("[data-composer]"));
const log = find("[data-log]") && new Log(find("[data-log]"));
const banner = new Banner(find("[data-banner]"));
const surroundings = new Surroundings();
const dialog = find("[data-dialog]");

const page = new Page(body.dataset.epoch, Number(body.dataset.version), (element) => {
  if (element.matches("[hx-post]") || find("[hx-post]", element)) window.htmx?.process(element);
});
const live = new Live(page, [chat, "chats"], timesFor(Number(body.dataset.beatSeconds ?? 5)), {
  changed: () => surroundings.update(),
  gone: (entry) => entry.name === chat && banner.gone(entry),
  state: (state) => banner.connection(state),
});

// ---- Forms -----------------------------------------------------------------------------------

const underway = new WeakSet(); // forms whose request has no answer yet

document.addEventListener(
  "submit",
  (event) => {
    if (underway.has(event.target)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (event.target === composer?.form) {
      composer.sending();
    }
  },
  true,
);

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  const form = detail.elt;
  underway.add(form);
  // On the form itself: a frame may take it off the page before its answer is here.
  form.addEventListener("htmx:afterRequest", function done(event) {
    if (event.target !== form) return;
    form.removeEventListener("htmx:afterRequest", done);
    underway.delete(form);
    answered(form, event.detail);
  });
});

function answered(form, { xhr }) {
  if (!xhr.status) return unreachable(form);
  if (xhr.status >= 400) return;
  const next = /^\/chats\/([^/?#]+)$/.exec(xhr.getResponseHeader("HX-Redirect") ?? "")?.[1];
  if (form === composer?.form) {
    composer.sent(next);
    log?.follow(true);
  }
  if (dialog?.contains(form)) {
    dialog.close();
    if (form.action.endsWith(`/chats/${chat}/delete`) && chat && !next) location.assign("/");
  }
  if (!form.isConnected) tellAnyway(xhr.getResponseHeader("HX-Trigger"));
}

/** htmx tells a form that is off the page of the server's events; nobody else hears them. */
function tellAnyway(header) {
  if (!header) return;
  const named = (name) => [name.trim(), null];
  const events = header.startsWith("{") ? Object.entries(JSON.parse(header)) : header.split(",").map(named);
  for (const [name, detail] of events) body.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
}

function unreachable(form) {
  const line = document.createElement("p");
  line.className = "error";
  line.setAttribute("role", "alert");
  const hint = document.createElement("small");
  hint.textContent = "Nothing was lost. Try again when the connection is back.";
  line.append("The server can’t be reached. ", hint);
  find("[data-error]", form)?.replaceChildren(line);
}

document.addEventListener("changed", () => live.catchUp());
document.addEventListener("taken-back", ({ detail }) => detail?.text && composer?.put(detail.text));

// ---- Clicks ----------------------------------------------------------------------------------

async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain http beyond loopback has no clipboard: select the text and copy the old way.
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}

async function copyFrom(button) {
  const source = button.closest(".code, [data-code], figure, div")?.querySelector("pre");
  if (!source) return;
  const done = await copy(source.textContent, source);
  const label = (button.dataset.label ??= button.textContent);
  button.textContent = done ? "Copied" : "Press Ctrl+C";
  setTimeout(() => (button.textContent = label), 1500);
}

function askToDelete(link) {
  const form = find("form", dialog);
  const address = link.getAttribute("href");
  form.action = address;
  form.setAttribute("hx-post", address);
  window.htmx?.process(form);
  find("[data-error]", form)?.replaceChildren();
  find("[data-dialog-title]", dialog).textContent = link.dataset.title;
  dialog.showModal();
}

function chooseTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  document.cookie = `theme=${name}; path=/; max-age=31536000; samesite=lax`;
  for (const each of document.querySelectorAll("[data-theme-choice]")) {
    each.setAttribute("aria-pressed", String(each.dataset.themeChoice === name));
  }
}

document.addEventListener("click", (event) => {
  const on = (selector) => event.target.closest?.(selector);
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  let found;
  if ((found = on("[data-copy]"))) {
    copyFrom(found);
  } else if (plain && dialog && (found = on("a[data-confirm]"))) {
    event.preventDefault();
    askToDelete(found);
  } else if (on("[data-dialog-no]") || event.target === dialog) {
    dialog.close();
  } else if ((found = on("[data-theme-choice]"))) {
    chooseTheme(found.dataset.themeChoice);
  } else if (on("[data-retry]")) {
    live.retry();
  } else if (on("[data-take-draft]") && composer?.box.value) {
    writeDraft("", composer.box.value);
  }
});

// ---- Keys ------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  const { target } = event;
  const typing = target.isContentEditable || target.matches?.("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    location.assign("/");
  } else if (event.key === "/" && !typing && !dialog?.open && composer && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    composer.box.focus();
  }
});

const command = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl+";
for (const link of document.querySelectorAll("a.new")) link.title = `New chat (${command}Shift+O)`;
if (composer) composer.box.title = "Enter sends, Shift+Enter breaks the line; press / to write here";
find("[data-theme-switch]")?.removeAttribute("hidden");
