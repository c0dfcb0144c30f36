// Beam search for one sentence, as nmt/decoding/search does it: the same rules, ties and stopping. Sums are float64.
// `engine` knows the model: start(source) and step(tokens, state, wanted) as below, and select(state, rows).
const [PAD, UNKNOWN, BEGIN, END] = [0, 1, 2, 3];
const LEAST = 1e-10; // of attention, in the coverage penalty

// ⌈ratio × length⌉ of the ratio as it is written: 1.1 × 50 is 55, not 55.00000000000001.
const times = (ratio, length) => Math.ceil(Number((ratio * length).toPrecision(12)));

function penalty(length, kind) {
  if (kind === "none") return 1;
  return kind === "average" ? length : ((5 + length) / 6) ** kind;
}

// A hypothesis and those it continues, from its first token on.
function chain(hypothesis) {
  const found = [];
  for (let one = hypothesis; one.before; one = one.before) found.unshift(one);
  return found;
}

// Forbids what the rules of the configuration do in the log-probabilities of a row; where nothing is left, END may come.
function forbid(row, tokens, least, decoding) {
  const end = row[END];
  row[PAD] = row[BEGIN] = -Infinity;
  if (tokens.length < least) row[END] = -Infinity;
  if (decoding.suppress_unknown) row[UNKNOWN] = -Infinity;
  const size = decoding.no_repeat_ngram_size;
  const begun = tokens.slice(tokens.length - size + 1);
  for (let first = 0; size && first + size <= tokens.length; first++) {
    if (begun.every((token, place) => token === tokens[first + place])) row[tokens[first + size - 1]] = -Infinity;
  }
  if (row.every((value) => value === -Infinity)) row[END] = end;
}

// The best `count` continuations, best first; of equal ones that of the better hypothesis, then of the smaller token.
function continuations(live, { values, ids, columns }, count) {
  const best = [];
  live.forEach((before, row) => {
    for (let place = row * columns; place < (row + 1) * columns; place++) {
      const token = ids ? Number(ids[place]) : place - row * columns;
      const total = before.total + values[place];
      if (Number.isNaN(total)) throw new Error("the model computes no numbers (NaN)");
      if (token === PAD || token === BEGIN || total === -Infinity) continue;
      if (best.length === count && total <= best[count - 1].total) continue;
      let at = Math.min(best.length, count - 1);
      while (at > 0 && best[at - 1].total < total) at--;
      best.splice(at, 0, { total, token, before, row });
      best.length = Math.min(best.length, count);
    }
  });
  return best;
}

// The `count` best translations of the ids `source`, or fewer: their tokens, score, and the attention of each token.
// step: {values, ids, columns, weights, state}; of each row all log-probabilities (ids null), or the `wanted` largest.
export async function search(engine, source, decoding, count = 1) {
  const beam = decoding.beam_size;
  const limit = Math.max(times(decoding.max_length_ratio, source.length + 1) + decoding.max_length_extra, 2);
  const shortest = Math.max(decoding.minimum_length, times(decoding.minimum_length_ratio, source.length));
  const least = Math.min(limit - 1, shortest);
  const hasRules = least > 0 || decoding.suppress_unknown || decoding.no_repeat_ngram_size > 0;
  let state = await engine.start([...source, END]);
  let live = [{ total: 0, token: BEGIN, before: null, coverage: new Float32Array(source.length + 1) }];
  const finished = []; // the best first
  let ended = 0;
  for (let length = 1; live.length; length++) {
    const tokens = live.map(({ token }) => token);
    const scores = await engine.step(tokens, state, hasRules || length === limit ? null : 2 * beam + 2);
    const { values, columns, weights } = scores;
    live.forEach((hypothesis, row) => {
      const ofRow = values.subarray(row * columns, (row + 1) * columns);
      if (hasRules) forbid(ofRow, chain(hypothesis).map(({ token }) => token), least, decoding);
      if (length === limit) ofRow.fill(-Infinity, 0, END).fill(-Infinity, END + 1);
    });
    const following = continuations(live, scores, 2 * beam);
    for (const one of following) {
      one.weights = weights?.subarray(one.row * (source.length + 1), (one.row + 1) * (source.length + 1));
      one.coverage = one.before.coverage.map((sum, place) => sum + (weights ? one.weights[place] : 0));
    }
    for (const one of following.slice(0, beam).filter(({ token }) => token === END)) {
      ended++;
      one.score = one.total / penalty(length, decoding.length_penalty);
      if (decoding.coverage_penalty) {
        const logarithms = [...one.coverage].map((sum) => Math.log(Math.min(Math.max(sum, LEAST), 1)));
        const sum = logarithms.reduce((sum, logarithm) => sum + logarithm, 0);
        one.score += decoding.coverage_penalty * (decoding.length_penalty === "average" ? sum / logarithms.length : sum);
      }
      const place = finished.findIndex(({ score }) => score < one.score);
      finished.splice(place < 0 ? finished.length : place, 0, one);
    }
    live = following.filter(({ token }) => token !== END).slice(0, beam);
    const first = live[0]?.total ?? -Infinity;
    const [best, worst] = [finished[0], finished[count - 1]].map((one) => one?.score ?? -Infinity);
    const isSettled = ended >= beam && best >= first / penalty(length, decoding.length_penalty);
    if (length === limit || isSettled || worst >= first / penalty(limit, decoding.length_penalty)) break;
    state = engine.select(scores.state, live.map(({ row }) => row));
  }
  if (!finished.length) throw new Error("the model gives every translation the probability 0");
  return finished.slice(0, count).map(({ before, score, weights }) => {
    const tokens = chain(before);
    return { tokens: tokens.map(({ token }) => token), score, attention: weights && tokens.map((one) => one.weights) };
  });
}
