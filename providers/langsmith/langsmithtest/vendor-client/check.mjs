// Drives the emulated LangSmith with the vendor's own client.
import assert from "node:assert/strict";

const emulator = JSON.parse(process.env.EMULATOR);
process.env.LANGSMITH_ENDPOINT = emulator.url;
process.env.LANGSMITH_API_KEY = emulator.key;
process.env.LANGSMITH_TRACING = "false";
const { SandboxClient } = await import("langsmith/sandbox");
const { Langsmith } = await import("langsmith/client.js");

const client = new SandboxClient();
const old = new SandboxClient({ apiEndpoint: `${emulator.url}/v2/sandboxes` });
const rest = new Langsmith({ apiKey: emulator.key, baseURL: emulator.url });

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

const GiB = 2 ** 30;

const snapshot = await check("build a snapshot and wait for it", async () => {
  const s = await client.createSnapshot("check/base", "python:3.12-slim", 16 * GiB);
  assert.equal(s.status, "ready");
  assert.equal((await client.getSnapshot("check/base")).id, s.id);
  return s;
});

const sandbox = await check("create from the snapshot", () =>
  client.createSandbox({
    name: "check-box",
    snapshotName: "check/base",
    labels: { check: "yes" },
    idleTtlSeconds: 7200,
    deleteAfterStopSeconds: 3600,
  }),
);
if (!sandbox || !snapshot) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(1);
}

await check("the sandbox is ready and says what was asked", () => {
  assert.equal(sandbox.status, "ready");
  assert.equal(sandbox.snapshot_id, snapshot.id);
  assert.equal(sandbox.idle_ttl_seconds, 7200);
  assert.match(sandbox.dataplane_url, /^http:\/\/127\.0\.0\.1:/);
});

await check("create without waiting, wait, delete", async () => {
  const box = await client.createSandbox(snapshot.id, { waitForReady: false });
  assert.equal(box.status, "provisioning");
  const ready = await client.waitForSandbox(box.name);
  assert.equal(ready.status, "ready");
  await ready.delete();
  await assert.rejects(client.getSandbox(box.name), { name: "LangSmithResourceNotFoundError" });
});

await check("a taken name, two sources, a missing snapshot", async () => {
  await assert.rejects(client.createSandbox({ name: "check-box" }));
  await assert.rejects(client.createSandbox(snapshot.id, { snapshotName: "check/base" }));
  await assert.rejects(client.createSandbox({ snapshotName: "none" }));
});

await check("run: streams apart and status 3", async () => {
  const r = await sandbox.run("echo out; echo err >&2; exit 3");
  assert.deepEqual([r.stdout, r.stderr, r.exit_code], ["out\n", "err\n", 3]);
});

await check("run: a signal's status", async () => {
  assert.equal((await sandbox.run("kill -9 $$")).exit_code, 137);
});

const dir = await check("run: directory and environment", async () => {
  const r = await sandbox.run('pwd; cd /; echo "$A"', { env: { A: "x y" } });
  assert.match(r.stdout, /^\/.*\nx y\n$/);
  assert.equal((await sandbox.run("pwd", { cwd: "/" })).stdout, "/\n");
  assert.equal((await sandbox.run('pwd; echo "$A"', { runConfig: { work_dir: "/", env_vars: { A: "z" } } })).stdout, "/\nz\n");
  return r.stdout.split("\n")[0];
});

await check("run: stdin is closed", async () => {
  assert.equal((await sandbox.run('cat; read x; echo "[$x]"')).stdout, "[]\n");
});

await check("run: given input", async () => {
  const handle = await sandbox.run('read x; echo "[$x]"; cat', { wait: false, closeInput: false });
  handle.sendInput("given\nmore");
  handle.closeInput();
  assert.equal((await handle.result).stdout, "[given]\nmore");
});

await check("run: callbacks while it runs", async () => {
  const seen = [];
  const r = await sandbox.run("for i in 1 2 3; do echo $i; sleep 0.3; done", {
    onStdout: (s) => seen.push([Date.now(), s]),
  });
  assert.equal(seen.map((x) => x[1]).join(""), "1\n2\n3\n");
  assert.ok(seen.at(-1)[0] - seen[0][0] > 300);
  assert.equal(r.exit_code, 0);
});

await check("run: 3 MB of output", async () => {
  const r = await sandbox.run("head -c 3000000 /dev/zero | tr '\\0' x");
  assert.equal(r.stdout, "x".repeat(3000000));
});

await check("run: characters are not split, others are replaced", async () => {
  const r = await sandbox.run("printf '\\303'; sleep 0.2; printf '\\244'; printf '\\377'");
  assert.equal(r.stdout, "ä\ufffd");
});

await check("iterate, and resume a stream that broke", async () => {
  const handle = await sandbox.run("for i in 1 2 3 4; do echo $i; sleep 0.3; done; exit 5", { wait: false });
  let out = "";
  let broken = false;
  for await (const chunk of handle) {
    assert.equal(chunk.offset, out.length);
    out += chunk.data;
    if (!broken) {
      broken = true;
      handle._control._ws.terminate();
    }
  }
  assert.equal(out, "1\n2\n3\n4\n");
  assert.equal((await handle.result).exit_code, 5);
});

await check("an execution is got by its id, not run again", async () => {
  const handle = await sandbox.run("echo x >>count; cat count; sleep 0.5", { wait: false, commandId: "0190a000-0000-7000-8000-000000000001" });
  const again = await sandbox.run("echo x >>count; cat count; sleep 0.5", { wait: false, commandId: "0190a000-0000-7000-8000-000000000001" });
  assert.equal((await handle.result).stdout, "x\n");
  assert.equal((await again.result).stdout, "x\n");
});

await check("reconnect to a finished command", async () => {
  const handle = await sandbox.run("echo abc; exit 7", { wait: false });
  await handle.result;
  const again = await sandbox.reconnect(handle.commandId, { stdoutOffset: 1 });
  const r = await again.result;
  assert.deepEqual([r.stdout, r.exit_code], ["bc\n", 7]);
});

await check("reconnect to an unknown command", async () => {
  const handle = await sandbox.reconnect("0190a000-0000-7000-8000-0000000000ff");
  await assert.rejects(handle.result, /Command not found/);
});

await check("kill ends the whole group", async () => {
  const handle = await sandbox.run("sleep 300 & echo $!; trap '' TERM; wait", { wait: false });
  let pid = "";
  for await (const chunk of handle) {
    pid = chunk.data.trim();
    handle.kill();
  }
  assert.notEqual((await handle.result).exit_code, 0);
  // It may take a busy machine a while, and the dead whom nobody has buried do not run.
  const r = await sandbox.run(`i=0; while kill -0 ${pid} 2>/dev/null && ! grep -q ") [ZX] " /proc/${pid}/stat 2>/dev/null; do [ $i -lt 100 ] || { echo alive; break; }; i=$((i+1)); sleep 0.05; done`);
  assert.equal(r.stdout, "");
});

await check("run: time is up", () =>
  assert.rejects(sandbox.run("sleep 30", { timeout: 1 }), { name: "LangSmithCommandTimeoutError" }),
);

await check("run over HTTP", async () => {
  const r = await sandbox._runHttp("echo out; echo err >&2; exit 4", { cwd: dir, env: { A: "b" } });
  assert.deepEqual(r, { stdout: "out\n", stderr: "err\n", exit_code: 4 });
});

await check("write and read bytes", async () => {
  const data = new Uint8Array(70000).map((_, i) => i % 256);
  await sandbox.write(`${dir}/bytes ü`, data);
  assert.ok(Buffer.compare(Buffer.from(await sandbox.read(`${dir}/bytes ü`)), Buffer.from(data)) === 0);
  const stat = await sandbox.stat(`${dir}/bytes ü`);
  assert.equal(stat.size_bytes, 70000);
  const part = await sandbox.readRange(`${dir}/bytes ü`, { start: 256, end: 258, ifRange: stat.etag });
  assert.deepEqual([[...part.content], part.start, part.total_bytes, part.partial], [[0, 1, 2], 256, 70000, true]);
  const same = await sandbox.readRange(`${dir}/bytes ü`, { start: 0, ifNoneMatch: stat.etag });
  assert.equal(same.unchanged, true);
});

await check("files that cannot be read or written", async () => {
  await assert.rejects(sandbox.read(`${dir}/missing`), { name: "LangSmithResourceNotFoundError" });
  await assert.rejects(sandbox.read(dir), /directory/);
  await assert.rejects(sandbox.write(dir, "x"), /directory/);
  await assert.rejects(sandbox.readRange(`${dir}/bytes ü`, { start: 70000 }), /past the end/);
});

await check("glob and grep", async () => {
  await sandbox.write(`${dir}/words`, "one\ntwo\n");
  assert.deepEqual((await sandbox.glob("wor*", dir)).matches.map((m) => m.path), [`${dir}/words`]);
  assert.equal((await sandbox.grep("two", dir)).matches[0].line, 2);
});

await check("list, and list by label page by page", async () => {
  assert.deepEqual((await client.listSandboxes()).map((b) => b.name), ["check-box"]);
  const others = [];
  for (let n = 0; n < 3; n++) others.push(await client.createSandbox({ labels: { many: "1" } }));
  const found = [];
  for await (const b of rest.sandboxes.boxes.list({ label: ["many=1"], page_size: 2 })) found.push(b.name);
  assert.deepEqual(found, others.map((b) => b.name));
  for (const b of others) await b.delete();
});

await check("list snapshots", async () => {
  assert.deepEqual((await client.listSnapshots({ nameContains: "check/" })).map((s) => s.name), ["check/base"]);
});

await check("the old prefix, attaching by name", async () => {
  const same = await old.getSandbox("check-box");
  assert.equal(same.id, sandbox.id);
  assert.equal((await same.run("cat words")).stdout, "one\ntwo\n");
});

await check("update", async () => {
  const changed = await client.updateSandbox("check-box", { idleTtlSeconds: 600 });
  assert.equal(changed.idle_ttl_seconds, 600);
});

await check("stop and start", async () => {
  await sandbox.stop();
  assert.equal((await client.getSandboxStatus("check-box")).status, "stopped");
  await sandbox.start();
  assert.equal((await sandbox.run("cat words")).stdout, "one\ntwo\n");
});

await check("a request wakes a stopped sandbox", async () => {
  await sandbox.stop();
  await assert.rejects(sandbox.read(`${dir}/words`));
  assert.equal((await sandbox.run("cat words")).stdout, "one\ntwo\n");
});

await check("capture a snapshot and start from it", async () => {
  const kept = await sandbox.captureSnapshot("check/kept");
  assert.equal(kept.status, "ready");
  const copy = await client.createSandbox(kept.id);
  assert.equal((await copy.run("cat words")).stdout, "one\ntwo\n");
  await copy.delete();
  await client.deleteSnapshot(kept.id);
  await assert.rejects(client.getSnapshot(kept.id), { name: "LangSmithResourceNotFoundError" });
});

await check("a wrong key is refused", async () => {
  const wrong = new SandboxClient({ apiKey: "wrong" });
  await assert.rejects(wrong.getSandbox("check-box"), { name: "LangSmithSandboxAuthenticationError" });
});

await check("delete", async () => {
  await sandbox.delete();
  await assert.rejects(client.getSandbox("check-box"), { name: "LangSmithResourceNotFoundError" });
  await assert.rejects(sandbox.delete(), { name: "LangSmithResourceNotFoundError" });
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
