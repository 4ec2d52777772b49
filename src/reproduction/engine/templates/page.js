"use strict";
// Adds filters, which are part of the address, and opens what an address points to.
const bar = document.querySelector(".filter");
const form = bar.querySelector("form");
const papers = [...document.querySelectorAll("details.paper")];
const entries = [...document.querySelectorAll("li.entry")];

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
  const { verdict, kind, broken } = item.dataset;
  const verdicts = [verdict, item.matches(".unexpected") && "unexpected", broken && "broken"];
  return (!want.paper || item.closest(".paper").id === want.paper)
    && (!want.verdict || verdicts.includes(want.verdict))
    && (!want.kind || kind === want.kind)
    && (want.text ?? "").toLowerCase().split(/\s+/).every((word) => words(item).includes(word));
}

// What is all hidden is left out by the style sheet, and what matches is unfolded.
function apply() {
  const want = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
  const narrowed = Object.keys(want).length > 0;
  for (const item of entries) item.hidden = !matches(item, want);
  for (const paper of papers) paper.open = narrowed || papers.length === 1;
  const count = entries.filter((item) => !item.hidden).length;
  form.querySelector("output").value = !narrowed ? `${count} entries`
    : count ? `${count} of ${entries.length} shown` : "Nothing matches: clear the filter to see all";
  return want;
}

function change() {
  history.replaceState(null, "", `#?${new URLSearchParams(apply())}`.replace(/\?$/, ""));
}

function fill(values) {
  for (const field of form.elements) if (field.name) field.value = values.get(field.name) ?? "";
  apply();
}

function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const target = hash.startsWith("?") ? bar : hash && document.getElementById(hash);
  if (!target) return;
  if (target === bar || target.closest("[hidden]")) fill(new URLSearchParams(hash.split("?")[1]));
  const paper = target.closest("details");
  if (paper) paper.open = true;
  target.scrollIntoView();
}

bar.hidden = false;
form.addEventListener("input", change);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(change));
addEventListener("hashchange", follow);
apply();
follow();
