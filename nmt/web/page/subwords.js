// Subword models: text to ids and back, as sentencepiece does it, from what nmt/web/export.py reads of a model.
const UNKNOWN = 1; // also the id of the piece; the next four are types of pieces
const [NORMAL, CONTROL, USER, BYTE] = [1, 3, 4, 6];
const START = "▁"; // begins a word
const PENALTY = 10; // how much less than the worst piece an unknown character scores
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Python's
const WORDS = new RegExp(`[^${SPACE}]+`, "g");
const OUTER_SPACE = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "g");
const LINE_END = /\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029]/;

const utf8 = new TextEncoder();
const plain = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

export const wordsIn = (text) => [...text.matchAll(WORDS)];
export const oneLine = (text) => text.split(LINE_END).join(" ").replace(OUTER_SPACE, "");

// Rules of normalization: a double array (Darts) of what they replace, in UTF-8, and then what by.
class Rules {
  constructor(encoded) {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    const size = bytes.length ? new DataView(bytes.buffer).getUint32(0, true) : 0;
    this.units = new Uint32Array(bytes.slice(4, 4 + size).buffer);
    this.results = bytes.subarray(4 + size);
  }

  // What the longest rule for the bytes from a place on gives, and where it ends; undefined without one.
  longest(bytes, start) {
    const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
    let found;
    let node = this.units.length ? offset(this.units[0]) : 0;
    for (let place = start; place < bytes.length && this.units.length; place++) {
      node ^= bytes[place];
      const unit = this.units[node];
      if ((unit & 0x800000ff) !== bytes[place]) break;
      node ^= offset(unit);
      if (unit & 0x100) found = [this.units[node] & 0x7fffffff, place + 1];
    }
    if (!found) return undefined;
    const [first, end] = found;
    return [plain.decode(this.results.subarray(first, this.results.indexOf(0, first))), end];
  }
}

export class Subwords {
  // `model`: type, pieces, types, scores, unknownText, rules, dummyPrefix, removesSpaces, byWord, and joiner, which is
  // null where its words are not those of a vocabulary.
  constructor(model) {
    Object.assign(this, model);
    this.rules = new Rules(model.rules);
    this.ids = new Map();
    this.bytes = new Map(); // byte → id
    this.symbols = []; // that are never cut, the longest first
    this.pieces.forEach((piece, id) => {
      if (this.types[id] === BYTE) this.bytes.set(parseInt(piece.slice(3, -1), 16), id);
      if (this.types[id] === USER) this.symbols.push(piece);
      if (this.types[id] === USER || this.types[id] === NORMAL) this.ids.set(piece, id);
    });
    this.symbols.sort((one, other) => other.length - one.length);
    const scores = this.scores.filter((_, id) => this.types[id] === NORMAL);
    this.best = scores.reduce((one, other) => Math.max(one, other), 0);
    this.unknownScore = Math.fround(scores.reduce((one, other) => Math.min(one, other), Infinity) - PENALTY);
    this.longest = this.pieces.reduce((length, piece) => Math.max(length, piece.length), 1);
  }

  // The pieces of a line: their ids, and where in the line each begins.
  encode(line) {
    if (!this.byWord) return this.cut(line, 0);
    return wordsIn(line).flatMap((word) =>
      this.joiner === null ? this.cut(word[0], word.index) : [{ id: this.idOf(START + word[0]), at: word.index }],
    );
  }

  // What each id adds to the text.
  parts(ids) {
    if (this.joiner !== null) return this.joined(ids.map((id) => (id === UNKNOWN ? "⁇" : this.pieces[id].slice(1))));
    const parts = ids.map((id) => {
      if (id === UNKNOWN) return this.unknownText;
      return this.types[id] === CONTROL ? "" : this.pieces[id].replaceAll(START, " ");
    });
    for (let first = 0; first < ids.length; ) { // characters in bytes
      if (this.types[ids[first]] !== BYTE) {
        first++;
        continue;
      }
      const byte = (place) => parseInt(this.pieces[ids[place]].slice(3, -1), 16);
      const lead = byte(first);
      const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
      let last = first + 1;
      while (last < first + length && this.types[ids[last]] === BYTE) last++;
      try {
        parts[first] = strict.decode(Uint8Array.from({ length: last - first }, (_, place) => byte(first + place)));
        parts.fill("", first + 1, last);
      } catch {
        parts[first] = "\ufffd"; // this byte by itself
        last = first + 1;
      }
      first = last;
    }
    return parts;
  }

  // Words with spaces between them, but behind those that end with the joiner.
  joined(words) {
    let space = "";
    return words.map((word) => {
      const goesOn = this.joiner !== "" && word.endsWith(this.joiner);
      const part = space + (goesOn ? word.slice(0, -this.joiner.length) : word);
      space = goesOn ? "" : " ";
      return part;
    });
  }

  idOf(piece) {
    return this.ids.get(piece) ?? UNKNOWN;
  }

  symbolAt(text, place) {
    return this.symbols.find((symbol) => text.startsWith(symbol, place));
  }

  cut(text, first) {
    const found = [];
    for (const { piece, at } of this.segmented(this.normalized(text))) {
      const id = this.idOf(piece);
      if (id === UNKNOWN && this.bytes.size) {
        for (const byte of utf8.encode(piece)) found.push({ id: this.bytes.get(byte), at: at + first });
      } else if (id !== UNKNOWN || !found.length || found.at(-1).id !== UNKNOWN) { // several unknown ones are one
        found.push({ id, at: at + first });
      }
    }
    return found;
  }

  // The characters, with ▁ for spaces, and the places where they come from; a symbol is one of them.
  normalized(text) {
    const bytes = utf8.encode(text);
    const ends = []; // of characters: byte → place in the text
    let byte = 0;
    for (let place = 0; place < text.length; ) {
      const character = String.fromCodePoint(text.codePointAt(place));
      byte += utf8.encode(character).length;
      place += character.length;
      ends[byte] = place;
    }
    const found = this.dummyPrefix && text ? [{ piece: START, at: 0 }] : [];
    let afterSpace = this.removesSpaces;
    byte = 0;
    for (let at = 0; at < text.length; ) {
      const symbol = this.symbolAt(text, at);
      let end;
      let [result, stop] = symbol ? [symbol] : (this.rules.longest(bytes, byte) ?? []);
      if (stop !== undefined) {
        end = ends[stop];
      } else {
        result ??= plain.decode(utf8.encode(String.fromCodePoint(text.codePointAt(at)))); // of half a pair U+FFFD
        end = at + result.length;
        stop = byte + utf8.encode(result).length;
      }
      if (afterSpace) result = result.replace(/^ +/, "");
      if (result) afterSpace = this.removesSpaces && result.endsWith(" ");
      for (const character of result) found.push({ piece: character === " " ? START : character, at });
      [at, byte] = [end, stop];
    }
    while (this.removesSpaces && found.length && found.at(-1).piece === START) found.pop();
    return this.withSymbols(found);
  }

  withSymbols(characters) {
    if (!this.symbols.length) return characters;
    const text = characters.map(({ piece }) => piece).join("");
    const found = [];
    let place = 0;
    for (let next = 0; next < characters.length; ) {
      const piece = this.symbolAt(text, place) ?? characters[next].piece;
      found.push({ piece, at: characters[next].at, isSymbol: piece !== characters[next].piece });
      place += piece.length;
      next += [...piece].length;
    }
    return found;
  }

  segmented(characters) {
    if (this.type === "bpe") return this.merged(characters);
    if (this.type === "unigram") return this.mostProbable(characters);
    if (this.type === "char") return characters;
    const words = []; // sentencepiece's own models of words
    for (const { piece, at } of characters) {
      if (piece.startsWith(START) || !words.length) words.push({ piece, at });
      else words.at(-1).piece += piece;
    }
    return words;
  }

  // Sennrich et al. 2016: the best pair of neighbors becomes one, of equal ones the first, until none is a piece.
  merged(pieces) {
    const score = (left, right) => {
      if (!right || left.isSymbol || right.isSymbol) return -Infinity;
      return this.scores[this.ids.get(left.piece + right.piece)] ?? -Infinity;
    };
    const found = pieces.map((one) => ({ ...one }));
    const scores = found.map((one, place) => score(one, found[place + 1]));
    for (;;) {
      let best = -1;
      scores.forEach((one, place) => {
        if (one > (scores[best] ?? -Infinity)) best = place;
      });
      if (best < 0) return found;
      found[best].piece += found[best + 1].piece;
      found.splice(best + 1, 1);
      scores.splice(best + 1, 1);
      scores[best] = score(found[best], found[best + 1]);
      if (best) scores[best - 1] = score(found[best - 1], found[best]);
    }
  }

  // Kudo 2018: the pieces whose scores, in float32 as there, have the largest sum.
  mostProbable(pieces) {
    const characters = pieces.flatMap(({ piece, at }) => [...piece].map((character) => ({ piece: character, at })));
    const paths = characters.map(() => null); // by the last character: the score so far, and where the piece begins
    characters.forEach((_, first) => {
      const before = first ? paths[first - 1].score : 0;
      const offer = (last, score) => {
        if (paths[last] === null || before + score > paths[last].score) {
          paths[last] = { score: Math.fround(before + score), first };
        }
      };
      let piece = "";
      for (let last = first; last < characters.length && piece.length < this.longest; last++) {
        piece += characters[last].piece;
        const id = this.ids.get(piece);
        if (id === undefined) continue;
        const isSymbol = this.types[id] === USER; // which has a bonus, so that it wins
        offer(last, isSymbol ? utf8.encode(piece).length * this.best - 0.1 : this.scores[id]);
      }
      if (!this.ids.has(characters[first].piece)) offer(first, this.unknownScore);
    });
    const found = [];
    for (let end = characters.length; end > 0; ) {
      const { first } = paths[end - 1];
      const piece = characters.slice(first, end).map((one) => one.piece).join("");
      found.unshift({ piece, at: characters[first].at });
      end = first;
    }
    return found;
  }
}
