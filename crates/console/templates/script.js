"use strict";
// Every page works without this script. It refreshes elements with `data-refresh` (and an id) every five seconds while the
// page is visible, shows times in local time with UTC on hover, and adds Copy buttons.

const EVERY = 5000;
const SOON = 300;
let next, readAt;

// Replaces the UTC time in an element's text with local time. A text without it stays.
function local(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (isNaN(at) || time.dataset.local) continue;
    const utc = time.dateTime.replace("T", " ").replace(/\.\d+/, "").replace("Z", " UTC");
    const clock = at.toLocaleTimeString(undefined, { hourCycle: "h23" });
    const isToday = at.toDateString() === new Date().toDateString();
    time.dataset.local = isToday ? clock : `${at.toLocaleDateString()} ${clock}`;
    const isUtc = time.textContent.includes(time.dateTime);
    time.textContent = time.textContent.replace(time.dateTime, time.dataset.local);
    time.title = isUtc ? utc : `${time.dataset.local} (${utc})`;
  }
}

function copyButtons(root) {
  if (!navigator.clipboard) return;
  for (const copy of root.querySelectorAll(".copy")) {
    if (copy.querySelector("button")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copy.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    copy.append(" ", button);
  }
}

// Keeps the figures' age by this browser's clock, so that it grows even while the server does not answer.
function readFrom(page) {
  readAt = Date.now() - 1000 * (page.querySelector("[data-age]")?.dataset.age ?? 0);
}

function grow() {
  const age = Math.round((Date.now() - readAt) / 1000);
  const text = age < 120 ? `${age}s` : `${Math.floor(age / 60)}m`;
  document.querySelectorAll("[data-age]").forEach((it) => (it.textContent = `figures ${text} old`));
}

function enliven(root) {
  local(root);
  copyButtons(root);
}

// Returns true if somebody is using the region: it must not be replaced under their hands.
function isInUse(region) {
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  return isSelected || region.contains(document.activeElement);
}

function replace(region, fresh) {
  region.dataset.refresh = fresh.dataset.refresh;
  if (fresh.innerHTML === region.lastHTML) return;
  region.lastHTML = fresh.innerHTML;
  const open = [...region.querySelectorAll("details")].map((it) => it.open);
  const checked = new Set([...region.querySelectorAll("input:checked")].map((it) => it.name + it.value));
  const scrolled = [...region.querySelectorAll(".scroll, pre")].map((it) => [it.scrollLeft, it.scrollTop]);
  region.replaceChildren(...document.importNode(fresh, true).childNodes);
  region.querySelectorAll("details").forEach((it, n) => (it.open = open[n] ?? it.open));
  region.querySelectorAll("input[type=checkbox]").forEach((it) => (it.checked = checked.has(it.name + it.value)));
  region.querySelectorAll(".scroll, pre").forEach((it, n) => scrolled[n] && it.scrollTo(...scrolled[n]));
  enliven(region);
}

// Gets the page again. Reloading the answer to a form would send the form again.
function again() {
  location.replace(location.pathname + location.search);
}

async function refresh() {
  // A region that is `still` changes only with its form.
  const regions = [...document.querySelectorAll("[data-refresh][id]:not([data-refresh=still])")];
  const [address, gone] = [location.href, document.getElementById("gone")];
  const isDone = regions.some((region) => region.dataset.refresh === "done");
  if (regions.length === 0 || isDone || document.visibilityState !== "visible") return;
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (answer.status === 403) return again();
    if (address !== location.href) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of regions) {
      const fresh = page.getElementById(region.id);
      if (fresh && !isInUse(region)) replace(region, fresh);
      // Buttons outside the region go when its work has ended, and the whole page when the region is gone.
      if (!fresh || fresh.dataset.refresh === "done") return document.activeElement?.matches("input, select, textarea") || again();
    }
    readFrom(page);
    gone.hidden = true;
  } catch {
    gone.querySelector("strong").textContent = new Date(readAt).toLocaleTimeString(undefined, { hourCycle: "h23" });
    gone.hidden = false;
  }
}

async function keepFresh() {
  clearTimeout(next);
  await refresh();
  clearTimeout(next);
  next = setTimeout(keepFresh, document.querySelector("[data-refresh=soon]") ? SOON : EVERY);
}

// Refreshes the answer to a form while it is filled in.
function follow(form) {
  let typed;
  form.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => {
      history.replaceState(null, "", `?${new URLSearchParams(new FormData(form))}`);
      document.getElementById(form.dataset.live).dataset.refresh = "soon";
      keepFresh();
    }, SOON);
  });
}

enliven(document);
readFrom(document);
setInterval(grow, 1000);
document.querySelectorAll("form[data-live]").forEach(follow);
next = setTimeout(keepFresh, document.querySelector("[data-refresh=soon]") ? SOON : EVERY);
document.addEventListener("visibilitychange", refresh);
