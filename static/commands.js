// What the message box offers after a slash: a list that is narrowed by typing. The server renders
// it; every name in it is a stranger's and is only ever compared and shown as text.

import { chat, find, SPACE } from "./dom.js";

const chosenKey = (id) => `${SPACE}:command:${id}`;
const LONGEST_COMMAND = 200; // characters typed after which nobody means a command

export class Commands {
  constructor(composer) {
    this.composer = composer;
    this.box = composer.box;
    this.place = find("[data-command-place]");
    this.form = find("[data-command-use]");
    this.active = null; // the option that Enter would choose
    this.dismissed = false; // closed by the person, or chosen
    if (!this.form) return;
    this.box.addEventListener("input", () => this.typed());
    this.box.addEventListener("blur", () => this.close());
    // Before the composer, which sends on Enter.
    this.box.addEventListener("keydown", (event) => this.key(event), true);
    document.addEventListener("mousedown", (event) => this.option(event) && event.preventDefault());
    document.addEventListener("click", (event) => this.clicked(event));
    this.place.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.filled) this.cancel();
    });
    document.addEventListener("htmx:afterSwap", ({ detail }) => {
      if (detail.target === this.place) this.answered();
    });
    document.addEventListener("htmx:afterRequest", ({ detail }) => {
      if (detail.elt !== this.form) return;
      const next = /^\/chats\/([^/?#]+)$/.exec(detail.xhr.getResponseHeader("HX-Redirect") ?? "")?.[1];
      if (next) this.takeAlong(next);
      // Refused: it is there once more, to be mended or tried again.
      else if (!detail.successful && !this.box.value) this.composer.put(this.command);
    });
    // After htmx, which is ready then, too.
    document.addEventListener("DOMContentLoaded", () => this.goOn());
  }

  /** A prompt that was chosen before there was a chat is done in the one that was made for it. */
  takeAlong(next) {
    try {
      sessionStorage.setItem(chosenKey(next), find("[name=command]", this.form).value);
    } catch {
      // Storage is switched off: it can be chosen once more there.
    }
  }

  /** Not by the address: a link to this page must not choose anything. */
  goOn() {
    try {
      const command = sessionStorage.getItem(chosenKey(chat));
      sessionStorage.removeItem(chosenKey(chat));
      if (command) this.use(command);
    } catch {
      // As above.
    }
  }

  get list() {
    return find(".commands[data-part]");
  }

  /** Whether something was typed into the form of a command. */
  get filled() {
    return [...this.place.querySelectorAll("input:not([type=hidden])")].some((field) => field.value);
  }

  option(event) {
    return event.target.closest?.("[data-command]");
  }

  typed() {
    const { value } = this.box;
    if (!value.startsWith("/") || value.length === 1) this.dismissed = false;
    this.refresh();
  }

  /** Shows what fits what is typed; called again when the list has changed. */
  refresh() {
    if (!this.form) return;
    const words = this.wanted();
    const fitting = words === null ? [] : this.fitting(words);
    if (!fitting.length) return this.close();
    for (const option of this.list.children) option.hidden = !fitting.includes(option);
    this.list.hidden = false;
    const named = fitting.find((option) => nameOf(option).startsWith(words));
    this.activate(fitting.includes(this.active) && this.words === words ? this.active : named ?? fitting[0]);
    this.words = words;
  }

  /** The words after the slash, null where no command is being typed. */
  wanted() {
    const { value } = this.box;
    const typing = document.activeElement === this.box && !this.dismissed;
    if (!typing || !value.startsWith("/") || value.includes("\n")) return null;
    return value.length <= LONGEST_COMMAND ? value.slice(1).toLowerCase() : null;
  }

  fitting(words) {
    const fits = (option) => {
      const title = find("[data-title]", option)?.textContent.toLowerCase() ?? "";
      return nameOf(option).includes(words) || (words && title.startsWith(words));
    };
    return [...(this.list?.children ?? [])].filter(fits);
  }

  activate(option) {
    this.active?.setAttribute("aria-selected", "false");
    this.active = option;
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    // Only while the list is open: at other times the box is a plain one.
    const state = { role: "combobox", "aria-autocomplete": "list", "aria-haspopup": "listbox" };
    const shown = { "aria-expanded": "true", "aria-controls": this.list.id, "aria-activedescendant": option.id };
    for (const [name, value] of Object.entries({ ...state, ...shown })) this.box.setAttribute(name, value);
  }

  close() {
    if (!this.active) return;
    if (this.list) this.list.hidden = true;
    this.active.setAttribute("aria-selected", "false");
    this.active = null;
    const names = ["role", "aria-autocomplete", "aria-haspopup", "aria-expanded", "aria-controls"];
    for (const name of [...names, "aria-activedescendant"]) this.box.removeAttribute(name);
  }

  key(event) {
    if (!this.active || this.composer.composing(event)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const shown = [...this.list.children].filter((option) => !option.hidden);
    const at = shown.indexOf(this.active);
    switch (event.key) {
      case "ArrowDown":
        this.activate(shown[(at + 1) % shown.length]);
        break;
      case "ArrowUp":
        this.activate(shown.at(at - 1));
        break;
      case "Enter":
      case "Tab":
        this.choose(this.active);
        break;
      case "Escape":
        this.dismissed = true;
        this.close();
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  clicked(event) {
    const option = this.option(event);
    if (option) this.choose(option);
    else if (event.target.closest?.("[data-command-cancel]")) this.cancel();
  }

  choose(option) {
    // One at a time: what is typed stays until the one before is done.
    if (this.form.classList.contains("htmx-request")) return;
    this.command = this.box.value;
    this.dismissed = true;
    this.close();
    this.composer.clear();
    this.place.replaceChildren();
    this.use(option.dataset.command);
  }

  use(command) {
    find("[name=command]", this.form).value = command;
    this.form.requestSubmit();
  }

  /** The server has sent a form that asks for more, or what the command brought. */
  answered() {
    const brought = find("[data-put]", this.place);
    if (!brought) return find("input:not([type=hidden])", this.place)?.focus();
    brought.remove();
    find("#setup:popover-open")?.hidePopover();
    this.composer.put(brought.value);
    this.dismissed = true;
  }

  cancel() {
    this.place.replaceChildren();
    this.box.focus();
  }

  /** A message was sent: what was said about the last command is over. */
  sent() {
    if (this.place && !find("form", this.place)) this.place.replaceChildren();
  }
}

const nameOf = (option) => find("[data-name]", option).textContent.slice(1).toLowerCase();
