// What subwords.js and search.js give for the JSON on standard input, for tests/web/test_page.py.
import { readFileSync } from "node:fs";
import { search } from "./search.js";
import { Subwords, oneLine } from "./subwords.js";

const { texts, models, searches } = JSON.parse(readFileSync(0, "utf8"));

const cut = models.map(({ model, ids }) => {
  const subwords = new Subwords(model);
  return {
    encoded: texts.map((text) => subwords.encode(text).map(({ id }) => id)),
    places: texts.map((text) => subwords.encode(text).map(({ at }) => at)),
    decoded: ids.map((several) => oneLine(subwords.parts(several).join(""))),
  };
});

// A model in which the next token, and the attention, depend on the last token only.
class Tables {
  constructor({ table, weights, lists }) {
    Object.assign(this, { table, weights, lists });
  }

  start() {
    return 1; // row
  }

  step(tokens, rows, wanted) {
    if (tokens.length !== rows) throw new Error("rows were not selected");
    const weights = Float32Array.from(tokens.flatMap((token) => this.weights[token]));
    const columns = this.table.length;
    if (!this.lists || wanted === null || wanted > columns) {
      const values = Float64Array.from(tokens.flatMap((token) => this.table[token]));
      return { values, ids: null, columns, weights, state: rows };
    }
    const ids = tokens.flatMap((token) => {
      const row = this.table[token];
      return row.map((_, id) => id).sort((one, other) => row[other] - row[one]).slice(0, wanted);
    });
    const values = Float64Array.from(ids, (id, place) => this.table[tokens[Math.floor(place / wanted)]][id]);
    return { values, ids: BigInt64Array.from(ids, BigInt), columns: wanted, weights, state: rows };
  }

  select(_, rows) {
    return rows.length;
  }
}

const found = [];
for (const one of searches) found.push(await search(new Tables(one), one.source, one.decoding, one.count));
const written = found.map((several) => several.map(({ tokens, score, attention }) => [tokens, score, attention.length]));
process.stdout.write(JSON.stringify({ cut, found: written }));
