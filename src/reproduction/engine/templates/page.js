"use strict";
// The page reads without this script; it adds filters, which are part of the address, and opens
// what an address points to.
const bar = document.querySelector(".filter");
const form = bar.querySelector("form");
const fields = ["paper", "verdict", "kind", "text", "crosschecks"];
const entries = [...document.querySelectorAll("details.entry")];
const findings = [...document.querySelectorAll("article.finding")];

// What a reader may type: the text as it is shown, and its formulas as the ledger writes them.
function words(item) {
  if (item.words) return item.words;
  const copy = item.cloneNode(true);
  for (const formula of copy.querySelectorAll("[data-as]"))
    formula.textContent = formula.dataset.as;
  item.words = `${item.textContent}\n${copy.textContent}`.toLowerCase();
  return item.words;
}

function matches(item, want) {
  const data = item.dataset;
  const verdicts = [data.verdict, item.classList.contains("unexpected") && "unexpected",
    data.broken && "broken"];
  return (!want.paper || data.paper === want.paper)
    && (!want.verdict || verdicts.includes(want.verdict))
    && (!want.kind || data.kind === want.kind)
    && !(want.crosschecks && data.kind === "cross-check")
    && (want.text ?? "").toLowerCase().split(/\s+/).filter(Boolean)
      .every((word) => words(item).includes(word));
}

function settings() {
  return Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
}

function fill(values) {
  form.reset();
  for (const name of fields) {
    if (!values.has(name)) continue;
    if (name === "crosschecks") form.elements[name].checked = true;
    else form.elements[name].value = values.get(name);
  }
  apply();
}

// Headings of what is all hidden are left out by the style sheet.
function apply() {
  const want = settings();
  for (const item of [...entries, ...findings]) item.hidden = !matches(item, want);
  document.body.classList.toggle("narrowed", Boolean(want.verdict || want.kind || want.text));
  const count = entries.filter((item) => !item.hidden).length;
  form.querySelector("output").value = count || findings.some((item) => !item.hidden)
    ? `${count} of ${entries.length} shown` : "Nothing matches: clear the filter to see all";
}

function change() {
  apply();
  history.replaceState(null, "", `#?${new URLSearchParams(settings())}`.replace(/\?$/, ""));
}

function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  if (hash.startsWith("?")) return fill(new URLSearchParams(hash.slice(1)));
  const target = hash && document.getElementById(hash);
  if (!target) return;
  if (target.closest("[hidden]")) fill(new URLSearchParams());
  if (target.matches("details")) {
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
  }
  target.scrollIntoView();
}

// An image is in the file once; where its figure is looked at again it is the same address.
for (const copy of document.querySelectorAll("img[data-copy]")) {
  copy.src = document.getElementById(copy.dataset.copy).querySelector("img").src;
  copy.hidden = false;
}
bar.hidden = false;
form.addEventListener("input", change);
form.addEventListener("submit", (event) => event.preventDefault());
form.querySelector("[type=reset]").addEventListener("click", () => setTimeout(change));
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
follow();
