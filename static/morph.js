// Makes an element like a newer one of the same part, and leaves alone what a person did to it.

// Where a person opened or closed a `<details>` its state is theirs; else it follows the server.
const servedOpen = new WeakMap();

export function rememberOpen(root) {
  const all = [...root.querySelectorAll("details")];
  if (root.localName === "details") all.push(root);
  for (const details of all) servedOpen.set(details, details.open);
}

/** Makes `shown` like `next`, and leaves alone what a person did to it. */
export function morph(shown, next, fresh) {
  if (shown.nodeType !== Node.ELEMENT_NODE) return changeText(shown, next.data);
  const settle = fieldState(shown, next);
  morphAttributes(shown, next, fresh);
  const holdsParts = shown.hasAttribute("data-slot");
  // htmx puts a form's error, or what it asked for, there; it stays until the next answer.
  const holdsAnswer = shown.matches("[data-error], [data-answer]") && !next.firstElementChild;
  if (shown.localName === "textarea") {
    if (shown.defaultValue !== next.defaultValue) shown.defaultValue = next.defaultValue;
  } else if (!holdsParts && !holdsAnswer) {
    morphChildren(shown, next, fresh);
  }
  settle?.();
}

/** Notes what a person put into a field; the result is called when the field was changed. */
function fieldState(shown, next) {
  switch (shown.localName) {
    case "details": {
      const untouched = servedOpen.get(shown) === shown.open;
      servedOpen.set(shown, next.open);
      if (untouched && shown.open !== next.open) shown.open = next.open;
      return null;
    }
    case "input":
      if (shown.type === "checkbox" || shown.type === "radio") {
        const { checked } = shown.checked === shown.defaultChecked ? next : shown;
        return () => (shown.checked = checked);
      }
      if (shown.type === "file") return null;
    // falls through
    case "textarea": {
      const { value } = shown.value === shown.defaultValue ? next : shown;
      const caret = [shown.selectionStart, shown.selectionEnd];
      return () => {
        if (shown.value === value) return;
        shown.value = value;
        if (caret[0] !== null && shown === document.activeElement) shown.setSelectionRange(...caret);
      };
    }
    case "select": {
      const picked = [...shown.options].some((option) => option.selected !== option.defaultSelected);
      const { value } = picked ? shown : next;
      return () => {
        if (shown.value !== value && [...shown.options].some((each) => each.value === value)) {
          shown.value = value;
        }
      };
    }
  }
  return null;
}

// Set by the browser or by the scripts on this page, never by a frame.
const OURS = new Set(["open", "style", "aria-current"]);

function morphAttributes(shown, next, fresh) {
  for (const { name } of [...shown.attributes]) {
    if (!next.hasAttribute(name) && name !== "class" && !OURS.has(name)) shown.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name === "class" || OURS.has(name) || shown.getAttribute(name) === value) continue;
    shown.setAttribute(name, value);
    if (name.startsWith("hx-")) fresh.push(shown);
  }
  const busy = [...shown.classList].filter((each) => each.startsWith("htmx-"));
  const classes = [...next.classList, ...busy].join(" ");
  if ([...shown.classList].join(" ") !== classes) shown.className = classes;
}

const NEAR = 24; // siblings to look through for a match

function morphChildren(shown, next, fresh) {
  let at = shown.firstChild;
  for (const wanted of [...next.childNodes]) {
    const match = findMatch(at, wanted);
    if (!match) {
      shown.insertBefore(wanted, at);
      if (wanted.nodeType === Node.ELEMENT_NODE) {
        rememberOpen(wanted);
        fresh.push(wanted);
      }
      continue;
    }
    while (at !== match) at = dropNode(at);
    at = match.nextSibling;
    morph(match, wanted, fresh);
  }
  while (at) at = dropNode(at);
}

function dropNode(node) {
  const following = node.nextSibling;
  node.remove();
  return following;
}

/** The node, from `at` on, that becomes `wanted`; those before it have no place any more. */
function findMatch(at, wanted) {
  if (wanted.nodeType !== Node.ELEMENT_NODE) return at?.nodeType === wanted.nodeType ? at : null;
  for (let count = 0; at && count < NEAR; at = at.nextSibling, count += 1) {
    if (alike(at, wanted)) return at;
    if (at.contains(document.activeElement)) return null;
  }
  return null;
}

const NAMES = ["id", "name", "action", "type", "data-keep", "data-slot"];

function alike(node, wanted) {
  if (node.localName !== wanted.localName || node.nodeType !== wanted.nodeType) return false;
  return NAMES.every((name) => node.getAttribute(name) === wanted.getAttribute(name));
}

/** Changes only what differs at the end, so that a selection in the text before it stays. */
function changeText(node, text) {
  const shown = node.data;
  if (shown === text) return;
  let same = 0;
  while (same < shown.length && shown[same] === text[same]) same += 1;
  if (same === shown.length) node.appendData(text.slice(same));
  else node.replaceData(same, shown.length - same, text.slice(same));
}
