// Drives the emulated Modal with the vendor's own client, which takes the address
// from the environment.
import assert from "node:assert/strict";

const emulator = JSON.parse(process.env.EMULATOR);
process.env.MODAL_SERVER_URL = emulator.url;
process.env.MODAL_CONFIG_PATH = "none.toml";
const { ModalClient } = await import("modal");

const modal = new ModalClient({
  tokenId: emulator.id,
  tokenSecret: emulator.secret,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
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

const sh = (script) => ["/bin/sh", "-c", script];

const app = await check("app", () => modal.apps.fromName("check", { createIfMissing: true }));
const image = modal.images.fromRegistry("python:3.12-slim").dockerfileCommands(["ENTRYPOINT []"]);
const sandbox = await check("create, with an image that is built first", () =>
  modal.sandboxes.create(app, image, {
    name: "check-1",
    tags: { check: "yes" },
    timeoutMs: 600_000,
    idleTimeoutMs: 300_000,
    env: { BOX: "a b" },
    command: ["sleep", "86400"],
  }),
);
if (!sandbox) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(1);
}

await check("the id is the newer backend's", () => assert.match(sandbox.sandboxId, /^sb-[0-9A-Z]{26}$/));
await check("it runs", async () => assert.equal(await sandbox.poll(), null));

const dir = await check("default directory", async () => {
  const p = await sandbox.exec(["pwd"]);
  const text = (await p.stdout.readText()).trim();
  assert.match(text, /^\//);
  assert.equal(await p.wait(), 0);
  return text;
});

await check("streams apart and status", async () => {
  const p = await sandbox.exec(sh("printf out; printf err >&2; exit 7"));
  assert.equal(await p.stdout.readText(), "out");
  assert.equal(await p.stderr.readText(), "err");
  assert.equal(await p.wait(), 7);
});

await check("directory and environment", async () => {
  const p = await sandbox.exec(sh('mkdir -p sub; printf %s "$BOX$A"'), { workdir: dir, env: { A: "x y" } });
  assert.equal(await p.stdout.readText(), "a bx y");
  const q = await sandbox.exec(["pwd"], { workdir: `${dir}/sub` });
  assert.equal(await q.stdout.readText(), `${dir}/sub\n`);
});

await check("bytes are exact", async () => {
  const p = await sandbox.exec(sh("printf 'a\\000\\377\\200'"), { mode: "binary" });
  assert.deepEqual([...(await p.stdout.readBytes())], [97, 0, 255, 128]);
});

await check("a signal's status", async () => {
  const p = await sandbox.exec(sh("kill -9 $$"));
  assert.equal(await p.wait(), 137);
});

await check("output while it runs", async () => {
  const p = await sandbox.exec(sh("echo first; while [ ! -e go ]; do sleep 0.05; done; echo last"), { workdir: dir });
  const reader = p.stdout.getReader();
  let text = (await reader.read()).value;
  assert.equal(text, "first\n");
  await sandbox.exec(["touch", "go"], { workdir: dir });
  for (let r = await reader.read(); !r.done; r = await reader.read()) text += r.value;
  assert.equal(text, "first\nlast\n");
});

await check("20 MB of output", async () => {
  const p = await sandbox.exec(sh("yes 0123456789abcde | head -c 20000000"), { mode: "binary" });
  assert.equal((await p.stdout.readBytes()).length, 20_000_000);
  assert.equal(await p.wait(), 0);
});

await check("standard input", async () => {
  const p = await sandbox.exec(["wc", "-c"]);
  await p.stdin.writeText("x".repeat(300_000));
  await p.stdin.writeText("y");
  await p.closeStdin();
  assert.equal((await p.stdout.readText()).trim(), "300001");
});

await check("time is up", async () => {
  const begin = Date.now();
  const p = await sandbox.exec(sh("echo before; sleep 60"), { timeoutMs: 1000 });
  let status;
  try {
    status = await p.wait();
  } catch {
    status = 137;
  }
  assert.equal(status, 137);
  assert.ok(Date.now() - begin < 10_000);
});

await check("a command is ended by another", async () => {
  const p = await sandbox.exec(sh("echo $$ >pid; exec sleep 60"), { workdir: dir });
  const q = await sandbox.exec(sh("until [ -s pid ]; do sleep 0.05; done; kill -TERM $(cat pid)"), { workdir: dir });
  assert.equal(await q.wait(), 0);
  assert.equal(await p.wait(), 143);
});

await check("a background child does not hold the status up", async () => {
  const p = await sandbox.exec(sh("sleep 30 & echo now"));
  assert.equal(await p.stdout.readText(), "now\n");
  assert.equal(await p.wait(), 0);
});

await check("a missing program is an error", () => assert.rejects(sandbox.exec(["no-such-program-xyz"])));

const bytes = Uint8Array.from({ length: 4 << 20 }, (_, i) => (i * 31 + (i >> 8)) & 255);
await check("files: 4 MiB both ways", async () => {
  await sandbox.filesystem.writeBytes(bytes, `${dir}/deep/er/file.bin`);
  const back = await sandbox.filesystem.readBytes(`${dir}/deep/er/file.bin`);
  assert.ok(Buffer.from(back).equals(Buffer.from(bytes)));
});

await check("files: text", async () => {
  await sandbox.filesystem.writeText("hello\n", `${dir}/a.txt`);
  assert.equal(await sandbox.filesystem.readText(`${dir}/a.txt`), "hello\n");
  const p = await sandbox.exec(["cat", "a.txt"], { workdir: dir });
  assert.equal(await p.stdout.readText(), "hello\n");
});

await check("files: list and stat", async () => {
  const list = await sandbox.filesystem.listFiles(`${dir}/deep/er`);
  assert.deepEqual(list.map((f) => [f.name, f.type, f.size]), [["file.bin", "file", 4 << 20]]);
  const stat = await sandbox.filesystem.stat(`${dir}/deep`);
  assert.equal(stat.type, "directory");
});

await check("files: make and remove directories", async () => {
  await sandbox.filesystem.makeDirectory(`${dir}/x/y`);
  await assert.rejects(sandbox.filesystem.remove(`${dir}/x`));
  await sandbox.filesystem.remove(`${dir}/x`, { recursive: true });
  await assert.rejects(sandbox.filesystem.stat(`${dir}/x`), { name: "SandboxFilesystemNotFoundError" });
});

await check("files: a missing one", () =>
  assert.rejects(sandbox.filesystem.readBytes(`${dir}/none`), { name: "SandboxFilesystemNotFoundError" }),
);
await check("files: a directory is not written", () =>
  assert.rejects(sandbox.filesystem.writeText("x", `${dir}/deep`), { name: "SandboxFilesystemIsADirectoryError" }),
);

await check("attach by id", async () => {
  const same = await modal.sandboxes.fromId(sandbox.sandboxId);
  const p = await same.exec(["cat", "a.txt"], { workdir: dir });
  assert.equal(await p.stdout.readText(), "hello\n");
});
await check("attach by name", async () =>
  assert.equal((await modal.sandboxes.fromName("check", "check-1")).sandboxId, sandbox.sandboxId),
);
await check("an unknown id is an error", async () =>
  assert.rejects((await modal.sandboxes.fromId("sb-00000000000000000000000000")).exec(["true"])),
);
await check("a name that is taken is refused", () =>
  assert.rejects(modal.sandboxes.create(app, image, { name: "check-1" }), { name: "AlreadyExistsError" }),
);

await check("tags", async () => {
  assert.deepEqual(await sandbox.getTags(), { check: "yes" });
  await sandbox.setTags({ check: "yes", more: "1" });
  assert.deepEqual(await sandbox.getTags(), { check: "yes", more: "1" });
});

async function listed(tags) {
  const ids = [];
  for await (const s of modal.sandboxes.list({ appId: app.appId, tags })) ids.push(s.sandboxId);
  return ids;
}
await check("list by tags", async () => {
  assert.deepEqual(await listed({ check: "yes" }), [sandbox.sandboxId]);
  assert.deepEqual(await listed({ check: "no" }), []);
});

await check("snapshot, publish and start from it by name", async () => {
  const kept = await sandbox.snapshotFilesystem();
  await kept.publish("check-base");
  const named = await modal.images.fromName("check-base");
  assert.equal(named.imageId, kept.imageId);
  const next = await modal.sandboxes.create(app, named, { timeoutMs: 60_000 });
  const p = await next.exec(["cat", "a.txt"]);
  assert.equal(await p.stdout.readText(), "hello\n");
  await next.terminate({ wait: true });
  await modal.images.delete(kept.imageId);
  await assert.rejects(modal.images.fromName("check-base"), { name: "NotFoundError" });
});

await check("a wrong secret is refused", () =>
  assert.rejects(new ModalClient({ tokenId: "ak-wrong", tokenSecret: "as-wrong" }).apps.fromName("check")),
);

await check("end", async () => {
  assert.equal(await sandbox.terminate({ wait: true }), 137);
  assert.equal(await sandbox.poll(), 137);
  await assert.rejects((await modal.sandboxes.fromId(sandbox.sandboxId)).exec(["true"]));
  assert.deepEqual(await listed({ check: "yes" }), []);
});

modal.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
