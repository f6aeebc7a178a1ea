// What the JavaScript drivers share: the questions, and how they tell what an SDK made of the answers.

export const url = process.env.FAKE_URL;
export const model = "model-a";
export const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
export const result = "21 °C 👩‍🚀";

export async function tell({ ask, secondTurn, fail, models }) {
  const cases = models ? { models } : {};
  for (const [stream, how] of [[false, "whole"], [true, "streamed"]]) {
    for (const said of ["text", "tool", "tools"]) cases[`${said}, ${how}`] = () => ask(said, stream);
    cases[`second turn, ${how}`] = () => secondTurn(stream);
    for (const status of ["401", "404", "429", "500", "529"])
      cases[`error ${status}, ${how}`] = () => raised(() => ask(status, stream), fail);
  }
  for (const [name, run] of Object.entries(cases)) {
    let told;
    try {
      told = { told: await run() };
    } catch (error) {
      told = { failed: String(error.stack) };
    }
    console.log(JSON.stringify({ case: name, ...told }));
  }
}

async function raised(run, describe) {
  try {
    await run();
  } catch (error) {
    const told = describe(error);
    if (told.status === undefined) throw error;
    return { raised: error.constructor.name, retry_after: null, ...told };
  }
}
