// @anthropic-ai/sdk, the Messages API.

import Anthropic from "@anthropic-ai/sdk";
import { city, model, result, tell, url } from "./telling.mjs";

const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
const tools = [{ name: "get_weather", input_schema: city }];

async function ask(said, stream, messages = [{ role: "user", content: said }]) {
  const options = { model, max_tokens: 500, messages, tools };
  if (!stream) return told(await client.messages.create(options));
  const events = client.messages.stream(options);
  const pieces = [];
  events.on("text", (delta) => pieces.push(delta));
  return { ...told(await events.finalMessage()), pieces };
}

function told({ content, stop_reason: stop, usage }) {
  const text = content.filter((block) => block.type === "text").map((block) => block.text).join("");
  const calls = content.filter((block) => block.type === "tool_use");
  return {
    text,
    calls: calls.map((call) => [call.id, call.name, JSON.stringify(call.input)]),
    stop,
    usage: [usage.input_tokens, usage.output_tokens],
  };
}

async function secondTurn(stream) {
  const user = { role: "user", content: "tools" };
  const { content } = await client.messages.create({ model, max_tokens: 500, messages: [user], tools });
  const calls = content.filter((block) => block.type === "tool_use");
  const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: result }));
  return ask("", stream, [user, { role: "assistant", content }, { role: "user", content: results }]);
}

function fail(error) {
  return { status: error.status, message: error.error?.error?.message, retry_after: error.headers?.get("retry-after") };
}

async function models() {
  return (await client.models.list()).data.map((one) => one.id);
}

await tell({ ask, secondTurn, fail, models });
