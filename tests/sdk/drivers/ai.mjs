// ai, over each provider that it has: `node ai.mjs PROVIDER`.

import { generateText, jsonSchema, streamText, tool } from "ai";
import { city, model, result, tell, url } from "./telling.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const provider = {
  openai_chat: async () => (await import("@ai-sdk/openai")).createOpenAI({ baseURL: `${url}/v1`, apiKey: "k" }).chat,
  openai_responses: async () =>
    (await import("@ai-sdk/openai")).createOpenAI({ baseURL: `${url}/v1`, apiKey: "k" }).responses,
  anthropic: async () => (await import("@ai-sdk/anthropic")).createAnthropic({ baseURL: `${url}/v1`, apiKey: "k" }),
  gemini: async () =>
    (await import("@ai-sdk/google")).createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: "k" }),
}[process.argv[2]];
const language = (await provider())(model);
const tools = { get_weather: tool({ inputSchema: jsonSchema(city) }) };

async function ask(said, stream, messages = [{ role: "user", content: said }]) {
  const options = { model: language, messages, tools, maxRetries: 0 };
  if (!stream) return told(await generateText(options));
  const pieces = [];
  let failure;
  const streamed = streamText({ ...options, onError: ({ error }) => (failure = error) });
  for await (const piece of streamed.textStream) pieces.push(piece);
  if (failure) throw failure;
  const { text, toolCalls, finishReason, usage } = streamed;
  const final = { text: await text, toolCalls: await toolCalls, finishReason: await finishReason, usage: await usage };
  return { ...told(final), pieces };
}

function told({ text, toolCalls, finishReason, usage }) {
  return {
    text,
    calls: toolCalls.map((call) => [call.toolCallId, call.toolName, JSON.stringify(call.input)]),
    stop: finishReason,
    usage: [usage.inputTokens, usage.outputTokens],
  };
}

async function secondTurn(stream) {
  const user = { role: "user", content: "tools" };
  const first = await generateText({ model: language, messages: [user], tools, maxRetries: 0 });
  const results = first.toolCalls.map(({ toolCallId, toolName }) => ({
    type: "tool-result",
    toolCallId,
    toolName,
    output: { type: "text", value: result },
  }));
  return ask("", stream, [user, ...first.response.messages, { role: "tool", content: results }]);
}

function fail(error) {
  return {
    status: error.statusCode,
    message: error.message,
    retry_after: error.responseHeaders?.["retry-after"] ?? null,
  };
}

await tell({ ask, secondTurn, fail });
