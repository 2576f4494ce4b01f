// Drives the emulated AgentCore Code Interpreter with the vendor's own client.
// EMULATOR is the line of JSON that the emulator prints. The address is given the
// way every AWS client takes it.
import {
  BedrockAgentCoreClient,
  GetCodeInterpreterSessionCommand,
  InvokeCodeInterpreterCommand,
  ListCodeInterpreterSessionsCommand,
  StartCodeInterpreterSessionCommand,
  StopCodeInterpreterSessionCommand,
} from "@aws-sdk/client-bedrock-agentcore";
import assert from "node:assert/strict";

const server = JSON.parse(process.env.EMULATOR);
for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
process.env.AWS_ENDPOINT_URL_BEDROCK_AGENTCORE = server.url;
process.env.AWS_REGION = server.region;
process.env.AWS_ACCESS_KEY_ID = server.key;
process.env.AWS_SECRET_ACCESS_KEY = server.secret;
process.env.AWS_EC2_METADATA_DISABLED = "true";
process.env.AWS_CONFIG_FILE = "/dev/null";
process.env.AWS_SHARED_CREDENTIALS_FILE = "/dev/null";

const client = new BedrockAgentCoreClient({});
const codeInterpreterIdentifier = "aws.codeinterpreter.v1";

let passed = 0;
let failed = 0;

async function check(name, f) {
  try {
    const value = await f();
    passed++;
    console.log(`ok   ${name}`);
    return value;
  } catch (err) {
    failed++;
    console.log(`FAIL ${name}: ${err?.stack ?? err}`);
  }
}

const started = await check("start", () =>
  client.send(
    new StartCodeInterpreterSessionCommand({
      codeInterpreterIdentifier,
      name: "check-box",
      sessionTimeoutSeconds: 3600,
      clientToken: "check-token-check-token-check-token",
    }),
  ),
);
if (!started) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(1);
}
const sessionId = started.sessionId;

async function invoke(name, args, who = client) {
  const answer = await who.send(
    new InvokeCodeInterpreterCommand({ codeInterpreterIdentifier, sessionId, name, arguments: args }),
  );
  assert.equal(answer.sessionId, sessionId);
  let last;
  for await (const event of answer.stream) if (event.result) last = event.result;
  assert.ok(last, "no result");
  return last;
}
const run = async (command) => (await invoke("executeCommand", { command })).structuredContent;

// It may take a busy machine a while, and the dead whom nobody has buried do not run.
const runs = (pid) => `i=0; while kill -0 ${pid} 2>/dev/null && ! grep -q ") [ZX] " /proc/${pid}/stat 2>/dev/null; do [ $i -lt 100 ] || { echo alive; break; }; i=$((i+1)); sleep 0.05; done`;

await check("start answers with an id and a time", () => {
  assert.match(sessionId, /^[0-9a-zA-Z]{1,40}$/);
  assert.ok(started.createdAt instanceof Date);
  assert.equal(started.codeInterpreterIdentifier, codeInterpreterIdentifier);
});

await check("start again with the same token is the same session", async () => {
  const again = await client.send(
    new StartCodeInterpreterSessionCommand({
      codeInterpreterIdentifier,
      name: "check-box",
      sessionTimeoutSeconds: 3600,
      clientToken: "check-token-check-token-check-token",
    }),
  );
  assert.equal(again.sessionId, sessionId);
});

await check("get: the session is ready", async () => {
  const got = await client.send(new GetCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId }));
  assert.equal(got.status, "READY");
  assert.equal(got.name, "check-box");
  assert.equal(got.sessionTimeoutSeconds, 3600);
});

await check("list by status, page by page", async () => {
  const other = await client.send(new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier, name: "other" }));
  const names = [];
  let nextToken;
  do {
    const page = await client.send(
      new ListCodeInterpreterSessionsCommand({ codeInterpreterIdentifier, status: "READY", maxResults: 1, nextToken }),
    );
    names.push(...page.items.map((item) => item.name));
    nextToken = page.nextToken;
  } while (nextToken);
  assert.deepEqual(names, ["other", "check-box"]);
  await client.send(new StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId: other.sessionId }));
});

await check("command: the output is that of a terminal", async () => {
  const r = await run("echo out; echo err >&2");
  assert.equal(r.exitCode, 0);
  assert.equal(r.stdout, "out\r\nerr\r\n");
  assert.equal(r.stderr, "");
});

await check("command: status 3 drops stdout", async () => {
  const r = await invoke("executeCommand", { command: "echo out; exit 3" });
  assert.equal(r.structuredContent.exitCode, 3);
  assert.equal(r.structuredContent.stdout, "");
  assert.equal(r.isError, true);
});

await check("command: streams apart through files", async () => {
  const r = await run("(echo out; echo err >&2; exit 5) >o 2>e </dev/null; echo $?; base64 <o; base64 <e; rm o e");
  assert.deepEqual(r.stdout.split("\r\n"), ["5", "b3V0Cg==", "ZXJyCg==", ""]);
});

await check("command: each has a fresh shell", async () => {
  await run("cd /; X=1");
  const r = await run('pwd; echo "[$X]"');
  assert.match(r.stdout, /^\/.*\/var\r\n\[\]\r\n$/);
});

await check("command: long output", async () => {
  const r = await run("i=0; while [ $i -lt 2000 ]; do echo line number $i; i=$((i+1)); done");
  assert.equal(r.stdout.split("\r\n").length, 2001);
});

await check("command: what it leaves in the background ends", async () => {
  const r = await run("sleep 300 & echo $!");
  const later = await run(runs(Number(r.stdout)));
  assert.equal(later.stdout, "");
});

await check("task: runs on, is watched, ends", async () => {
  const begun = (await invoke("startCommandExecution", { command: "sleep 0.3; echo done >task-out" })).structuredContent;
  assert.ok(begun.taskId);
  let state = (await invoke("getTask", { taskId: begun.taskId })).structuredContent;
  assert.ok(["submitted", "working"].includes(state.taskStatus), state.taskStatus);
  for (let n = 0; n < 100 && state.taskStatus !== "completed"; n++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    state = (await invoke("getTask", { taskId: begun.taskId })).structuredContent;
  }
  assert.equal(state.taskStatus, "completed");
  assert.equal((await run("cat task-out")).stdout, "done\r\n");
});

await check("task: output grows and is read by offset", async () => {
  const { taskId } = (
    await invoke("startCommandExecution", { command: "for i in 1 2 3; do echo $i; sleep 0.2; done >grows" })
  ).structuredContent;
  let have = "";
  let pieces = 0;
  for (let n = 0; n < 100 && have.length < 6; n++) {
    const r = await run(`tail -c +${have.length + 1} grows 2>/dev/null`);
    const piece = r.stdout.replaceAll("\r\n", "\n");
    if (piece) pieces++;
    have += piece;
  }
  assert.equal(have, "1\n2\n3\n");
  assert.ok(pieces > 1, `${pieces} pieces`);
  assert.ok(taskId);
});

await check("task: stopping kills it", async () => {
  const { taskId } = (
    await invoke("startCommandExecution", { command: "echo $$ >pid; sleep 300; echo late >late" })
  ).structuredContent;
  const pid = (await run("while [ ! -s pid ]; do sleep 0.05; done; cat pid")).stdout.trim();
  const stopped = (await invoke("stopTask", { taskId })).structuredContent;
  assert.equal(stopped.taskStatus, "canceled");
  const r = await run(`${runs(pid)}; ls late 2>/dev/null; true`);
  assert.equal(r.stdout, "");
});

const bytes = Buffer.from(Array.from({ length: 256 * 4000 }, (_, i) => i % 256));

await check("write text and bytes", async () => {
  const r = await invoke("writeFiles", {
    content: [
      { path: "a.txt", text: "héllo\n" },
      { path: "b.bin", blob: bytes },
      { path: "empty", text: "" },
    ],
  });
  assert.equal(r.content[0].text, "Successfully wrote all 3 files");
  assert.equal((await run("wc -c <b.bin; wc -c <empty")).stdout.replace(/ /g, ""), "1024000\r\n0\r\n");
});

await check("read text and bytes", async () => {
  const r = await invoke("readFiles", { paths: ["a.txt", "b.bin"] });
  assert.equal(r.content[0].resource.text, "héllo\n");
  assert.equal(Buffer.compare(Buffer.from(r.content[1].resource.blob), bytes), 0);
});

await check("a missing file is an error result", async () => {
  const r = await invoke("readFiles", { paths: ["missing"] });
  assert.equal(r.isError, true);
});

await check("an absolute path is an error result", async () => {
  const root = (await run("pwd")).stdout.trim();
  for (const path of [`${root}/a.txt`, "/etc/passwd", "../x"]) {
    assert.equal((await invoke("readFiles", { paths: [path] })).isError, true, path);
    assert.equal((await invoke("writeFiles", { content: [{ path, text: "x" }] })).isError, true, path);
  }
});

await check("list and remove files", async () => {
  await run("mkdir d; echo x >d/f");
  const listed = (await invoke("listFiles", { directoryPath: "d" })).content;
  assert.deepEqual(listed.map((item) => [item.type, item.name, item.description]), [["resource_link", "f", "File"]]);
  assert.ok(!(await invoke("removeFiles", { paths: ["d/f"] })).isError);
  assert.deepEqual((await invoke("listFiles", { directoryPath: "d" })).content, []);
});

await check("a second client attaches by the session's id", async () => {
  const second = new BedrockAgentCoreClient({});
  const r = await invoke("executeCommand", { command: "cat a.txt" }, second);
  assert.equal(r.structuredContent.stdout, "héllo\r\n");
  second.destroy();
});

await check("a wrong secret is refused", async () => {
  const wrong = new BedrockAgentCoreClient({
    credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: "wrong" },
  });
  await assert.rejects(
    wrong.send(new GetCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId })),
    (err) => err.name === "InvalidSignatureException" && err.$metadata.httpStatusCode === 403,
  );
});

await check("an unknown session is not found", () =>
  assert.rejects(
    client.send(new GetCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId: "01UNKNOWN" })),
    (err) => err.name === "ResourceNotFoundException" && err.$metadata.httpStatusCode === 404,
  ),
);

await check("a lifetime beyond eight hours is refused", () =>
  assert.rejects(
    client.send(new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionTimeoutSeconds: 28801 })),
    (err) => err.name === "ValidationException",
  ),
);

await check("stop, and then nothing runs", async () => {
  const r = await client.send(new StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId }));
  assert.equal(r.sessionId, sessionId);
  assert.ok(r.lastUpdatedAt instanceof Date);
  const got = await client.send(new GetCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId }));
  assert.equal(got.status, "TERMINATED");
  await assert.rejects(run("true"), (err) => err.name === "ResourceNotFoundException");
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
