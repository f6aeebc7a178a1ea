// ollama, chat.

import { Ollama } from "ollama";
import { city, model, result, tell, url } from "./telling.mjs";

const client = new Ollama({ host: url });
const tools = [{ type: "function", function: { name: "get_weather", description: "", parameters: city } }];

async function ask(said, stream, messages = [{ role: "user", content: said }]) {
  if (!stream) return told(await client.chat({ model, messages, tools }));
  const parts = [];
  for await (const part of await client.chat({ model, messages, tools, stream: true })) parts.push(part);
  const pieces = parts.map((part) => part.message.content).filter(Boolean);
  const calls = listed(parts.flatMap((part) => part.message.tool_calls ?? []));
  return { ...told(parts.at(-1)), text: pieces.join(""), calls, pieces };
}

function told({ message, done_reason: stop, prompt_eval_count: given, eval_count: said }) {
  return { text: message.content, calls: listed(message.tool_calls ?? []), stop, usage: [given, said] };
}

function listed(calls) {
  return calls.map((call, number) => [String(number), call.function.name, JSON.stringify(call.function.arguments)]);
}

async function secondTurn(stream) {
  const user = { role: "user", content: "tools" };
  const { message } = await client.chat({ model, messages: [user], tools });
  const results = message.tool_calls.map((call) => ({ role: "tool", tool_name: call.function.name, content: result }));
  return ask("", stream, [user, message, ...results]);
}

function fail(error) {
  return { status: error.status_code, message: error.error ?? error.message };
}

async function models() {
  return (await client.list()).models.map((one) => one.name);
}

await tell({ ask, secondTurn, fail, models });
