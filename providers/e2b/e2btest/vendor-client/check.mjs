// Drives the emulated E2B with the vendor's own client: today's, and the last that
// makes sandboxes by the older call.
import assert from "node:assert/strict";
import * as today from "e2b";
import * as before from "e2b-before";

const emulator = JSON.parse(process.env.EMULATOR);
const opts = { apiKey: emulator.key, apiUrl: emulator.url, sandboxUrl: emulator.url };

let passed = 0;
let failed = 0;

async function all(version, { Sandbox, CommandExitError, NotFoundError, AuthenticationError }) {
  async function check(name, f) {
    try {
      const value = await f();
      passed++;
      console.log(`ok   ${version}: ${name}`);
      return value;
    } catch (err) {
      failed++;
      console.log(`FAIL ${version}: ${name}: ${err?.stack ?? err}`);
    }
  }
  const listed = async (query) => {
    const pages = Sandbox.list({ ...opts, query, limit: 1 });
    const found = [];
    while (pages.hasNext) found.push(...(await pages.nextItems()));
    return found;
  };

  const sandbox = await check("create", () => Sandbox.create({ ...opts, metadata: { check: version, two: "b" }, timeoutMs: 600_000, envs: { BOX: "a b" } }));
  if (!sandbox) return;

  await check("it is running", async () => assert.equal(await sandbox.isRunning(), true));

  const dir = await check("the home directory", async () => {
    const r = await sandbox.commands.run("pwd");
    assert.match(r.stdout, /^\/.*\n$/);
    return r.stdout.trim();
  });

  await check("run: both streams, directory, environment", async () => {
    const r = await sandbox.commands.run('echo out; echo err >&2; pwd; echo "$A|$BOX"', { cwd: "/", envs: { A: "x y" } });
    assert.equal(r.exitCode, 0);
    assert.equal(r.stdout, "out\n/\nx y|a b\n");
    assert.equal(r.stderr, "err\n");
  });

  await check("run: status 3", () =>
    assert.rejects(sandbox.commands.run("echo no; exit 3"), (err) => err instanceof CommandExitError && err.exitCode === 3 && err.stdout === "no\n"),
  );

  await check("run: an unknown program is 127", () => assert.rejects(sandbox.commands.run("no-such-program"), (err) => err.exitCode === 127));

  await check("run: a signal", async () => {
    const command = await sandbox.commands.run("sleep 300", { background: true });
    assert.equal(await command.kill(), true);
    await assert.rejects(command.wait(), (err) => err.exitCode === -1 && err.error === "signal: killed");
    assert.equal(await sandbox.commands.kill(command.pid), false);
  });

  await check("run: no such directory", () => assert.rejects(sandbox.commands.run("pwd", { cwd: "/no/such/place" }), /does not exist/));

  await check("run: output arrives while it runs", async () => {
    const seen = [];
    await sandbox.commands.run("for i in 1 2 3; do echo $i; sleep 0.2; done", { onStdout: (text) => seen.push(text) });
    assert.equal(seen.join(""), "1\n2\n3\n");
    assert.ok(seen.length > 1, `it came in ${seen.length} piece`);
  });

  await check("run: time is up", () => assert.rejects(sandbox.commands.run("sleep 30", { timeoutMs: 700 }), /time/i));

  await check("stdin, and its end", async () => {
    const command = await sandbox.commands.run("cat; echo done", { background: true, stdin: true });
    await sandbox.commands.sendStdin(command.pid, "given\n");
    await sandbox.commands.closeStdin(command.pid);
    assert.equal((await command.wait()).stdout, "given\ndone\n");
  });

  await check("a process is listed, and followed by another", async () => {
    const command = await sandbox.commands.run("sleep 1; echo late", { background: true });
    assert.ok((await sandbox.commands.list()).some((p) => p.pid === command.pid));
    const other = await sandbox.commands.connect(command.pid);
    assert.equal((await other.wait()).stdout, "late\n");
    await command.wait();
    assert.ok(!(await sandbox.commands.list()).some((p) => p.pid === command.pid));
  });

  await check("a child with the pipes holds the end up", async () => {
    const began = Date.now();
    await sandbox.commands.run("sleep 1 & echo now");
    assert.ok(Date.now() - began >= 900);
  });

  await check("write and read text", async () => {
    const info = await sandbox.files.write(`${dir}/deep/er/text`, "hello\n");
    assert.equal(info.path, `${dir}/deep/er/text`);
    assert.equal(await sandbox.files.read(`${dir}/deep/er/text`), "hello\n");
  });

  await check("write and read bytes", async () => {
    const data = Uint8Array.from({ length: 256 * 400 }, (_, i) => i % 256);
    await sandbox.files.write(`${dir}/bytes`, data.buffer);
    assert.ok(Buffer.compare(await sandbox.files.read(`${dir}/bytes`, { format: "bytes" }), data) === 0);
    await sandbox.files.write(`${dir}/empty`, "");
    assert.equal(await sandbox.files.read(`${dir}/empty`), "");
  });

  await check("write as a plain body, and compressed", async () => {
    await sandbox.files.write(`${dir}/plain`, "plain body", { useOctetStream: true });
    assert.equal(await sandbox.files.read(`${dir}/plain`), "plain body");
    await sandbox.files.write(`${dir}/small`, "z".repeat(10000), { gzip: true, useOctetStream: true });
    assert.equal(await sandbox.files.read(`${dir}/small`, { gzip: true }), "z".repeat(10000));
  });

  await check("write several files", async () => {
    const infos = await sandbox.files.write([{ path: `${dir}/m/1`, data: "one" }, { path: `${dir}/m/2`, data: "two" }]);
    assert.equal(infos.length, 2);
    assert.equal(await sandbox.files.read(`${dir}/m/2`), "two");
  });

  await check("list, exists, directories, rename, remove", async () => {
    assert.deepEqual((await sandbox.files.list(`${dir}/m`)).map((e) => [e.name, e.type]), [["1", "file"], ["2", "file"]]);
    assert.equal(await sandbox.files.exists(`${dir}/m/1`), true);
    assert.equal(await sandbox.files.exists(`${dir}/m/3`), false);
    assert.equal(await sandbox.files.makeDir(`${dir}/n/o`), true);
    assert.equal(await sandbox.files.makeDir(`${dir}/n/o`), false);
    assert.equal((await sandbox.files.rename(`${dir}/m/1`, `${dir}/n/moved`)).path, `${dir}/n/moved`);
    assert.equal((await sandbox.files.getInfo(`${dir}/n/moved`)).size, 3);
    await sandbox.files.remove(`${dir}/n`);
    await sandbox.files.remove(`${dir}/n`);
    assert.equal(await sandbox.files.exists(`${dir}/n/moved`), false);
  });

  await check("a missing file is not found", () => assert.rejects(sandbox.files.read(`${dir}/missing`), NotFoundError));

  await check("a signed address", async () => {
    const address = await sandbox.downloadUrl(`${dir}/plain`, { useSignatureExpiration: 60 });
    const ok = await fetch(address, { headers: { "E2b-Sandbox-Id": sandbox.sandboxId } });
    assert.equal(await ok.text(), "plain body");
    const bad = await fetch(address.replace(/signature=[^&]*/, "signature=v1_x"), { headers: { "E2b-Sandbox-Id": sandbox.sandboxId } });
    assert.equal(bad.status, 401);
  });

  await check("info and lifetime", async () => {
    const info = await sandbox.getInfo();
    assert.equal(info.metadata.two, "b");
    assert.equal(info.state, "running");
    await sandbox.setTimeout(3_000_000);
    assert.ok((await sandbox.getInfo()).endAt - info.endAt > 1_000_000);
  });

  await check("list by metadata, in pages", async () => {
    const other = await Sandbox.create({ ...opts, metadata: { two: "b" } });
    assert.deepEqual((await listed({ metadata: { check: version } })).map((s) => s.sandboxId), [sandbox.sandboxId]);
    assert.equal((await listed({ metadata: { two: "b" } })).length, 2);
    assert.equal((await listed({ metadata: { two: "none" } })).length, 0);
    assert.equal(await other.kill(), true);
  });

  await check("pause, and resume by connecting", async () => {
    await sandbox.files.write(`${dir}/kept`, "kept");
    assert.equal(await sandbox.pause(), true);
    assert.equal(await sandbox.pause(), false);
    assert.deepEqual((await listed({ state: ["paused"], metadata: { check: version } })).length, 1);
    await assert.rejects(sandbox.commands.run("true"));
    const again = await Sandbox.connect(sandbox.sandboxId, opts);
    assert.equal(await again.files.read(`${dir}/kept`), "kept");
  });

  await check("snapshot, and a sandbox of it", async () => {
    const snapshot = await sandbox.createSnapshot({ name: `shot-${passed}` });
    const copy = await Sandbox.create(snapshot.snapshotId, opts);
    const home = (await copy.commands.run("pwd")).stdout.trim();
    assert.equal(await copy.files.read(`${home}/kept`), "kept");
    await copy.kill();
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId, opts), true);
  });

  await check("kill, and kill again", async () => {
    assert.equal(await sandbox.kill(), true);
    assert.equal(await Sandbox.kill(sandbox.sandboxId, opts), false);
  });

  await check("an unknown sandbox is not found", () => assert.rejects(Sandbox.connect("unknown", opts), NotFoundError));

  await check("an unknown template is refused", () => assert.rejects(Sandbox.create("no-such-template", opts)));

  await check("a wrong key is refused", () =>
    assert.rejects(Sandbox.create({ ...opts, apiKey: "e2b_" + "f".repeat(40) }), AuthenticationError),
  );
}

await all("today", today);
await all("before", before);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
