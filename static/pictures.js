// A picture whose request met a server that was down is asked for again: nothing else would do it.

const RETRY_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
const failures = new WeakMap(); // by picture, since it was last seen or the server came back

export function retryPictures() {
  document.addEventListener("error", ({ target }) => target.localName === "img" && again(target), true);
  document.addEventListener("load", ({ target }) => failures.delete(target), true);
}

/** The server answers again: what failed while it did not is asked for now. */
export function retryNow() {
  for (const picture of document.images) {
    if (failures.delete(picture)) load(picture);
  }
}

function again(picture) {
  const failed = failures.get(picture) ?? 0;
  failures.set(picture, failed + 1);
  if (failed < RETRY_MS.length) setTimeout(() => failures.get(picture) === failed + 1 && load(picture), RETRY_MS[failed]);
}

function load(picture) {
  const { src } = picture;
  if (picture.isConnected && src) picture.src = src;
}
