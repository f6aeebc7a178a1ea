// Send one message to an agent of Vercel's AI SDK: `driver.mjs INSTALL FILE LLM_URL KEY MESSAGE`.
import { createRequire } from "node:module";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { bash } from "./shell_tool.mjs";

const [install, file, url, key, message] = process.argv.slice(2);
const installed = createRequire(`${install}/`);
const { stepCountIs, streamText, tool } = installed("ai");
const { createOpenAICompatible } = installed("@ai-sdk/openai-compatible");
const { z } = installed("zod");

const messages = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
messages.push({ role: "user", content: message });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());

const shell = tool({
  description: "Run a shell command and return its output.",
  inputSchema: z.object({ command: z.string() }),
  execute: ({ command }, { abortSignal }) => bash(command, abortSignal),
});
try {
  const provider = createOpenAICompatible({ name: "fake", baseURL: `${url}/v1`, apiKey: key });
  const result = streamText({
    model: provider("gpt-4o"),
    messages,
    tools: { bash: shell },
    stopWhen: stepCountIs(20),
    abortSignal: stop.signal,
    onError: () => {}, // (it is shown below)
  });
  let failed;
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") process.stdout.write(part.text);
    if (part.type === "error") failed ??= part.error;
    if (part.type === "abort") failed ??= new Error("aborted");
  }
  if (failed) throw failed;
  messages.push(...(await result.response).messages);
  writeFileSync(`${file}.new`, JSON.stringify(messages));
  renameSync(`${file}.new`, file);
  process.stdout.write("\n");
} catch (wrong) {
  console.error(`${wrong.name}: ${wrong.message}`);
  process.exitCode = 1;
}
