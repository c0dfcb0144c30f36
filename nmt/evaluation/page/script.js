// The list of sentences, made from the data in the page as it is asked for; and what attention saw.
// Texts are only ever inserted as text. Nothing is loaded, and nothing is sent or kept.
"use strict";

const PAGE = 25; // sentences shown at once
const EXTREMES = 5; // sentences in which a system is most above another
const FAINT = 0.05; // weights below are not shown in the sentence
const NAMED = 3; // source words that are told of
const SHORT = 0.8; // a translation with fewer tokens for each token of the reference
const LONG = 1.25; // or with more
const PAUSE = 150; // milliseconds without a key before a search

const element = (id) => document.getElementById(id);
const data = JSON.parse(element("data").textContent);
const { systems, references, translations, source, groupings, metrics } = data;
const count = data.lengths.length;
const several = systems.length > 1;
const state = { order: [], page: 0, descending: false, timer: 0, searched: null };

function make(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

function option(value, text) {
  const made = make("option", "", text);
  made.value = value;
  return made;
}

function badge(number) {
  return make("span", `letter s${number % 6}`, systems[number].letter);
}

const round = (value) => value.toFixed(1);
const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
const lineOf = (index) => `Line ${(index + 1).toLocaleString("en")}`;
const wordsOf = (text) => text.match(/[^ ]+/g) || [];

// ------------------------------------------------------------------------------------------------------- one sentence

// A text with marks around [begin, end) of `marks`, and, if `named`, a span around each word.
function write(parent, text, marks, className, named) {
  let mark = 0;
  const append = (to, begin, end) => {
    while (begin < end) {
      while (mark < marks.length && marks[mark + 1] <= begin) mark += 2;
      const start = mark < marks.length ? Math.max(begin, Math.min(marks[mark], end)) : end;
      if (start > begin) to.append(text.slice(begin, start));
      const stop = start < end ? Math.min(marks[mark + 1], end) : end;
      if (start < end) to.append(make("mark", className, text.slice(start, stop)));
      begin = stop;
    }
  };
  let at = 0;
  if (named) {
    let place = 0;
    for (const match of text.matchAll(/[^ ]+/g)) {
      append(parent, at, match.index);
      at = match.index + match[0].length;
      const word = make("span", "word");
      word.dataset.place = place++;
      append(word, match.index, at);
      parent.append(word);
    }
  }
  append(parent, at, text.length);
}

function paragraph(column, index, className, named) {
  const made = make("p", "text");
  made.dir = "auto";
  write(made, column.texts[index], column.marks[index] || [], className, named);
  const omitted = column.omitted[index];
  const parts = [made];
  if (!column.texts[index]) made.append(make("span", "facts", "(empty)"));
  if (omitted) parts.push(make("p", "facts", `… cut here: ${plural(omitted, "more character")}`));
  return parts;
}

const attended = (number, index) => Boolean(systems[number].attention && systems[number].attention[index]);

// The weights as rows of numbers from 0 to 1; contents.py has packed them.
function weightsOf(number, index) {
  const columns = wordsOf(source.texts[index]).length + 1;
  const bytes = atob(systems[number].attention[index]);
  const flat = [];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes.charCodeAt(at);
    if (byte) flat.push(byte / 255);
    else for (let zeros = bytes.charCodeAt(++at); zeros; zeros--) flat.push(0);
  }
  return Array.from({ length: flat.length / columns }, (_, row) => flat.slice(row * columns, (row + 1) * columns));
}

// One word of a text is a button that Tab leads to; arrow keys make another one it, so that the text reads as a text.
function reachable(word) {
  word.tabIndex = 0;
  word.setAttribute("role", "button");
  word.setAttribute("aria-haspopup", "dialog");
}

function translation(number, index) {
  const system = systems[number];
  const heard = attended(number, index);
  const parts = paragraph(translations[number], index, "extra", heard);
  if (heard) {
    parts[0].classList.add("heard", `s${number % 6}`);
    Object.assign(parts[0].dataset, { system: number, index });
    const first = parts[0].querySelector(".word");
    if (first) reachable(first);
  }
  const facts = metrics.map(({ title, key }) => `${title} ${round(system.scores[key][index])}`);
  const differing = translations[number].marks[index].length / 2;
  const isCut = [translations[number], ...references].some((column) => column.omitted[index]);
  const where = isCut ? " in what is shown" : "";
  facts.push(`${differing || "none"} marked${where}`);
  if (system.repeated[index]) facts.push(`${system.repeated[index]} repeated`);
  if (system.unknown[index]) facts.push(`${system.unknown[index]} unknown`);
  const line = make("p", "facts", facts.join(" · "));
  if (heard) {
    const button = make("button", "link", "attention");
    button.type = "button";
    Object.assign(button.dataset, { map: number, index });
    button.setAttribute("aria-label", `All attention weights: ${lineOf(index)}, system ${system.letter}`);
    line.append(" · ", button);
  }
  return make("dd", "", ...parts, line);
}

function sentence(index, heading = "h3", shown = systems.keys()) {
  const made = make("li", "sentence");
  made.dataset.line = index + 1;
  const head = make("div", "head", make(heading, "", lineOf(index)));
  const about = make("p", "facts", plural(data.lengths[index], `${data.lengthOf} ${data.unit}`));
  if (data.rarest[index]) {
    const [word, times] = data.rarest[index];
    about.append(" · rarest word: ", make("bdi", "", word), ` (${times.toLocaleString("en")})`);
  }
  head.append(about);
  const list = make("dl", "");
  if (source) {
    const spoken = systems.some((_, number) => attended(number, index));
    const parts = paragraph(source, index, "", spoken);
    parts[0].classList.add("source");
    if (spoken) {
      const end = make("span", "word end", data.end);
      end.dir = "ltr"; // or its brackets would be mirrored
      end.dataset.place = wordsOf(source.texts[index]).length;
      parts[0].append(" ", end);
    }
    list.append(make("dt", "", "Source"), make("dd", "", ...parts));
  }
  references.forEach((column, number) => {
    const name = references.length > 1 ? `Reference ${number + 1}` : "Reference";
    list.append(make("dt", "", name), make("dd", "", ...paragraph(column, index, "missing", false)));
  });
  for (const number of shown) {
    list.append(make("dt", "", badge(number), " ", make("bdi", "", systems[number].name)), translation(number, index));
  }
  made.append(head, list);
  return made;
}

// ---------------------------------------------------------------------------------------------------------- attention

function quiet() {
  for (const word of document.querySelectorAll(".word[data-percent], .word.chosen, .word.spoken")) {
    word.style.backgroundColor = "";
    word.classList.remove("chosen", "spoken");
    delete word.dataset.percent;
  }
  element("said").replaceChildren();
}

function show(word) {
  quiet();
  const text = word.closest(".heard");
  const weights = weightsOf(Number(text.dataset.system), Number(text.dataset.index))[Number(word.dataset.place)];
  const sources = [...text.closest(".sentence").querySelectorAll(".source .word")];
  if (!weights) return;
  const strongest = Math.max(...weights);
  word.classList.add("spoken");
  sources.forEach((one, place) => {
    if (weights[place] < FAINT) return;
    one.style.backgroundColor = `color-mix(in srgb, var(--weight) ${Math.round(15 + 85 * weights[place])}%, transparent)`;
    one.dataset.percent = Math.round(100 * weights[place]);
    one.classList.toggle("chosen", weights[place] === strongest);
  });
  const order = sources.map((_, place) => place).sort((one, other) => weights[other] - weights[one]);
  const said = element("said");
  said.append(make("bdi", "", word.textContent), " ← ");
  order.slice(0, NAMED).filter((place, rank) => !rank || weights[place] >= FAINT).forEach((place, rank) => {
    said.append(rank ? ", " : "", make("bdi", "", sources[place].textContent), ` ${Math.round(100 * weights[place])}%`);
  });
}

function openMap(number, index, here) {
  quiet();
  const weights = weightsOf(number, index);
  const columns = [...wordsOf(source.texts[index]), data.end];
  const table = make("table", "map");
  const top = make("tr", "", make("td", ""));
  top.firstChild.style.background = "none";
  for (const word of columns) {
    const cell = make("th", "", make("span", "", word));
    cell.firstChild.dir = "auto";
    cell.scope = "col";
    cell.title = word;
    top.append(cell);
  }
  const body = make("tbody", "");
  wordsOf(translations[number].texts[index]).forEach((word, place) => {
    const head = make("th", "", make("bdi", "", word));
    head.scope = "row";
    head.title = word;
    const row = make("tr", place === here ? "here" : "", head);
    for (const weight of weights[place] || []) {
      const percent = Math.round(100 * weight);
      const cell = make("td", "", percent ? String(percent) : "");
      if (percent) cell.style.backgroundColor = `color-mix(in srgb, var(--weight) ${percent}%, var(--track))`;
      row.append(cell);
    }
    body.append(row);
  });
  table.append(make("thead", "", top), body);
  const shown = document.querySelector(`.sentence[data-line="${index + 1}"] .source`);
  table.dir = shown ? getComputedStyle(shown).direction : "ltr";
  element("map-title").replaceChildren(`${lineOf(index)}: attention of `, badge(number), " ");
  element("map-title").append(make("bdi", "", systems[number].name));
  element("map-table").replaceChildren(table);
  element("map").showModal();
}

function moved(event) {
  const word = event.target.closest(".heard .word");
  if (!word) return;
  if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's, such as Alt+Left for the page before
  const text = word.closest(".heard");
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openMap(Number(text.dataset.system), Number(text.dataset.index), Number(word.dataset.place));
    return;
  }
  const words = [...text.querySelectorAll(".word")];
  const at = words.indexOf(word);
  const right = getComputedStyle(text).direction === "rtl" ? -1 : 1;
  const steps = { ArrowRight: right, ArrowLeft: -right, Home: -at, End: words.length - 1 - at };
  const next = words[at + steps[event.key]];
  if (!next) return;
  event.preventDefault();
  reachable(next);
  next.focus();
  for (const name of ["tabindex", "role", "aria-haspopup"]) word.removeAttribute(name);
}

function listen() {
  const main = document.querySelector("main");
  const heard = (handle) => (event) => {
    const word = event.target.closest(".heard .word");
    if (word) handle(word, event);
  };
  main.addEventListener("mouseover", heard(show));
  main.addEventListener("mouseout", heard(quiet));
  main.addEventListener("focusin", heard(show));
  main.addEventListener("focusout", heard(quiet));
  main.addEventListener("keydown", moved);
  main.addEventListener("click", (event) => {
    const word = event.target.closest(".heard .word");
    const button = event.target.closest("[data-map]");
    if (button) openMap(Number(button.dataset.map), Number(button.dataset.index), -1);
    if (word) {
      const { system, index } = word.closest(".heard").dataset;
      openMap(Number(system), Number(index), Number(word.dataset.place));
    }
  });
  element("close").addEventListener("click", () => element("map").close());
  element("map").addEventListener("click", (event) => {
    const { left, right, top, bottom } = element("map").getBoundingClientRect();
    const inside = event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
    if (event.target === element("map") && !inside) element("map").close();
  });
}

// ------------------------------------------------------------------------------------------- search, filter and order

// What is searched: all texts of a sentence.
function texts(index) {
  if (!state.searched) {
    const columns = [...(source ? [source] : []), ...references, ...translations];
    state.searched = data.lengths.map((_, place) => columns.map((one) => one.texts[place]).join("\n").toLowerCase().normalize());
  }
  return state.searched[index];
}

const scoreOf = (number, key) => (index) => systems[number].scores[key][index];
const difference = (one, other, key) => (index) => scoreOf(one, key)(index) - scoreOf(other, key)(index);

const filters = { all: ["all sentences", () => true] };
const orders = { line: ["line", (index) => index], length: [`${data.lengthOf} length`, (index) => data.lengths[index]] };

function define() {
  if (several) filters.differ = ["where systems differ", (index) => data.differ[index]];
  for (const [number, system] of systems.entries()) {
    const { letter } = system;
    filters[`wrong${number}`] = [`${letter}: differs from all references`, (index) => !system.right[index]];
    filters[`right${number}`] = [`${letter}: equals a reference`, (index) => system.right[index]];
    filters[`short${number}`] = [`${letter}: shorter than ${SHORT} × reference`, (index) => system.ratios[index] !== null && system.ratios[index] < SHORT];
    filters[`long${number}`] = [`${letter}: longer than ${LONG} × reference`, (index) => system.ratios[index] > LONG];
    filters[`repeated${number}`] = [`${letter}: with repetition`, (index) => system.repeated[index] > 0];
    filters[`unknown${number}`] = [`${letter}: with unknown words`, (index) => system.unknown[index] > 0];
    for (const { title, key } of metrics) orders[`${key}${number}`] = [`${title} of ${letter}`, scoreOf(number, key)];
    orders[`ratio${number}`] = [`length ratio of ${letter}`, (index) => system.ratios[index] ?? 0];
  }
  if (data.rarest.some(Boolean)) {
    orders.rarest = ["frequency of the rarest word", (index) => (data.rarest[index] ? data.rarest[index][1] : -1)];
  }
  for (const [number, system] of systems.entries()) {
    if (!number) continue;
    for (const { title, key } of metrics) {
      orders[`gain${key}${number}`] = [`${title} of ${system.letter} − ${systems[0].letter}`, difference(number, 0, key)];
    }
  }
  for (const [key, [text]] of Object.entries(filters)) element("filter").append(option(key, text));
  for (const [key, [text]] of Object.entries(orders)) element("order").append(option(key, text));
  element("group").append(option("", "all"));
  groupings.forEach((grouping, number) => {
    const part = make("optgroup", "");
    part.label = number ? "rarest word occurs" : `${data.lengthOf} ${data.unit}s`;
    part.append(...grouping.labels.map((label, place) => option(`${number} ${place}`, number ? `${label} ×` : label)));
    element("group").append(part);
  });
}

function choose() {
  const query = element("query").value.toLowerCase().normalize();
  const passes = filters[element("filter").value][1];
  const [grouping, place] = element("group").value.split(" ").map(Number);
  const inGroup = element("group").value ? (index) => groupings[grouping].of[index] === place : () => true;
  const value = orders[element("order").value][1];
  const sign = state.descending ? -1 : 1;
  const chosen = [];
  for (let index = 0; index < count; index++) {
    if (inGroup(index) && passes(index) && (!query || texts(index).includes(query))) chosen.push([value(index), index]);
  }
  chosen.sort((one, other) => sign * (one[0] - other[0]) || one[1] - other[1]);
  state.order = chosen.map(([, index]) => index);
  const all = plural(count, "sentence");
  const some = chosen.length ? `${chosen.length.toLocaleString("en")} of ${all}` : "No sentence matches.";
  element("count").textContent = chosen.length === count ? all : some;
  element("clear").hidden = !(query || element("filter").value !== "all" || element("group").value);
  turn(0);
}

function turn(page) {
  const pages = Math.max(1, Math.ceil(state.order.length / PAGE));
  state.page = Math.min(Math.max(page, 0), pages - 1);
  const shown = state.order.slice(state.page * PAGE, (state.page + 1) * PAGE);
  quiet();
  element("list").replaceChildren(...shown.map((index) => sentence(index)));
  element("page").value = state.page + 1;
  element("page").max = pages;
  element("pages").textContent = pages.toLocaleString("en");
  element("previous").disabled = state.page === 0;
  element("next").disabled = state.page === pages - 1;
}

function turnAndGo(page) {
  turn(page);
  element("sentences").focus();
  element("sentence-section").scrollIntoView();
}

function direct(descending) {
  state.descending = descending;
  element("direction").textContent = descending ? "↓ highest first" : "↑ lowest first";
}

function clear() {
  element("query").value = "";
  element("filter").value = "all";
  element("group").value = "";
  choose();
}

// ------------------------------------------------------------------------------------------------------------ extremes

function extremes() {
  const [first, second] = [Number(element("first").value), Number(element("second").value)];
  const { key, title, better: direction } = metrics[Number(element("measure").value)];
  element("extremes").replaceChildren();
  if (first === second) {
    element("extremes").append(make("p", "note", "These are one and the same system."));
    return;
  }
  const listed = count < data.sentences ? ` of the first ${count.toLocaleString("en")}` : "";
  for (const [better, worse] of [[first, second], [second, first]]) {
    const gain = direction === "higher" ? difference(better, worse, key) : difference(worse, better, key);
    const indices = [...data.lengths.keys()].filter((index) => gain(index) > 0);
    indices.sort((one, other) => gain(other) - gain(one) || one - other);
    const number = plural(indices.length, "sentence");
    const heading = make("h3", "title", badge(better), ` is better in ${number}${listed}`);
    const list = make("ol", "list");
    for (const index of indices.slice(0, EXTREMES)) {
      const item = sentence(index, "h4", [better, worse]);
      item.querySelector(".head").append(make("p", "facts", `${direction === "higher" ? "+" : "−"}${round(gain(index))} ${title}`));
      list.append(item);
    }
    element("extremes").append(make("div", "", heading, list));
  }
}

function prepareExtremes() {
  systems.forEach((system, number) => {
    for (const id of ["first", "second"]) element(id).append(option(number, `${system.letter} ${system.name}`));
  });
  element("second").value = 1;
  metrics.forEach(({ title }, number) => element("measure").append(option(number, title)));
  element("measure").value = metrics.length - 1; // as chrF2, which says more of a single sentence than BLEU
  for (const id of ["first", "second", "measure"]) element(id).addEventListener("change", extremes);
  element("difference-section").hidden = false;
  extremes();
}

function begin() {
  define();
  direct(false);
  listen();
  element("sentence-section").hidden = false;
  element("hint").hidden = !systems.some((system) => system.attention);
  element("query").addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(choose, PAUSE);
  });
  for (const id of ["filter", "group", "order"]) element(id).addEventListener("change", choose);
  element("direction").addEventListener("click", () => {
    direct(!state.descending);
    choose();
  });
  element("clear").addEventListener("click", clear);
  element("previous").addEventListener("click", () => turnAndGo(state.page - 1));
  element("next").addEventListener("click", () => turnAndGo(state.page + 1));
  element("page").addEventListener("change", () => turnAndGo(Math.round(Number(element("page").value) || 1) - 1));
  for (const button of document.querySelectorAll("[data-grouping]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      clear();
      element("group").value = `${button.dataset.grouping} ${button.dataset.group}`;
      choose();
      element("sentences").focus();
      element("sentence-section").scrollIntoView();
    });
  }
  if (several) prepareExtremes();
  choose();
}

begin();
