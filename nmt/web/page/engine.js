// A model in ONNX Runtime, from the graphs that nmt/decoding/graph.py describes: what `search` steps through.
import * as runtime from "./runtime.js";

const NEXT = "next."; // before the names of the tensors of the next state
const integers = (values, shape) => new runtime.Tensor("int64", BigInt64Array.from(values, BigInt), shape);

// The content of a packed file.
export async function unpacked(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`The file ${name} is missing (${response.status}).`);
  try {
    const content = response.body.pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(content).arrayBuffer());
  } catch {
    throw new Error(`The file ${name} is damaged, or did not arrive as a whole.`);
  }
}

export class Engine {
  // `described`: files, and block, of how many columns at first only the largest is looked at
  static async load(described, vocabulary) {
    const { program, encoder, step } = described.files;
    const [wasm, ...graphs] = await Promise.all([program, encoder, step].map(unpacked));
    Object.assign(runtime.env.wasm, { wasmBinary: wasm.buffer, numThreads: 1 });
    runtime.env.logLevel = "error";
    const engine = Object.assign(new Engine(), { block: described.block, vocabulary });
    engine.encoder = await runtime.InferenceSession.create(graphs[0]);
    engine.stepper = await runtime.InferenceSession.create(graphs[1]);
    engine.carried = engine.stepper.outputNames.filter((name) => name.startsWith(NEXT));
    engine.aligned = engine.stepper.outputNames.filter((name) => name === "weights");
    return engine;
  }

  async start(source) {
    const inputs = { source: integers(source, [1, source.length]), source_lengths: integers([source.length], [1]) };
    return { tensors: await this.encoder.run(inputs), steps: 0 };
  }

  async step(tokens, { tensors, steps }, wanted) {
    const isListed = wanted !== null && wanted * this.block <= this.vocabulary; // else there are too few blocks
    const inputs = {
      ...tensors,
      tokens: integers(tokens, [tokens.length]),
      wanted: integers([isListed ? wanted : 1], []),
      steps: integers([steps], []),
    };
    const read = Object.fromEntries(this.stepper.inputNames.map((name) => [name, inputs[name]]));
    const results = isListed ? ["scores", "ids"] : ["log_probabilities"];
    const outputs = await this.stepper.run(read, [...results, ...this.aligned, ...this.carried]);
    const following = { ...tensors };
    for (const name of this.carried) following[name.slice(NEXT.length)] = outputs[name];
    return {
      values: outputs[results[0]].data,
      ids: isListed ? outputs.ids.data : null,
      columns: outputs[results[0]].dims[1],
      weights: outputs.weights?.data,
      state: { tensors: following, steps: steps + 1 },
    };
  }

  // The state of these rows.
  select({ tensors, steps }, rows) {
    const selected = { ...tensors };
    for (const name of this.carried.map((one) => one.slice(NEXT.length))) {
      const { type, data, dims } = tensors[name];
      const size = data.length / dims[0];
      const chosen = new data.constructor(rows.length * size);
      rows.forEach((row, place) => chosen.set(data.subarray(row * size, (row + 1) * size), place * size));
      selected[name] = new runtime.Tensor(type, chosen, [rows.length, ...dims.slice(1)]);
    }
    return { tensors: selected, steps };
  }
}
