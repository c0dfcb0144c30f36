// What the pages of nmt-serve and nmt-export --web have in common: a target word shows what it was translated from.
// Texts are only ever inserted as text, and nothing is loaded from elsewhere.
"use strict";

const FAINT = 0.05; // weights below are not shown
const NO_WORDS = { source: [], target: [], weights: [] }; // what stands behind the last line end

const element = (id) => document.getElementById(id);

function storedTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null; // a browser that keeps nothing
  }
}

// Dark and light follow the system until somebody presses the button.
function followTheme() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => element("theme").setAttribute("aria-pressed", String(isDark()));
  const stored = storedTheme();
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  show();
  system.addEventListener("change", show);
  element("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // then it lasts as long as the page
    }
  });
}

function say(text, isError = false) {
  const status = element("status");
  status.textContent = text;
  status.classList.toggle("error", isError);
}

function offerCopy() {
  element("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(element("target").textContent);
      say("Copied.");
    } catch {
      say("The browser does not allow copying here.", true);
    }
  });
}

function clear() {
  for (const id of ["target", "alternatives", "read"]) element(id).replaceChildren();
  for (const id of ["others", "hint", "copy", "read"]) element(id).hidden = true;
  element("target").classList.remove("old");
}

// The words of a line as spans between its white space. `words` may be fewer than there are, never others.
function spans(line, words, made) {
  const parts = [];
  let at = 0;
  words.forEach((word, place) => {
    const begin = line.indexOf(word, at);
    if (begin < 0) return;
    if (begin > at) parts.push(document.createTextNode(line.slice(at, begin)));
    const span = document.createElement("span");
    span.className = "word";
    span.textContent = word;
    made(span, place);
    parts.push(span);
    at = begin + word.length;
  });
  if (at < line.length) parts.push(document.createTextNode(line.slice(at)));
  return parts;
}

// What a word reads that reads the end of its line or sentence.
function endMark() {
  const mark = document.createElement("span");
  mark.className = "word end";
  mark.textContent = "end";
  return mark;
}

// The source below the field, with a span for each word and, last, for the end; lists of spans by line.
function showSource(text, alignments) {
  const read = element("read");
  read.replaceChildren();
  read.hidden = false;
  return text.split("\n").map((line, number) => {
    const { source } = alignments[number] || NO_WORDS;
    const found = [];
    if (number) read.append("\n");
    read.append(...spans(line, source, (span, place) => (found[place] = span)));
    if (source.length) {
      found[source.length] = endMark();
      read.append("\u00a0", found[source.length]);
    }
    return found;
  });
}

function highlight(row, sources) {
  const strongest = Math.max(...row, 0);
  sources.forEach((span, place) => {
    const weight = row[place] || 0;
    const shade = Math.round(15 + 85 * weight);
    span.style.backgroundColor = weight >= FAINT ? `color-mix(in srgb, var(--weight) ${shade}%, transparent)` : "";
    span.classList.toggle("chosen", weight > 0 && weight === strongest);
    span.title = weight >= FAINT ? `${Math.round(100 * weight)}%` : "";
  });
}

function showTarget(source, text, alignments) {
  clear(); // also what a former answer had and this one has not
  const target = element("target");
  if (!alignments) {
    target.textContent = text;
    return;
  }
  const read = showSource(source, alignments);
  const words = [];
  text.split("\n").forEach((line, number) => {
    if (number) target.append("\n");
    const { target: lineWords, weights } = alignments[number] || NO_WORDS;
    const show = (place) => {
      read.forEach((sources, other) => highlight(other === number ? weights[place] : [], sources));
    };
    target.append(
      ...spans(line, lineWords, (span, place) => {
        span.tabIndex = words.length ? -1 : 0;
        span.addEventListener("mouseenter", () => show(place));
        span.addEventListener("focus", () => show(place));
        const none = () => read.forEach((sources) => highlight([], sources));
        span.addEventListener("mouseleave", none);
        span.addEventListener("blur", none);
        words.push(span);
      }),
    );
  });
  element("hint").hidden = !words.length;
  target.onkeydown = (event) => {
    const at = words.indexOf(document.activeElement);
    const right = getComputedStyle(target).direction === "rtl" ? -1 : 1;
    const steps = { ArrowRight: right, ArrowLeft: -right, Home: -at, End: words.length - 1 - at };
    const next = at < 0 ? undefined : words[at + steps[event.key]];
    if (!next) return;
    event.preventDefault();
    words[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
}

function showAlternatives(texts) {
  const others = element("alternatives");
  others.replaceChildren();
  for (const text of texts || []) {
    const item = document.createElement("li");
    item.textContent = text;
    others.append(item);
  }
  element("others").hidden = !others.childElementCount;
}
