// Drives the emulated Runloop with the vendor's own client, over HTTP/2 and over
// HTTP/1.1.
import { RunloopSDK, toFile } from "@runloop/api-client";
import assert from "node:assert/strict";

const { url: baseURL, key: bearerToken } = JSON.parse(process.env.EMULATOR);

let passed = 0;
let failed = 0;

async function scenario(mode, options) {
  const runloop = new RunloopSDK({ baseURL, bearerToken, ...options });

  async function check(name, f) {
    try {
      const value = await f();
      passed++;
      console.log(`ok   ${mode}: ${name}`);
      return value;
    } catch (err) {
      failed++;
      console.log(`FAIL ${mode}: ${name}: ${err?.message ?? err}`);
    }
  }

  const box = await check("create", () =>
    runloop.devbox.create({
      name: "check",
      metadata: { check: mode },
      launch_parameters: { keep_alive_time_seconds: 600 },
    }),
  );
  if (!box) return;

  await check("the devbox is running", async () => {
    const info = await box.getInfo();
    assert.equal(info.status, "running");
    assert.equal(info.metadata.check, mode);
    assert.equal(info.launch_parameters.keep_alive_time_seconds, 600);
  });

  const home = await check("exec: home directory", async () => {
    const r = await box.cmd.exec('printf %s "$HOME"; [ "$PWD" = "$HOME" ]');
    assert.equal(r.exitCode, 0);
    const found = await r.stdout();
    assert.match(found, /^\//);
    return found;
  });

  await check("exec: both streams and status 5", async () => {
    const r = await box.cmd.exec("echo out; echo err >&2; exit 5");
    assert.equal(r.exitCode, 5);
    assert.equal(await r.stdout(), "out\n");
    assert.equal(await r.stderr(), "err\n");
  });

  await check("exec: longer than the optimistic wait", async () => {
    const r = await box.cmd.exec("sleep 2; echo done", { optimistic_timeout: 1 });
    assert.equal(r.exitCode, 0);
    assert.equal(await r.stdout(), "done\n");
  });

  await check("exec: streamed with callbacks", async () => {
    let out = "";
    let err = "";
    let first = 0;
    const r = await box.cmd.exec("for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.3; done; exit 6", {
      stdout: (s) => ((out += s), (first ||= Date.now())),
      stderr: (s) => (err += s),
    });
    assert.equal(r.exitCode, 6);
    assert.equal(out, "o1\no2\no3\n");
    assert.equal(err, "e1\ne2\ne3\n");
    assert.ok(Date.now() - first > 400, "output came at the end");
  });

  await check("exec: much streamed output", async () => {
    let n = 0;
    const r = await box.cmd.exec("yes 0123456789abcde | head -c 3000000", { stdout: (s) => (n += s.length) });
    assert.equal(r.exitCode, 0);
    assert.equal(n, 3000000);
  });

  await check("exec: 250 lines are cut to 100 and refilled", async () => {
    const r = await box.cmd.exec("i=0; while [ $i -lt 250 ]; do echo line $i; i=$((i+1)); done");
    assert.equal(r.result.stdout_truncated, true);
    assert.equal(r.result.stdout.trim().split("\n").length, 100);
    const all = (await r.stdout()).trim().split("\n");
    assert.equal(all.length, 250);
    assert.equal(all[0], "line 0");
  });

  await check("exec: a named shell keeps its state", async () => {
    const shell = box.shell("one");
    await shell.exec("cd /; X=1; export X");
    const r = await shell.exec('pwd; echo "$X"');
    assert.equal(await r.stdout(), "/\n1\n");
  });

  await check("execAsync: kill", async () => {
    const e = await box.cmd.execAsync("echo on; sleep 300");
    assert.equal((await e.getState()).status, "running");
    await e.kill();
    const r = await e.result();
    assert.equal(r.exitCode, 137);
  });

  await check("execAsync: kill of the group", async () => {
    const e = await box.cmd.execAsync("sleep 300 & echo $! >pid; wait");
    await box.cmd.exec("while [ ! -s pid ]; do sleep 0.05; done");
    await runloop.api.devboxes.executions.kill(box.id, e.executionId, { kill_process_group: true });
    // It may take a busy machine a while, and the dead whom nobody has buried do not run.
    const r = await box.cmd.exec('p=$(cat pid); i=0; while kill -0 $p 2>/dev/null && ! grep -q ") [ZX] " /proc/$p/stat 2>/dev/null; do [ $i -lt 100 ] || { echo alive; break; }; i=$((i+1)); sleep 0.05; done');
    assert.equal(await r.stdout(), "");
  });

  await check("files: text", async () => {
    await box.file.write({ file_path: "note.txt", contents: "text é\n" });
    assert.equal(await box.file.read({ file_path: "note.txt" }), "text é\n");
    const r = await box.cmd.exec("cat ~/note.txt");
    assert.equal(await r.stdout(), "text é\n");
  });

  await check("files: bytes up and down", async () => {
    const data = Buffer.from(Array.from({ length: 70000 }, (_, i) => (i * 7) % 256));
    await box.file.upload({ path: `${home}/bytes`, file: await toFile(data, "bytes") });
    const back = Buffer.from(await (await box.file.download({ path: "bytes" })).arrayBuffer());
    assert.ok(Buffer.compare(back, data) === 0, `${back.length} bytes came back`);
  });

  await check("files: a missing file fails", () =>
    assert.rejects(box.file.download({ path: "missing" }), (err) => err.status === 404 && /No such file/.test(err.message)),
  );

  await check("attach by id", async () => {
    const same = runloop.devbox.fromId(box.id);
    const r = await same.cmd.exec("cat note.txt");
    assert.equal(await r.stdout(), "text é\n");
  });

  await check("list, and its pages", async () => {
    const others = [];
    for (let i = 0; i < 3; i++) others.push(await runloop.devbox.create({ metadata: { check: mode } }));
    const found = [];
    for await (const d of runloop.api.devboxes.list({ status: "running", limit: 2 })) {
      if (d.metadata.check === mode) found.push(d.id);
    }
    assert.deepEqual(found.sort(), [box.id, ...others.map((d) => d.id)].sort());
    for (const d of others) await d.shutdown();
  });

  await check("suspend and resume", async () => {
    await box.suspend();
    await box.awaitSuspended();
    assert.equal((await box.getInfo()).status, "suspended");
    await box.resume();
    const r = await box.cmd.exec("cat note.txt");
    assert.equal(await r.stdout(), "text é\n");
    await box.keepAlive();
  });

  await check("snapshot: taken, opened and deleted", async () => {
    const snapshot = await box.snapshotDisk({ name: "base", metadata: { check: mode } });
    const next = await runloop.devbox.createFromSnapshot(snapshot.id);
    const r = await next.cmd.exec("cat note.txt");
    assert.equal(await r.stdout(), "text é\n");
    await next.shutdown();
    const list = await runloop.snapshot.list({ devbox_id: box.id });
    assert.deepEqual(list.map((s) => s.id), [snapshot.id]);
    await snapshot.delete();
  });

  await check("blueprint: built, used and deleted", async () => {
    const blueprint = await runloop.blueprint.create({ name: "base", dockerfile: "FROM debian:12\n" });
    assert.equal((await blueprint.getInfo()).status, "build_complete");
    assert.ok((await blueprint.logs()).logs.length > 0);
    const next = await runloop.devbox.createFromBlueprintName("base");
    assert.equal((await next.cmd.exec("exit 4")).exitCode, 4);
    await next.shutdown();
    await blueprint.delete();
    await assert.rejects(blueprint.getInfo());
  });

  await check("metadata can be changed", async () => {
    await runloop.api.devboxes.update(box.id, { metadata: { check: mode, more: "1" } });
    assert.equal((await box.getInfo()).metadata.more, "1");
  });

  await check("logs", async () => assert.ok((await box.logs()).logs.length > 0));

  await check("an unknown devbox is 404", () =>
    assert.rejects(runloop.devbox.fromId("dbx_none").getInfo(), (err) => err.status === 404 && /not found/.test(err.message)),
  );

  await check("a wrong key is refused", () =>
    assert.rejects(
      new RunloopSDK({ baseURL, bearerToken: "wrong", ...options }).devbox.fromId(box.id).getInfo(),
      (err) => err.status === 401,
    ),
  );

  await check("shutdown", async () => {
    await box.shutdown();
    const info = await box.getInfo();
    assert.equal(info.status, "shutdown");
    assert.equal(info.shutdown_reason, "api_shutdown");
    await assert.rejects(box.cmd.exec("true"));
  });
}

await scenario("HTTP/2", {});
await scenario("HTTP/1.1", { http2: false });

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
