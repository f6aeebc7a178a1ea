// A program that knows its provider's host by heart: node believer.js https|fetch anthropic|openai MESSAGE
const https = require("node:https");

const [way, wire, message] = process.argv.slice(2);
const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
const body = JSON.stringify({ model: "m", max_tokens: 999, messages: [{ role: "user", content: message }] });
const url = { anthropic: "https://api.anthropic.com/v1/messages", openai: "https://api.openai.com/v1/chat/completions" }[wire];
headers[wire === "anthropic" ? "x-api-key" : "authorization"] = (wire === "anthropic" ? "" : "Bearer ") + process.env.KEY;

function byHttps() {
  return new Promise((resolve, reject) => {
    let text = "";
    let how = "broken off";
    const failed = () => reject(new Error(`${how} after ${text.length} bytes`));
    const request = https.request(url, { method: "POST", headers }, (reply) => {
      reply.setEncoding("utf8");
      reply.on("data", (part) => (text += part));
      reply.on("end", () => resolve(JSON.parse(text)));
      reply.on("error", failed);
    });
    request.on("socket", (socket) => {
      socket.on("end", () => (how = "closed"));
      socket.on("error", (wrong) => (how = wrong.code));
    });
    request.setTimeout(5000, () => ((how = "Timeout"), failed()));
    request.on("error", failed);
    request.end(body);
  });
}

async function main() {
  await fetch("https://statistics.example.com/v1/started").catch(() => {});
  const said = await (way === "https" ? byHttps() : fetch(url, { method: "POST", headers, body }).then((it) => it.json()));
  console.log(wire === "anthropic" ? said.content[0].text : said.choices[0].message.content);
  process.exit();
}

main().catch((wrong) => {
  console.error(`Error: ${wrong.message} ${wrong.cause ? wrong.cause.message : ""}`);
  process.exit(1);
});
