// @google/genai, the Gemini API.

import { GoogleGenAI } from "@google/genai";
import { city, model, result, tell, url } from "./telling.mjs";

const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: url } });
const config = { tools: [{ functionDeclarations: [{ name: "get_weather", parametersJsonSchema: city }] }] };

async function ask(said, stream, contents = said) {
  if (!stream) return told(await client.models.generateContent({ model, contents, config }));
  const all = [];
  for await (const chunk of await client.models.generateContentStream({ model, contents, config })) all.push(told(chunk));
  const pieces = all.map((said) => said.text).filter(Boolean);
  return { ...all.at(-1), text: pieces.join(""), calls: all.flatMap((said) => said.calls), pieces };
}

function told({ candidates: [candidate], usageMetadata: usage }) {
  const parts = candidate.content?.parts ?? [];
  const calls = parts.map((part) => part.functionCall).filter(Boolean);
  return {
    text: parts.map((part) => part.text ?? "").join(""),
    calls: calls.map((call, number) => [call.id ?? String(number), call.name, JSON.stringify(call.args)]),
    stop: candidate.finishReason,
    usage: usage && [usage.promptTokenCount, usage.candidatesTokenCount],
  };
}

async function secondTurn(stream) {
  const user = { role: "user", parts: [{ text: "tools" }] };
  const first = await client.models.generateContent({ model, contents: [user], config });
  const parts = first.functionCalls.map(({ id, name }) => ({ functionResponse: { id, name, response: { result } } }));
  return ask("", stream, [user, first.candidates[0].content, { role: "user", parts }]);
}

function fail(error) {
  return { status: error.status, message: JSON.parse(error.message).error.message };
}

async function models() {
  const found = [];
  for await (const one of await client.models.list()) found.push(one.name.replace("models/", ""));
  return found;
}

await tell({ ask, secondTurn, fail, models });
