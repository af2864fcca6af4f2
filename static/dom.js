// What all modules look up in the page.

export const chat = document.body.dataset.chat ?? "";

export const find = (selector, root = document) => root.querySelector(selector);

export function partById(id) {
  const element = document.getElementById(id);
  return element?.hasAttribute("data-part") ? element : null;
}
