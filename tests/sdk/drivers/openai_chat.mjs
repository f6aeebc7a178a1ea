// openai, chat completions.

import OpenAI from "openai";
import { city, model, result, tell, url } from "./telling.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
const tools = [{ type: "function", function: { name: "get_weather", parameters: city } }];

async function ask(said, stream, messages = [{ role: "user", content: said }]) {
  if (!stream) return told(await client.chat.completions.create({ model, messages, tools }));
  const options = { model, messages, tools, stream_options: { include_usage: true } };
  const chunks = client.chat.completions.stream(options);
  const pieces = [];
  chunks.on("content", (delta) => pieces.push(delta));
  return { ...told(await chunks.finalChatCompletion()), pieces };
}

function told({ choices: [choice], usage }) {
  const calls = (choice.message.tool_calls ?? []).map((call) => [call.id, call.function.name, call.function.arguments]);
  const spent = [usage.prompt_tokens, usage.completion_tokens];
  return { text: choice.message.content ?? "", calls, stop: choice.finish_reason, usage: spent };
}

async function secondTurn(stream) {
  const user = { role: "user", content: "tools" };
  const { message } = (await client.chat.completions.create({ model, messages: [user], tools })).choices[0];
  const results = message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: result }));
  return ask("", stream, [user, message, ...results]);
}

function fail(error) {
  return { status: error.status, message: error.error?.message, retry_after: error.headers?.get("retry-after") };
}

async function models() {
  return (await client.models.list()).data.map((one) => one.id);
}

await tell({ ask, secondTurn, fail, models });
