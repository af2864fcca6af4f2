// What all modules look up in the page.

export const chat = document.body.dataset.chat ?? "";

/** Stands for who opened the page; "" for the person at the server's own machine. */
export const person = document.body.dataset.person ?? "";

/** Begins the names of all that tabs share and this browser keeps: of one person alone. */
export const SPACE = person ? `harness-web-${person}` : "harness-web";

export const find = (selector, root = document) => root.querySelector(selector);

/** The elements of an answer, which are on no page yet. */
export const parsed = (html) => [...new DOMParser().parseFromString(html, "text/html").body.children];

export function partById(id) {
  const element = document.getElementById(id);
  return element?.hasAttribute("data-part") ? element : null;
}
