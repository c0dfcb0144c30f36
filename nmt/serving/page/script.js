// The page: what is typed is translated when typing pauses. Nothing typed is kept. pages.js shows translations.
"use strict";

const PAUSE = 350; // milliseconds without a key before a text is translated
const MOST_ALTERNATIVES = 3;

const state = { pairs: [], limit: 5000, weights: 0, timer: 0, asked: null };

function count() {
  const length = Array.from(element("source").value).length;
  element("count").textContent = `${length} / ${state.limit}`;
  element("count").classList.toggle("error", length > state.limit);
  return length;
}

// What the server counts before it tells alignments.
const weightsOf = (text) => text.split("\n").reduce((sum, line) => sum + (line.match(/\S+/g) || []).length ** 2, 0);

async function translate() {
  const text = element("source").value;
  const pair = state.pairs[element("pair").selectedIndex];
  if (state.asked) state.asked.abort(); // an answer to an older text is not wanted any more
  state.asked = null;
  if (count() > state.limit || !text.trim() || !pair) {
    clear();
    say(text.trim() && pair ? `The text is too long: at most ${state.limit} characters.` : "", true);
    return;
  }
  const asked = new AbortController();
  state.asked = asked;
  element("target").classList.add("old");
  say("Translating …");
  const request = { q: text, source: pair.source, target: pair.target, format: "text" };
  request.alignments = pair.alignments && weightsOf(text) <= state.weights;
  request.alternatives = Math.min(pair.alternatives, MOST_ALTERNATIVES);
  if (element("key").value) request.api_key = element("key").value;
  try {
    const response = await fetch("translate", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
      signal: asked.signal,
    });
    const answer = await response.json();
    if (asked !== state.asked) return;
    if (!response.ok) throw new Error(answer.error);
    showTarget(text, answer.translatedText, answer.alignments);
    showAlternatives(answer.alternatives);
    element("copy").hidden = false;
    say("");
  } catch (error) {
    if (asked !== state.asked || error.name === "AbortError") return;
    clear();
    say(error instanceof TypeError ? "The server does not answer." : error.message, true);
  }
}

function later() {
  count();
  clearTimeout(state.timer);
  state.timer = setTimeout(translate, PAUSE);
}

async function begin() {
  followTheme();
  element("source").addEventListener("input", later);
  element("key").addEventListener("input", later);
  element("pair").addEventListener("change", translate);
  offerCopy();
  try {
    const [settings, languages] = await Promise.all(
      ["frontend/settings", "languages"].map(async (path) => (await fetch(path)).json()),
    );
    const names = Object.fromEntries(languages.map(({ code, name }) => [code, name]));
    state.pairs = settings.pairs;
    state.limit = settings.charLimit;
    state.weights = settings.weightLimit;
    for (const { source, target } of settings.pairs) {
      const option = document.createElement("option");
      option.textContent = `${names[source]} → ${names[target]}`;
      element("pair").append(option);
    }
    element("key-row").hidden = !settings.keyRequired;
    if (element("source").value) later();
    else count();
  } catch {
    say("The server does not answer.", true);
  }
}

begin();
