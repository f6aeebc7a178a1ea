// The only tool of the drivers in JavaScript: a shell command, its output, and its exit code if that is not 0.
import { spawn } from "node:child_process";

const TIMEOUT_MS = 60_000;
const LINGER_MS = 500; // what a command left running may hold its output open

/** Run a shell command; a stop or the time limit ends all that it has started. */
export const bash = (command, stop) =>
  new Promise((done) => {
    const child = spawn("sh", ["-c", command], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const pieces = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => pieces.push(piece));
    const end = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {} // (it has ended)
    };
    const limit = setTimeout(end, TIMEOUT_MS);
    stop?.addEventListener("abort", end);
    const tell = (code, signal) => {
      clearTimeout(limit);
      const output = Buffer.concat(pieces).toString();
      done(code === 0 ? output : `${output}\n(exit code ${code ?? signal})`);
    };
    child.on("error", (wrong) => tell(wrong.message));
    child.on("exit", (code, signal) => {
      setTimeout(() => tell(code, signal), LINGER_MS).unref();
      child.on("close", () => tell(code, signal));
    });
  });
