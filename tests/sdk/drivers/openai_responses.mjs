// openai, the Responses API.

import OpenAI from "openai";
import { city, model, result, tell, url } from "./telling.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
const tools = [{ type: "function", name: "get_weather", parameters: city, strict: false }];

async function ask(input, stream) {
  if (!stream) return told(await client.responses.create({ model, input, tools }));
  const events = client.responses.stream({ model, input, tools });
  const pieces = [];
  events.on("response.output_text.delta", (event) => pieces.push(event.delta));
  return { ...told(await events.finalResponse()), pieces };
}

function told({ output, output_text: text, status, usage }) {
  const calls = output.filter((item) => item.type === "function_call");
  return {
    text,
    calls: calls.map((call) => [call.call_id, call.name, call.arguments]),
    stop: status,
    usage: [usage.input_tokens, usage.output_tokens],
  };
}

async function secondTurn(stream) {
  const { output } = await client.responses.create({ model, input: "tools", tools });
  const calls = output.filter((item) => item.type === "function_call");
  const results = calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: result }));
  return ask([{ role: "user", content: "tools" }, ...output, ...results], stream);
}

function fail(error) {
  return { status: error.status, message: error.error?.message, retry_after: error.headers?.get("retry-after") };
}

async function models() {
  return (await client.models.list()).data.map((one) => one.id);
}

await tell({ ask, secondTurn, fail, models });
