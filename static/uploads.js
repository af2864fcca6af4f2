// Files for the next message: chosen, dropped or pasted, and sent one after another. What a file is
// the server decides, and says so in lines that are shown as they come.

import { chat, find, parsed, person, SPACE } from "./dom.js";
import { isSnapshot, loadSnapshot } from "./snapshots.js";

const toldKey = (id) => `${SPACE}:told:${id || "new"}`;
const GONE = "Not sent: the server can’t be reached. Try the file again.";

export class Uploads {
  /** `shown()` ends when the page shows what the server has taken in. */
  constructor(composer, shown) {
    this.composer = composer;
    this.shown = shown;
    this.input = find("[data-attach]", composer.form);
    this.list = find("[data-uploads]");
    this.zone = find("[data-drop-zone]");
    this.waiting = []; // {file, row}, in the order they came
    this.current = null; // {request, row} of the one that is sent
    this.held = false; // a message waits for its files
    this.made = ""; // the chat that the first file made
    this.tellKept();
    // Its files are sent from here: the form has none.
    this.input.removeAttribute("name");
    this.to = this.input.dataset.attach;
    this.input.addEventListener("change", () => {
      this.add([...this.input.files]);
      this.input.value = "";
      composer.box.focus();
    });
    addEventListener("pageshow", ({ persisted }) => persisted && (this.made = ""));
    composer.box.addEventListener("paste", (event) => this.pasted(event));
    this.list.addEventListener("click", (event) => this.clicked(event));
    for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
      document.addEventListener(name, (event) => this.dragged(event));
    }
  }

  get busy() {
    return this.current !== null || this.waiting.length > 0;
  }

  pasted(event) {
    const { files, types } = event.clipboardData;
    // Office programs put a picture of the text beside it.
    const text = types.includes("text/plain") && (types.includes("text/html") || types.includes("text/rtf"));
    if (!files.length || text) return;
    event.preventDefault();
    this.add([...files]);
  }

  dragged(event) {
    const { type, dataTransfer, target } = event;
    const files = dataTransfer?.types.includes("Files") && !("gone" in document.body.dataset);
    // Some place of the page may take files of its own.
    if (!files || event.defaultPrevented || target.closest?.("[data-takes-files]")) {
      if (type !== "dragleave" || !event.relatedTarget) this.zone.hidden = true;
      return;
    }
    // The pointer has left the window where it goes to no other element.
    if (type !== "dragleave") event.preventDefault();
    else if (event.relatedTarget) return;
    this.zone.hidden = type === "dragleave" || type === "drop";
    if (type !== "drop") return;
    const folders = [...dataTransfer.items].filter((item) => item.webkitGetAsEntry?.()?.isDirectory);
    const names = new Set(folders.map((item) => item.webkitGetAsEntry().name));
    if (names.size) this.tell("Folders can’t be attached.", "Drop the files that are in them.");
    this.dropped([...dataTransfer.files].filter((file) => !names.has(file.name)));
  }

  async dropped(files) {
    if (files.length === 1 && (await isSnapshot(files[0])) && loadSnapshot(files[0])) return;
    this.add(files);
  }

  /** Takes files in line; those that cannot go are told of, and keep no other from going. */
  add(files) {
    if ("gone" in document.body.dataset) return;
    const { mostFiles, mostBytes } = this.input.dataset;
    // The row of a file that was taken in stays a moment longer than it takes its chip to come.
    const there = document.querySelectorAll(".attachment, .upload:not(.told, [data-taken])").length;
    const room = Math.max(0, mostFiles - there);
    const fitting = files.filter((file) => file.size <= mostBytes);
    for (const file of files.filter((each) => each.size > mostBytes).slice(0, mostFiles)) {
      const most = Math.floor(mostBytes / 1_000_000);
      this.tell(`${file.name} is larger than ${most} MB, the most that a file may have.`, "It was not attached.");
    }
    for (const file of fitting.slice(0, room)) this.waiting.push({ file, row: this.show(file) });
    const left = fitting.length - room;
    if (left > 0) {
      const words = left === 1 ? `${fitting.at(-1).name} was left out` : `${left} files were left out`;
      this.tell(`${words}: a message takes at most ${mostFiles} attachments.`, "Send the others with another one.");
    }
    if (!this.current) this.next();
  }

  show(file) {
    const row = find("[data-template=uploading]").content.cloneNode(true).firstElementChild;
    find("[data-name]", row).textContent = file.name;
    this.list.append(row);
    return row;
  }

  /** A line about a file, until it is dismissed or a message is sent. `words` may be elements. */
  tell(words, hint = "") {
    const row = find("[data-template=uploaded]").content.cloneNode(true).firstElementChild;
    if (typeof words === "string") {
      const line = document.createElement("p");
      line.className = "error";
      line.setAttribute("role", "alert");
      const small = document.createElement("small");
      small.textContent = hint;
      line.append(words, " ", small);
      words = [line];
    }
    find("[data-words]", row).append(...words);
    // What keeps a file from going stands first: there may be more lines than are seen.
    const first = find(".error", row) && [...this.list.children].find((each) => !find(".error", each));
    this.list.insertBefore(row, first || null);
    if (first) this.list.scrollTop = 0;
    this.held &&= !find(".error", row);
  }

  next() {
    const turn = this.waiting.shift();
    if (!turn) return this.done();
    const { file, row } = turn;
    const request = new XMLHttpRequest();
    this.current = { request, row };
    find("[data-state]", row).textContent = "is sent";
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      find("progress", row).value = loaded / total;
      if (loaded === total) find("[data-state]", row).textContent = "is taken in";
    });
    request.addEventListener("loadend", () => this.answered(request, file, row));
    request.open("POST", this.made ? `/chats/${this.made}/uploads` : this.to);
    request.setRequestHeader("HX-Request", "true");
    if (person) request.setRequestHeader("Harness-Person", person);
    const form = new FormData();
    const model = find("[name=model]", this.composer.form);
    if (model) form.append("model", model.value);
    form.append("files", file, file.name);
    request.send(form);
  }

  answered(request, file, row) {
    this.current = null;
    this.made ||= /^\/chats\/([^/?#]+)$/.exec(request.getResponseHeader("HX-Redirect") ?? "")?.[1] ?? "";
    if (request.status === 0 && !request.cancelled) {
      this.tell(`${file.name}: ${GONE}`);
    } else if (request.responseText.trim()) {
      // Lines of our own server, made by its templates.
      this.tell(parsed(request.responseText));
    }
    if (request.status === 200) {
      document.body.dispatchEvent(new CustomEvent("changed", { bubbles: true }));
      // Until its chip is here: a message needs no words all the while.
      row.dataset.taken = "";
      this.shown().then(() => row.remove());
    } else {
      row.remove();
    }
    this.next();
  }

  /** All files are there, or were refused: a message that waited for them goes, unless one was. */
  done() {
    if (this.made && !chat) {
      this.composer.leaveFor(this.made);
      this.keepTold();
      location.assign(`/chats/${this.made}`);
    } else if (this.held) {
      this.held = false;
      this.composer.form.requestSubmit();
    }
  }

  /** What was said about files goes along to the chat that they made, and a message that waited. */
  keepTold() {
    const lines = [...this.list.querySelectorAll(".told [data-words]")].map((words) => words.innerHTML);
    try {
      sessionStorage.setItem(toldKey(this.made), JSON.stringify({ lines, goes: this.held }));
    } catch {
      // Storage is switched off: the chips still show what is attached.
    }
  }

  tellKept() {
    try {
      const { lines, goes } = JSON.parse(sessionStorage.getItem(toldKey(chat))) ?? {};
      sessionStorage.removeItem(toldKey(chat));
      for (const line of lines ?? []) this.tell(parsed(line));
      // After htmx, which is ready then, too.
      if (goes) document.addEventListener("DOMContentLoaded", () => this.composer.form.requestSubmit());
    } catch {
      // As above.
    }
  }

  /** Has a message wait for its files; says whether it does. */
  hold() {
    this.held = this.busy;
    return this.busy;
  }

  /** A message was sent: what was said about its files is over. */
  sent() {
    for (const line of this.list.querySelectorAll(".told")) line.remove();
  }

  clicked(event) {
    const row = event.target.closest("[data-upload-end]") && event.target.closest(".upload");
    if (!row) return;
    this.waiting = this.waiting.filter((turn) => turn.row !== row);
    if (this.current?.row === row) {
      this.current.request.cancelled = true;
      this.current.request.abort();
    } else {
      row.remove();
    }
    this.composer.box.focus();
  }
}
