"use strict";
// The page reads without this script; it adds filters, which are part of the address, and opens
// what an address points to.
const bar = document.querySelector(".filter");
const form = bar.querySelector("form");
const shown = bar.querySelector("output");
const entries = [...document.querySelectorAll("details.entry")];
const findings = [...document.querySelectorAll("article.finding")];
const fields = ["text", "paper", "verdict", "kind", "crosschecks"];

// What a reader may type: the text as it is shown, and its formulas as the ledger writes them.
function words(item) {
  if (item.words) return item.words;
  const copy = item.cloneNode(true);
  for (const key of copy.querySelectorAll(".key")) key.remove();
  const shown = copy.textContent;
  for (const formula of copy.querySelectorAll("[data-as]"))
    formula.textContent = formula.dataset.as;
  item.words = `${shown}\n${copy.textContent}`.toLowerCase();
  return item.words;
}

function has(item, text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean).every((word) => words(item).includes(word));
}

function settings() {
  const found = Object.fromEntries(fields.map((name) => [name, form.elements[name].value]));
  found.crosschecks = form.elements.crosschecks.checked ? "" : "no";
  return found;
}

function fill(values) {
  for (const name of fields) {
    const field = form.elements[name];
    if (name === "crosschecks") field.checked = values.get(name) !== "no";
    else field.value = values.get(name) ?? "";
    if (field.value === "" && field.tagName === "SELECT") field.selectedIndex = 0;
  }
}

function matches(item, want) {
  const data = item.dataset;
  return (!want.paper || data.paper === want.paper)
    && (!want.verdict || data.verdict === want.verdict
      || (want.verdict === "unexpected" && item.classList.contains("unexpected"))
      || (want.verdict === "broken" && data.broken === "yes"))
    && (!want.kind || data.kind === want.kind)
    && !(want.crosschecks === "no" && data.kind === "cross-check")
    && has(item, want.text);
}

function apply() {
  const want = settings();
  let count = 0;
  for (const item of entries) {
    item.hidden = !matches(item, want);
    count += !item.hidden;
  }
  const narrowed = want.verdict || want.kind;
  for (const item of findings) {
    item.hidden = (want.paper && item.dataset.paper !== want.paper) || Boolean(narrowed)
      || !has(item, want.text);
  }
  for (const part of document.querySelectorAll("[data-holds]"))
    part.hidden = !part.querySelector(".entry:not([hidden]), article.finding:not([hidden])")
      && !(part.dataset.holds === "chapter" && !narrowed && !want.text
        && (!want.paper || want.paper === part.dataset.paper));
  for (const part of document.querySelectorAll("[data-rest]"))
    part.hidden = Boolean(narrowed || want.text || (want.paper && want.paper !== part.dataset.paper));
  const found = findings.filter((item) => !item.hidden).length;
  shown.value = count || found ? `${count} of ${entries.length} shown` : "Nothing matches: clear the filter to see all";
}

function remember() {
  const want = Object.entries(settings()).filter(([, value]) => value);
  const query = new URLSearchParams(want).toString();
  history.replaceState(null, "", query ? `#?${query}` : "#");
}

function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  if (hash.startsWith("?")) {
    fill(new URLSearchParams(hash.slice(1)));
    apply();
    return;
  }
  const target = hash && document.getElementById(hash);
  if (!target) return;
  const inside = target.closest("details") ?? target.querySelector(":scope > details.entry");
  if (target.closest("[hidden]")) {
    fill(new URLSearchParams());
    apply();
  }
  if (target.matches("details")) target.open = true;
  else if (inside && inside.contains(target)) inside.open = true;
  target.scrollIntoView();
  if (target.matches("details")) target.querySelector("summary").focus({ preventScroll: true });
}

function change() {
  apply();
  remember();
}

// An image is in the file once; where its figure is looked at again it is the same address.
for (const copy of document.querySelectorAll("img[data-copy]")) {
  copy.src = document.getElementById(copy.dataset.copy).querySelector("img").src;
  copy.hidden = false;
}

function keepClear() {
  const covered = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  document.documentElement.style.scrollPaddingTop = `${covered + 12}px`;
}

bar.hidden = false;
new ResizeObserver(keepClear).observe(bar);
form.addEventListener("input", change);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(change));
form.elements.open.addEventListener("click", () => {
  const visible = entries.filter((item) => !item.hidden);
  const open = visible.some((item) => !item.open);
  for (const item of visible) item.open = open;
});
addEventListener("hashchange", follow);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  form.elements.text.focus();
});
apply();
keepClear();
follow();
