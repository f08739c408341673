"use strict";
// Keyboard, folding, and what is fetched on demand. Text is only ever set as text, never as markup.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const body = document.body;
const make = (name, cls, text) => {
  const made = document.createElement(name);
  if (cls) made.className = cls;
  if (text !== undefined) made.textContent = text;
  return made;
};

// Where the reader is
let current = null;
const stops = () => $$(".turn, section.pair, .lines tbody tr");
function go(stop, { scroll = true, note = true } = {}) {
  if (!stop) return;
  if (current) current.classList.remove("now", "here");
  current = stop;
  stop.classList.add(stop.tagName === "TR" ? "here" : "now");
  if (stop.tagName === "TR") $("th a", stop)?.focus({ preventScroll: true });
  else if (scroll) stop.focus({ preventScroll: true });
  if (scroll) stop.scrollIntoView({ block: stop.tagName === "TR" ? "nearest" : "start" });
  if (note && stop.id) history.replaceState(null, "", `#${stop.id}`);
  for (const link of $$(".outline a")) link.classList.toggle("now", link.hash === `#${stop.id}`);
  $(".outline a.now")?.scrollIntoView({ block: "nearest" });
}
function nearest() {
  const top = 70;
  const all = stops();
  return all.findLast((stop) => stop.getBoundingClientRect().top <= top + 10) ?? null;
}
function step(by) {
  const all = stops();
  const from = current ?? nearest();
  const at = from ? all.indexOf(from) : by > 0 ? -1 : all.length;
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  go(next);
}
function follow(rel) {
  const link = $(`link[rel="${rel}"]`) ?? $(`a[rel="${rel}"]`);
  if (link) location.assign(link.href);
}

// A deep link may name a turn of another page of the same rollout
function arrive() {
  const found = /^#turn-(\d{1,12})$/.exec(location.hash);
  if (!found) return;
  const turn = document.getElementById(`turn-${found[1]}`);
  if (turn) go(turn, { note: false });
  else if (body.dataset.base && !new URLSearchParams(location.search).has("turn")) {
    const query = new URLSearchParams(location.search);
    query.delete("from");
    query.set("turn", found[1]);
    location.replace(`${location.pathname}?${query}${location.hash}`);
  }
}

// Folding
function fold() {
  const folded = body.classList.toggle("folded");
  $('[data-do="fold"]')?.setAttribute("aria-pressed", String(folded));
  current?.scrollIntoView({ block: "start" });
}
function prompts() {
  const all = $$("details.system, #tools");
  const open = !all.some((item) => item.open);
  for (const item of all) item.open = open;
}

// Long texts, a stretch at a time
async function more(link) {
  const head = link.previousElementSibling;
  const from = link.dataset.next ?? "0";
  const answer = await fetch(`${link.href.split("?")[0]}?from=${from}`);
  if (!answer.ok) { link.textContent = "It cannot be had any more"; return; }
  const text = await answer.text();
  head.textContent = from === "0" ? text : head.textContent + text;
  const tail = link.nextElementSibling;
  if (tail?.classList.contains("tail")) tail.remove();
  const left = Number(answer.headers.get("orchard-left"));
  if (!left) { link.remove(); return; }
  link.dataset.next = answer.headers.get("orchard-next");
  link.textContent = `Show more: ${left.toLocaleString("en")} characters are left`;
}

// Tokens of a turn
async function tokens(turn) {
  const link = turn && $("a.tokens", turn);
  if (!link) return;
  const shown = $(".shade", turn);
  if (shown) { shown.remove(); return; }
  const answer = await fetch(link.href);
  const told = await answer.json();
  const box = make("div", "shade");
  const known = told.p.filter((p) => p !== null);
  const sure = known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  const left = told.why.filter((why) => why).length;
  box.append(make("p", "", `${told.ids.length.toLocaleString("en")} sampled tokens${told.text.length ? "" : " by id"}; the darker, the less probable.`
    + (sure === null ? " The server told no probabilities." : ` Mean probability ${sure.toFixed(3)}.`)
    + (left ? ` Dashed: ${left.toLocaleString("en")} not trained.` : "")));
  told.ids.forEach((id, at) => {
    const p = told.p[at];
    const text = told.text[at]?.replaceAll("\n", "↵");
    const shade = p === null ? "unknown" : `h${Math.min(10, Math.floor((1 - p) * 10.999))}`;
    const token = make("span", shade, text || String(id));
    if (text) token.classList.add("word");
    if (told.why[at]) token.classList.add("left");
    token.title = `id ${id}` + (p === null ? "" : `, probability ${p}`) + (told.why[at] ? `, not trained: ${told.why[at]}` : "");
    box.append(token);
  });
  ($(".said.answer", turn) ?? $("header", turn)).after(box);
}

// Copying gives what is shown: a hidden character would arrive in words
function copies() {
  if (!navigator.clipboard) return;
  for (const piece of $$(".piece:not(.image)")) {
    const button = make("button", "copy", "Copy");
    button.type = "button";
    button.dataset.do = "copy";
    piece.append(button);
  }
}
async function copy(button) {
  const piece = button.closest(".piece");
  const texts = $$(".arguments pre", piece).length ? $$(".exact pre", piece) : $$("pre", piece);
  await navigator.clipboard.writeText(texts.map((text) => text.textContent).join("\n"));
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1200);
}

// A live run
async function watch() {
  const { source, finished, planned } = body.dataset;
  const index = $("#index");
  if (!source) return;
  let answer;
  try { answer = await fetch(`/progress?source=${encodeURIComponent(source)}`); } catch { return; }
  if (!answer.ok) return;
  const told = await answer.json();
  const fresh = told.finished - Number(finished);
  const live = $("#live");
  if (live && fresh > 0 && live.hidden) {
    const link = make("a", "", `${fresh.toLocaleString("en")} new`);
    link.href = location.href;
    live.replaceChildren(link);
    live.hidden = false;
  } else if (live && fresh > 0) live.firstChild.textContent = `${fresh.toLocaleString("en")} new`;
  if (index?.textContent.startsWith("Index")) {
    index.textContent = told.read < told.finished
      ? `Index: ${told.read.toLocaleString("en")} of ${told.finished.toLocaleString("en")} read; until then tasks and errors are searched.`
      : "Index: complete.";
  }
  if (told.finished < told.planned || told.read < told.finished) setTimeout(watch, 4000);
}

const actions = {
  j: () => step(1), k: () => step(-1), n: () => follow("next"), p: () => follow("prev"), f: fold, s: prompts,
  t: () => tokens(current ?? nearest() ?? $(".turn")),
  u: () => { const up = $('link[rel="up"]') ?? $(".bar nav a:last-of-type"); if (up) location.assign(up.href); },
  "/": () => { const search = $("#q"); if (search) { search.focus(); search.select(); } else actions.u(); },
  "?": () => $("#keys").showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, dialog")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button?.dataset.do === "keys") actions["?"]();
  else if (button?.dataset.do === "fold") fold();
  else if (button?.dataset.do === "copy") copy(button);
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest("a.more, a.tokens");
  if (!link) return;
  event.preventDefault();
  if (link.classList.contains("more")) more(link);
  else tokens(link.closest(".turn"));
});
window.addEventListener("hashchange", arrive);
for (const item of $$(".js")) item.hidden = false;
copies();
arrive();
if (body.dataset.source) setTimeout(watch, 1500);
