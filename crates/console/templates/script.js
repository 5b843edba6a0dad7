"use strict";
// Every page works without this script. While a page is visible, the script refreshes elements with `data-refresh` and
// an id every five seconds. It shows times in local time, with UTC on hover, and adds Copy buttons, sorting, tooltips
// for charts, and keyboard shortcuts.

const EVERY = 5000;
const SOON = 300;
let next, readAt, isGoing = false;
const sorted = new Map();
const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });

// Replaces the UTC time in an element's text with local time. Other text stays the same.
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

function copyButton(place, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  if (text !== place.textContent) button.setAttribute("aria-label", `Copy ${text}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  place.append(" ", button);
}

function copyButtons(root) {
  if (!navigator.clipboard) return;
  for (const place of root.querySelectorAll(".copy:not(:has(button))")) {
    copyButton(place, place.querySelector("code").textContent);
  }
  for (const place of root.querySelectorAll("td .key:not(:has(button))")) {
    copyButton(place, place.querySelector("a").title);
  }
}

// The value by which a cell is sorted: a time, a number, or its text.
function sortKey(row, column) {
  const cell = row.cells[column];
  const time = cell.querySelector("time");
  if (time) return [0, Date.parse(time.dateTime)];
  const text = cell.textContent.trim();
  const number = Number(text.replaceAll(",", ""));
  return text !== "" && !isNaN(number) ? [0, number] : [text === "" ? 2 : 1, text];
}

function sortBy(table, column, isDescending) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [sortKey(row, column), row]);
  const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
  rows.sort(([[a, x]], [[b, y]]) => compare(a, b) || (isDescending ? compare(y, x) : compare(x, y)));
  body.replaceChildren(...rows.map(([, row]) => row));
  for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", isDescending ? "descending" : "ascending");
}

// Turns each column heading into a button that sorts the rows of this page. A refresh keeps the order.
function sortable(root) {
  for (const table of root.querySelectorAll("table[data-sortable]")) {
    if (table.tBodies[0].rows.length < 2) continue;
    const order = `${table.closest("[id]")?.id} ${table.parentElement.getAttribute("aria-label")}`;
    for (const head of table.tHead.rows[0].cells) {
      if ("plain" in head.dataset || head.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", (event) => {
        // A region that has the focus is not refreshed, so a mouse click gives it up. A keyboard user keeps it.
        if (event.detail > 0) button.blur();
        const isDescending = head.getAttribute("aria-sort") === "ascending";
        sorted.set(order, [head.cellIndex, isDescending]);
        sortBy(table, head.cellIndex, isDescending);
      });
    }
    if (sorted.has(order)) sortBy(table, ...sorted.get(order));
  }
}

// Prepares the tooltips of charts. Without this script, the browser shows the values as titles.
function values(root) {
  for (const part of root.querySelectorAll(".values rect")) {
    const title = part.querySelector("title");
    part.dataset.text = title.textContent;
    title.remove();
  }
}

function showTip(event) {
  const text = event.target.dataset?.text;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const isRight = event.clientX > innerWidth / 2;
  tip.style.left = isRight ? "auto" : `${event.clientX + 12}px`;
  tip.style.right = isRight ? `${innerWidth - event.clientX + 12}px` : "auto";
  tip.style.top = `${event.clientY + 12}px`;
}

// Measures the figures' age by the browser's clock, so that the age grows even while the server does not answer.
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
  sortable(root);
  values(root);
}

// Returns true if the user has selected text or has the focus in the region. Such a region must not be replaced.
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

// Loads the page again with GET. Reloading the answer to a form would send the form again.
function again() {
  location.replace(location.pathname + location.search);
}

async function refresh() {
  // A region with `data-refresh=still` changes only when its form changes.
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
      // If the region's work has ended, or the region is gone, the rest of the page is out of date too. The page is
      // loaded again, unless the user is in a form field.
      if (!fresh || fresh.dataset.refresh === "done") return document.activeElement?.matches("input, select, textarea") || again();
    }
    readFrom(page);
    document.title = page.title;
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

// Refreshes the answer to a form as the user fills it in.
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

// Handles the shortcuts: `/` goes to the search, `g` and a letter open a page, `c` goes to the buttons for the chosen
// rows, and `?` lists the shortcuts.
function shortcut(event) {
  const isTyping = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const link = isGoing && document.querySelector(`nav [data-key="${CSS.escape(event.key)}"]`);
  isGoing = event.key === "g";
  if (link) link.click();
  else if (event.key === "/") document.getElementById("search").focus();
  else if (event.key === "c") document.querySelector(".chosen button")?.focus();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else return;
  event.preventDefault();
}

document.body.append(tip);
document.addEventListener("pointermove", showTip);
document.addEventListener("keydown", shortcut);
enliven(document);
readFrom(document);
setInterval(grow, 1000);
document.querySelectorAll("form[data-live]").forEach(follow);
next = setTimeout(keepFresh, document.querySelector("[data-refresh=soon]") ? SOON : EVERY);
document.addEventListener("visibilitychange", refresh);
