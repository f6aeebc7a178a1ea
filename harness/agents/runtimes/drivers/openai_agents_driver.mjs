// Send one message to an agent of OpenAI's Agents SDK for JavaScript: `driver.mjs INSTALL FILE MESSAGE`.
import { createRequire } from "node:module";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { bash } from "./shell_tool.mjs";

const [install, file, message] = process.argv.slice(2);
const installed = createRequire(`${install}/`);
const { Agent, run, tool } = installed("@openai/agents");
const { z } = installed("zod");

const read = () => (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : []);
const write = (items) => {
  writeFileSync(`${file}.new`, JSON.stringify(items));
  renameSync(`${file}.new`, file);
};
const session = {
  getSessionId: async () => file,
  getItems: async (limit) => (limit === undefined ? read() : read().slice(-limit)),
  addItems: async (items) => write([...read(), ...items]),
  popItem: async () => {
    const items = read();
    const last = items.pop();
    write(items);
    return last;
  },
  clearSession: async () => write([]),
};

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
const shell = tool({
  name: "bash",
  description: "Run a shell command and return its output.",
  parameters: z.object({ command: z.string() }),
  execute: ({ command }) => bash(command, stop.signal),
});
try {
  const agent = new Agent({ name: "Assistant", instructions: "You are helpful.", model: "gpt-4o", tools: [shell] });
  const result = await run(agent, message, { session, stream: true, signal: stop.signal });
  for await (const words of result.toTextStream()) process.stdout.write(words);
  await result.completed;
  if (stop.signal.aborted) throw new Error("aborted");
  process.stdout.write("\n");
} catch (wrong) {
  console.error(`${wrong.name}: ${wrong.message}`);
  process.exitCode = 1;
}
