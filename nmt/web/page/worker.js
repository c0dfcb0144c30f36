// Translates in a thread of its own: for {id, text} it answers a message for each line, until another text comes.
import { Engine, unpacked } from "./engine.js";
import { search } from "./search.js";
import { Subwords, oneLine, wordsIn } from "./subwords.js";

const UNKNOWN = 1;
const ALTERNATIVES = 2; // besides the best translation
// What nmt-translate shows a model in another way, or not at all: addresses, placeholders, emoji, what stands around a
// sentence, and capitals
const UNUSUAL = new RegExp(
  "https?:|www\\.|\\S@\\S|[{}<>\\\\]|[%$][A-Za-z(]|\\p{Extended_Pictographic}" +
    "|^\\s*(\\(?\\d{1,3}[.)]|[-–•*])\\s|^(?=(\\P{Lu}*\\p{Lu}){5})[^\\p{Ll}\\p{Lo}]*$",
  "u",
);

async function load() {
  const response = await fetch("model.json", { cache: "no-cache" });
  if (!response.ok) throw new Error(`The file model.json is missing (${response.status}).`);
  const described = await response.json();
  const content = new TextDecoder().decode(await unpacked(described.files.subwords));
  const [source, target] = JSON.parse(content).map((model) => new Subwords(model));
  return { ...described, source, target, engine: await Engine.load(described, target.pieces.length) };
}

// The attention of the words of a translation to those of a line, and to its end.
function alignment(line, pieces, parts, attention) {
  const [sources, targets] = [wordsIn(line), wordsIn(parts.join(""))];
  const wordAt = (words, place) => {
    const found = words.findIndex((word) => word.index + word[0].length > place);
    return found < 0 ? words.length - 1 : found;
  };
  const columns = [...pieces.map(({ at }) => wordAt(sources, at)), sources.length];
  const weights = targets.map(() => new Array(sources.length + 1).fill(0));
  const counts = targets.map(() => 0);
  let place = 0;
  parts.forEach((part, row) => {
    const word = targets.length ? wordAt(targets, place) : -1;
    place += part.length;
    if (word < 0) return;
    counts[word]++;
    attention[row].forEach((weight, column) => (weights[word][columns[column]] += weight));
  });
  return {
    source: sources.map(String),
    target: targets.map(String),
    weights: weights.map((row, word) => row.map((weight) => weight / Math.max(counts[word], 1))),
  };
}

async function translated(line, { source, target, engine, decoding, longest }) {
  const isLong = line.length > longest * source.longest; // which is seen before it is cut, in time as its square
  const pieces = isLong ? [] : source.encode(line);
  if (isLong || pieces.length > longest) return { texts: [""], isTooLong: true };
  if (!pieces.length) return { texts: [""] };
  const ids = pieces.map(({ id }) => id);
  const found = await search(engine, ids, decoding, Math.min(ALTERNATIVES + 1, decoding.beam_size));
  const parts = found.map(({ tokens }) => target.parts(tokens));
  return {
    texts: parts.map((one) => oneLine(one.join(""))),
    alignment: found[0].attention && alignment(line, pieces, parts[0], found[0].attention),
    isUnknown: ids.includes(UNKNOWN),
    isUnusual: UNUSUAL.test(line),
  };
}

const model = load();
let latest = 0;
let before = model;

async function translate(id, text) {
  const loaded = await model;
  for (const [number, line] of text.normalize("NFC").split("\n").entries()) {
    if (id !== latest) return;
    postMessage({ id, number, ...(await translated(line, loaded)) });
    await new Promise((resolve) => setTimeout(resolve)); // so that a newer text is heard of
  }
}

const failed = (error, id) => postMessage({ id, error: error.message });
onmessage = ({ data: { id, text } }) => {
  latest = id;
  before = before.then(() => translate(id, text)).catch((error) => failed(error, id));
};
model.then(() => postMessage({ isReady: true }), (error) => failed(error));
