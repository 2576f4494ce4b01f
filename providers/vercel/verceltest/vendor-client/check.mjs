// Drives the emulated Vercel Sandbox with the vendor's own client.
import assert from "node:assert/strict";
import { Readable } from "node:stream";

const server = JSON.parse(process.env.EMULATOR);
process.env.CI = "1"; // without it the client would ask a person to sign in

// The client knows one address and takes no other.
const official = "https://vercel.com/api";
const original = globalThis.fetch;
let sent = 0;
globalThis.fetch = (url, { dispatcher, ...init } = {}) => {
  url = String(url);
  if (!url.startsWith(official)) return Promise.reject(new Error(`unexpected address ${url}`));
  sent++;
  return original(server.url + url.slice(official.length), init);
};
const { Sandbox, Snapshot } = await import("@vercel/sandbox");
const auth = { token: server.token, teamId: server.team, projectId: server.project };

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
    console.log(`FAIL ${name}: ${err?.message ?? err} ${JSON.stringify(err?.json ?? "")}`);
  }
}

const status = (n) => (err) => err.response?.status === n;

const box = await check("create", () =>
  Sandbox.create({ ...auth, name: "check", persistent: false, timeout: 240000, tags: { app: "check" }, env: { BOX: "a b" } }),
);

await check("it is running, with what was asked for", async () => {
  assert.equal(box.status, "running");
  assert.equal(box.name, "check");
  assert.equal(box.persistent, false);
  assert.equal(box.timeout, 240000);
  assert.equal(box.tags.app, "check");
  assert.match(box.cwd, /^\//);
});

await check("run: both streams and status 3", async () => {
  const r = await box.runCommand("sh", ["-c", "echo out; echo err >&2; exit 3"]);
  assert.equal(r.exitCode, 3);
  assert.equal(await r.stdout(), "out\n");
  assert.equal(await r.stderr(), "err\n");
});

await check("run: environment and directory", async () => {
  await box.runCommand("mkdir", ["-p", "sub"]);
  const r = await box.runCommand({ cmd: "sh", args: ["-c", 'echo "$A $BOX"; pwd'], env: { A: "1" }, cwd: `${box.cwd}/sub` });
  assert.equal(await r.stdout(), `1 a b\n${box.cwd}/sub\n`);
});

await check("run: streamed as it is produced", async () => {
  let out = "";
  let err = "";
  let first = 0;
  const sink = (f) => ({ write: f });
  const r = await box.runCommand({
    cmd: "sh",
    args: ["-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.3; done; exit 6"],
    stdout: sink((s) => ((out += s), (first ||= Date.now()))),
    stderr: sink((s) => (err += s)),
  });
  assert.equal(r.exitCode, 6);
  assert.equal(out, "o1\no2\no3\n");
  assert.equal(err, "e1\ne2\ne3\n");
  assert.ok(Date.now() - first > 400, "output came at the end");
});

await check("run: much output", async () => {
  const r = await box.runCommand("sh", ["-c", "yes 0123456789abcde | head -c 3000000"]);
  assert.equal((await r.stdout()).length, 3000000);
});

await check("run: a missing program is 400", () =>
  assert.rejects(box.runCommand("no-such-program-xyz"), (err) => status(400)(err) && err.json.error.code === "executable_not_found"),
);

await check("run: sudo has another home", async () => {
  const r = await box.runCommand({ cmd: "sh", args: ["-c", 'printf %s "$HOME"'], sudo: true });
  assert.equal(r.exitCode, 0);
  assert.notEqual(await r.stdout(), box.cwd);
});

await check("detached: logs follow, and replay from the start", async () => {
  const c = await box.runCommand({ cmd: "sh", args: ["-c", "echo 1; sleep 0.3; echo 2 >&2; exit 4"], detached: true });
  assert.equal(c.exitCode, null);
  const lines = [];
  for await (const l of c.logs()) lines.push(`${l.stream} ${l.data}`);
  assert.deepEqual(lines, ["stdout 1\n", "stderr 2\n"]);
  assert.equal((await c.wait()).exitCode, 4);
  const again = [];
  for await (const l of c.logs()) again.push(`${l.stream} ${l.data}`);
  assert.deepEqual(again, lines);
});

await check("detached: found by its id", async () => {
  const c = await box.runCommand({ cmd: "sh", args: ["-c", "exit 5"], detached: true });
  const same = await box.getCommand(c.cmdId);
  assert.equal((await same.wait()).exitCode, 5);
});

await check("kill is 143, and 137", async () => {
  for (const [signal, exit] of [["SIGTERM", 143], ["SIGKILL", 137]]) {
    const c = await box.runCommand({ cmd: "sleep", args: ["300"], detached: true });
    await c.kill(signal);
    assert.equal((await c.wait()).exitCode, exit);
  }
});

await check("kill reaches the process alone", async () => {
  const c = await box.runCommand({ cmd: "sh", args: ["-c", "sleep 300 & echo $! >pid; wait"], detached: true });
  await box.runCommand("sh", ["-c", "while [ ! -s pid ]; do sleep 0.05; done"]);
  await c.kill("SIGKILL");
  await c.wait();
  const r = await box.runCommand("sh", ["-c", "kill -0 $(cat pid) && kill $(cat pid)"]);
  assert.equal(r.exitCode, 0);
});

await check("a command's timeout is 137", async () => {
  const r = await box.runCommand({ cmd: "sleep", args: ["300"], timeoutMs: 300 });
  assert.equal(r.exitCode, 137);
});

const data = Buffer.from(Array.from({ length: 70000 }, (_, i) => (i * 7) % 256));

await check("files: bytes up and down", async () => {
  await box.writeFiles([
    { path: "deep/er/bytes", content: data },
    { path: `${box.cwd}/run`, content: "#!/bin/sh\necho ran\n", mode: 0o755 },
  ]);
  const back = await box.readFileToBuffer({ path: "deep/er/bytes" });
  assert.ok(Buffer.compare(back, data) === 0, `${back.length} bytes came back`);
  const r = await box.runCommand("./run");
  assert.equal(await r.stdout(), "ran\n");
});

await check("files: a stream", async () => {
  const stream = await box.readFile({ path: `${box.cwd}/deep/er/bytes` });
  assert.ok(stream instanceof Readable);
  let n = 0;
  for await (const piece of stream) n += piece.length;
  assert.equal(n, data.length);
});

await check("files: a missing file is null", async () => assert.equal(await box.readFileToBuffer({ path: "missing" }), null));

await check("files: a directory is 400", () => assert.rejects(box.readFileToBuffer({ path: "deep" }), status(400)));

await check("files: outside of the machine is 400", () =>
  assert.rejects(box.writeFiles([{ path: "/outside/f", content: Buffer.from("x") }])),
);

await check("mkdir, and again", async () => {
  await box.mkDir("made");
  await assert.rejects(box.mkDir("made"), (err) => status(400)(err) && /File exists/.test(err.message));
  await assert.rejects(box.mkDir("a/b/c"), (err) => status(400)(err) && /No such file/.test(err.message));
});

await check("extend", async () => {
  await box.extendTimeout(60000);
  const again = await Sandbox.get({ ...auth, name: "check" });
  assert.equal(again.timeout, 240000);
  assert.equal(again.currentSession().timeout, 300000);
  assert.equal(again.expiresAt - again.currentSession().startedAt, 300000);
});

await check("attach by name", async () => {
  const same = await Sandbox.get({ ...auth, name: "check" });
  const r = await same.runCommand("cat", ["run"]);
  assert.equal(await r.stdout(), "#!/bin/sh\necho ran\n");
});

await check("an unknown name is 404", () =>
  assert.rejects(Sandbox.get({ ...auth, name: "none" }), (err) => status(404)(err) && /not found for this project/.test(err.message)),
);

await check("a name is given once", () =>
  assert.rejects(Sandbox.create({ ...auth, name: "check" }), (err) => status(400)(err) && /already exists/.test(err.message)),
);

await check("list by tag, by name, and its pages", async () => {
  for (let i = 0; i < 3; i++) await Sandbox.create({ ...auth, name: `other-${i}`, persistent: false, tags: { app: "other" } });
  const names = async (options) => {
    const found = [];
    for await (const s of await Sandbox.list({ ...auth, ...options })) found.push(s.name);
    return found;
  };
  assert.deepEqual(await names({ tags: { app: "check" } }), ["check"]);
  assert.deepEqual((await names({ tags: { app: "other" } })).sort(), ["other-0", "other-1", "other-2"]);
  assert.deepEqual(await names({ namePrefix: "other-", sortBy: "name" }), ["other-0", "other-1", "other-2"]);
  await assert.rejects(names({ namePrefix: "other-" }), status(400));
  for (let i = 0; i < 3; i++) await (await Sandbox.get({ ...auth, name: `other-${i}` })).delete();
});

await check("the runtime of old", async () => {
  const old = await Sandbox.create({ ...auth, runtime: "node22", persistent: false });
  assert.equal((await old.runCommand("sh", ["-c", "exit 4"])).exitCode, 4);
  await old.delete();
});

await check("a stopped sandbox is resumed in a new session", async () => {
  const kept = await Sandbox.create({ ...auth, name: "kept" });
  await kept.writeFiles([{ path: "note", content: Buffer.from("text\n") }]);
  const first = kept.currentSession().sessionId;
  await kept.stop();
  await kept.stop();
  const without = await Sandbox.get({ ...auth, name: "kept", resume: false });
  assert.equal(without.status, "stopped");
  const r = await kept.runCommand("cat", ["note"]);
  assert.equal(await r.stdout(), "text\n");
  assert.notEqual(kept.currentSession().sessionId, first);
  await kept.delete();
});

await check("one that keeps nothing is not resumed", async () => {
  const lost = await Sandbox.create({ ...auth, name: "lost", persistent: false });
  await lost.stop();
  await assert.rejects(lost.runCommand("true"), (err) => status(400)(err) && err.json.error.code === "snapshot_not_found");
  await lost.delete();
});

await check("snapshot: taken, opened, listed and deleted", async () => {
  const snapshot = await box.snapshot();
  assert.equal(snapshot.status, "created");
  const next = await Sandbox.create({ ...auth, persistent: false, source: { type: "snapshot", snapshotId: snapshot.snapshotId } });
  const r = await next.runCommand("cat", ["run"]);
  assert.equal(await r.stdout(), "#!/bin/sh\necho ran\n");
  await next.delete();
  const list = await Snapshot.list({ ...auth, name: "check" });
  assert.deepEqual(list.snapshots.map((s) => s.id), [snapshot.snapshotId]);
  await snapshot.delete();
  assert.equal((await Snapshot.get({ ...auth, snapshotId: snapshot.snapshotId })).status, "deleted");
});

await check("an OIDC token names team and project", async () => {
  process.env.VERCEL_OIDC_TOKEN = server.oidc;
  const found = await Sandbox.list({});
  delete process.env.VERCEL_OIDC_TOKEN;
  assert.ok(found.sandboxes.length > 0);
});

await check("an expired OIDC token is not sent", async () => {
  process.env.VERCEL_OIDC_TOKEN = server.expired;
  const before = sent;
  await assert.rejects(Sandbox.list({}));
  delete process.env.VERCEL_OIDC_TOKEN;
  assert.equal(sent, before);
});

await check("a wrong token is 401", () => assert.rejects(Sandbox.get({ ...auth, token: "wrong", name: "check" }), status(401)));

await check("another team is 403", () => assert.rejects(Sandbox.get({ ...auth, teamId: "team_other", name: "check" }), status(403)));

await check("delete", async () => {
  await box.delete();
  await assert.rejects(Sandbox.get({ ...auth, name: "check" }), status(404));
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
