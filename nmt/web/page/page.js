// The page that translates by itself: what is typed is translated when typing pauses, by worker.js in this browser.
"use strict";

const PAUSE = 350; // milliseconds without a key before a text is translated
const MOST_NUMBERS = 10; // of lines that are named
const SIMD = "AGFzbQEAAAABBQFgAAF7AwIBAAoKAQgAQQD9D/1iCw=="; // the smallest program with it
const state = { worker: null, id: 0, timer: 0, text: "", lines: [] };

function isOld() {
  const program = Uint8Array.from(atob(SIMD), (character) => character.charCodeAt(0));
  return typeof DecompressionStream === "undefined" || !globalThis.WebAssembly?.validate(program);
}

// What is said of the lines where `has` holds; nothing where it does not.
function saidOf(has, problem) {
  const numbers = state.lines.flatMap((line, number) => (has(line) ? [number + 1] : []));
  const first = numbers.slice(0, MOST_NUMBERS).join(", ") + (numbers.length > MOST_NUMBERS ? ", …" : "");
  return numbers.length ? `${numbers.length > 1 ? "Lines" : "Line"} ${first}: ${problem}. ` : "";
}

function showLines() {
  const alignments = state.lines.map((line) => line.alignment || NO_WORDS);
  const text = state.lines.map((line) => line.texts[0]).join("\n");
  showTarget(state.text, text, state.lines.some((line) => line.alignment) ? alignments : null);
  if (state.lines.length === 1) showAlternatives(state.lines[0].texts.slice(1));
  element("copy").hidden = false;
  const doubts =
    saidOf((line) => line.isTooLong, "too long to translate; divide it") +
    saidOf((line) => line.isUnknown, "characters that the model does not know") +
    saidOf((line) => line.isUnusual, "an address, placeholder, emoji, list, or capitals; check the translation");
  say(doubts, doubts !== "");
}

function receive({ data }) {
  if (data.id !== undefined && data.id !== state.id) return; // of a former text
  if (data.error) {
    clear();
    say(data.error, true);
  } else if (data.isReady) {
    if (!state.text.trim()) say("");
  } else {
    state.lines[data.number] = data;
    const lines = state.text.split("\n").length;
    if (state.lines.length === lines) showLines();
    else say(`Translating: ${state.lines.length} of ${lines} lines …`);
  }
}

function translate() {
  state.text = element("source").value;
  state.id++;
  state.lines = [];
  if (!state.text.trim()) {
    clear();
    say("");
    return;
  }
  element("target").classList.add("old");
  say("Translating …");
  state.worker.postMessage({ id: state.id, text: state.text });
}

function stop(reason) {
  say(reason, true);
  element("source").disabled = true;
}

function begin() {
  followTheme();
  offerCopy();
  if (isOld()) {
    stop("This browser is too old: the page needs WebAssembly with SIMD, which browsers have had since 2023.");
    return;
  }
  say("Loading the model …");
  state.worker = new Worker("worker.js", { type: "module" });
  state.worker.onmessage = receive;
  state.worker.onerror = () => stop("A file of this page is missing or damaged, or the browser is too old.");
  element("source").addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(translate, PAUSE);
  });
  if (element("source").value) translate();
  if (!navigator.serviceWorker) return; // as where the address is not secure; the page works, but not offline
  navigator.serviceWorker.register("service-worker.js").catch(() => {});
  navigator.serviceWorker.ready.then(() => (element("offline").hidden = false));
}

begin();
