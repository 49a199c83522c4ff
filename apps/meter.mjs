// A meter in another language: start amt-stream, read its lines, send it commands.
//   node meter.mjs [OPTIONS OF amt-stream serve]
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const meter = spawn("amt-stream", ["serve", "--stdio", ...process.argv.slice(2)], {
  stdio: ["pipe", "pipe", "inherit"],
});
const tell = (command) => meter.stdin.write(JSON.stringify(command) + "\n");
let rows = 0;

for await (const line of createInterface({ input: meter.stdout })) {
  const message = JSON.parse(line);
  if ("time_s" in message) {
    rows += 1;
    const doubt = message.valid && message.calibrated ? "" : " (uncalibrated, settling or disturbed)";
    console.log(`${message.time_s.toFixed(1)} s: ${message.ltl_phon} phon${doubt}`);
    if (rows === 10) tell({ command: "mark", text: "ten rows", id: 1 });
  } else if (message.event) {
    console.log(`${message.event.kind}: ${message.event.text}`);
    if (message.event.kind === "mark") meter.stdin.end(); // its end ends the measurement
  } else if (message.reply && message.reply.id === 1) {
    console.log(message.reply.done ? "marked" : message.reply.error);
  }
}
