// Drives the emulated Daytona with the vendor's own client.
import { Daytona } from "@daytona/sdk";
import assert from "node:assert/strict";

const emulator = JSON.parse(process.env.EMULATOR);

const daytona = new Daytona({
  apiKey: emulator.key,
  apiUrl: emulator.url,
  target: "us",
  useDeprecatedPolling: true,
});

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
    console.log(`FAIL ${name}: ${err?.message ?? err}`);
  }
}

const sandbox = await check("create", () =>
  daytona.create({ labels: { check: "yes" }, autoStopInterval: 30 }, { timeout: 30 }),
);
if (!sandbox) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(1);
}

await check("the sandbox is started", () => assert.equal(sandbox.state, "started"));

const dir = await check("working directory", async () => {
  const found = await sandbox.getWorkDir();
  assert.match(found, /^\//);
  assert.equal(found, await sandbox.getUserHomeDir());
  return found;
});

await check("execute", async () => {
  const r = await sandbox.process.executeCommand("echo hi; pwd");
  assert.equal(r.exitCode, 0);
  assert.equal(r.result.trim(), `hi\n${dir}`);
});

await check("execute: status 3", async () => {
  const r = await sandbox.process.executeCommand("exit 3");
  assert.equal(r.exitCode, 3);
});

await check("execute: directory and environment", async () => {
  const r = await sandbox.process.executeCommand('pwd; echo "$A"', "/", { A: "x y" });
  assert.equal(r.result, "/\nx y\n");
});

await check("execute: time is up", () =>
  assert.rejects(sandbox.process.executeCommand("sleep 30", undefined, undefined, 1)),
);

await check("session: command with both streams", async () => {
  await sandbox.process.createSession("s1");
  const r = await sandbox.process.executeSessionCommand("s1", { command: "echo out; echo err >&2; (exit 5)" });
  assert.equal(r.exitCode, 5);
  assert.equal(r.stdout, "out\n");
  assert.equal(r.stderr, "err\n");
});

await check("session: state is kept", async () => {
  await sandbox.process.executeSessionCommand("s1", { command: "cd /; X=1" });
  const r = await sandbox.process.executeSessionCommand("s1", { command: 'pwd; echo "$X"' });
  assert.equal(r.stdout, "/\n1\n");
});

await check("session: streamed logs and status", async () => {
  const { cmdId } = await sandbox.process.executeSessionCommand("s1", {
    command: "for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.2; done; (exit 6)",
    runAsync: true,
  });
  const running = await sandbox.process.getSessionCommand("s1", cmdId);
  assert.equal(running.exitCode ?? undefined, undefined);
  let out = "";
  let err = "";
  await sandbox.process.getSessionCommandLogs("s1", cmdId, (s) => (out += s), (s) => (err += s));
  assert.equal(out, "o1\no2\no3\n");
  assert.equal(err, "e1\ne2\ne3\n");
  const done = await sandbox.process.getSessionCommand("s1", cmdId);
  assert.equal(done.exitCode, 6);
  const logs = await sandbox.process.getSessionCommandLogs("s1", cmdId);
  assert.equal(logs.stdout, "o1\no2\no3\n");
});

await check("session: input", async () => {
  const { cmdId } = await sandbox.process.executeSessionCommand("s1", {
    command: 'read x; echo "[$x]"',
    runAsync: true,
  });
  await sandbox.process.sendSessionCommandInput("s1", cmdId, "given");
  let out = "";
  await sandbox.process.getSessionCommandLogs("s1", cmdId, (s) => (out += s), () => {});
  assert.equal(out, "[given]\n");
});

await check("session: deleting it kills the command", async () => {
  await sandbox.process.createSession("s2");
  await sandbox.process.executeSessionCommand("s2", {
    command: "echo $$ >pid; sleep 300; echo late >late",
    runAsync: true,
  });
  await sandbox.process.executeCommand("while [ ! -s pid ]; do sleep 0.05; done");
  await sandbox.process.deleteSession("s2");
  // It may take a busy machine a while, and the dead whom nobody has buried do not run.
  const r = await sandbox.process.executeCommand('p=$(cat pid); i=0; while kill -0 $p 2>/dev/null && ! grep -q ") [ZX] " /proc/$p/stat 2>/dev/null; do [ $i -lt 100 ] || { echo alive; break; }; i=$((i+1)); sleep 0.05; done; ls late 2>/dev/null');
  assert.equal(r.result, "");
  await assert.rejects(sandbox.process.getSession("s2"));
  await sandbox.process.deleteSession("s1");
});

await check("upload and download bytes", async () => {
  const data = Buffer.from(Array.from({ length: 256 * 400 }, (_, i) => i % 256));
  await sandbox.fs.uploadFile(data, `${dir}/deep/er/bytes`);
  const back = await sandbox.fs.downloadFile(`${dir}/deep/er/bytes`);
  assert.ok(Buffer.compare(back, data) === 0, `${back.length} bytes came back`);
});

await check("download of a missing file fails", () => assert.rejects(sandbox.fs.downloadFile(`${dir}/missing`)));

await check("list files", async () => {
  const files = await sandbox.fs.listFiles(`${dir}/deep`);
  assert.deepEqual(files.map((f) => [f.name, f.isDir]), [["er", true]]);
});

await check("file details and deletion", async () => {
  const info = await sandbox.fs.getFileDetails(`${dir}/deep/er/bytes`);
  assert.equal(info.size, 256 * 400);
  await sandbox.fs.deleteFile(`${dir}/deep/er/bytes`);
  await assert.rejects(sandbox.fs.getFileDetails(`${dir}/deep/er/bytes`));
});

await check("list by label", async () => {
  const found = [];
  for await (const item of daytona.list({ labels: { check: "yes" } })) found.push(item.id);
  assert.deepEqual(found, [sandbox.id]);
  for await (const item of daytona.list({ labels: { check: "no" } })) assert.fail(item.id);
});

await check("get", async () => {
  const same = await daytona.get(sandbox.id);
  assert.equal(same.labels.check, "yes");
  assert.equal(same.autoStopInterval, 30);
});

await check("get of an unknown sandbox fails", () => assert.rejects(daytona.get("unknown")));

await check("labels and intervals", async () => {
  await sandbox.setLabels({ check: "yes", more: "1" });
  await sandbox.setAutostopInterval(45);
  await sandbox.refreshActivity();
  const same = await daytona.get(sandbox.id);
  assert.equal(same.labels.more, "1");
  assert.equal(same.autoStopInterval, 45);
});

await check("stop and start", async () => {
  await sandbox.process.executeCommand("echo kept >kept");
  await sandbox.stop(30);
  assert.equal((await daytona.get(sandbox.id)).state, "stopped");
  await sandbox.start(30);
  assert.equal((await sandbox.process.executeCommand("cat kept")).result, "kept\n");
});

await check("a wrong key is refused", () =>
  assert.rejects(
    new Daytona({ apiKey: "wrong", apiUrl: emulator.url, useDeprecatedPolling: true }).get(sandbox.id),
  ),
);

await check("delete", async () => {
  await sandbox.delete(30);
  for (let n = 0; n < 50; n++) {
    try {
      await daytona.get(sandbox.id);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail("it can still be found");
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
