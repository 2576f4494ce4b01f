// The talkops kit for providers written in AssemblyScript.
//
//	import { Json, fail, serve } from "./talkops";
//	export { talkops_provider_abi_1 } from "./talkops";
//
//	function destroy(call: Json): Json | null { … }
//	export function sandbox_destroy(): i32 { return serve(destroy); }
//
// An operation is a function from its request to its reply, both JSON. What fails
// gives null, and `failure` says why: return null passes it on, return fail(…) sets
// it. Every operation runs in a fresh instance: nothing in memory outlives it. What a
// provider can do to the world is the functions of this file.

import { Json, fromBase64, toBase64, utf8, text } from "./json";
export * from "./json";

// ---- Failures and exports ----

/** A failure. Kinds are words that talkops knows: "not_found", "unauthenticated",
 * "unavailable", "file_not_found", "invalid_argument", "internal", … */
export class Failure {
  constructor(public kind: string, public message: string, public sent: bool = false) {}
}

/** Why the last thing failed. */
export let failure: Failure = new Failure("internal", "");

/** Sets the failure and gives null, for a function that returns a T or null. */
export function fail<T>(kind: string, message: string): T | null {
  failure = new Failure(kind, message);
  return null;
}

/** Puts a failure back that what came later has replaced. */
export function failAgain(f: Failure): void {
  failure = f;
}

export function talkops_provider_abi_1(): i32 {
  return 0;
}

/** Runs one operation. */
export function serve(operation: (call: Json) => Json | null): i32 {
  const call = Json.parse(text(input()));
  let ok: Json | null = null;
  if (call == null) fail<Json>("invalid_argument", "the request is not JSON");
  else ok = operation(call);
  const reply = Json.object();
  if (ok != null) reply.set("ok", ok);
  else reply.set("error", Json.object().setString("kind", failure.kind).setString("message", failure.message));
  const bytes = utf8(reply.toString());
  kernel_output_set(put(bytes), bytes.length);
  return 0;
}

/** What --use abort=talkops/aborted calls. */
export function aborted(message: string | null, file: string | null, line: u32, column: u32): void {
  log(3, (message ? message : "abort") + " at " + (file ? file : "") + ":" + line.toString());
  unreachable();
}

function readFailure(v: Json): void {
  if (v.get("kind").str() == "cancelled") told = true;
  failure = new Failure(v.get("kind").str(), v.get("message").str(), v.get("sent").isTrue());
}

/** Whether a host function went well; sets the failure if not. */
function fine(status: i64): bool {
  if (status >= 0) return true;
  if (status == STOP) {
    told = true;
    fail<Json>("cancelled", "the operation shall end");
    return false;
  }
  const at = host_last_error();
  let v: Json | null = null;
  if (at >= 0) v = Json.parse(text(take(at)));
  if (v == null) fail<Json>("internal", "a host function failed");
  else readFailure(v);
  return false;
}

// ---- Requests ----

/** Records are lines or server-sent events ("lines", "sse"). Of them, JSON objects
 * whose member `field` is `stdout` or `stderr` are output of the running command:
 * talkops delivers their member `data` itself, as it is ("text") or decoded
 * ("base64"). All others reach the provider. */
export class Frame {
  constructor(
    public frame: string,
    public field: string = "",
    public stdout: string = "",
    public stderr: string = "",
    public data: string = "",
    public as_: string = "text",
  ) {}
}

/** One HTTP request. */
export class Request {
  private headers: Json = Json.object();
  private mode: Json = Json.object();
  private wire: Json = Json.object();

  constructor(method: string, url: string) {
    this.wire.setString("method", method).setString("url", url);
  }

  /** The value of a secret setting is a placeholder: talkops puts the secret in its
   * place where it stands in a header. */
  header(name: string, value: string): Request {
    this.headers.set(name, Json.array().push(Json.string(value)));
    return this;
  }

  /** The body: JSON. */
  json(body: Json): Request {
    this.wire.setString("body", body.toString());
    return this.header("content-type", "application/json");
  }

  /** Or any bytes. */
  bytes(body: Uint8Array): Request {
    this.wire.setString("body_b64", toBase64(body));
    return this;
  }

  /** Or a handle, whose bytes stay outside. */
  from(handle: i32): Request {
    this.wire.setInt("body_ref", handle);
    return this;
  }

  /** Or what Stream.send gives, until Stream.finish. */
  pieces(): Request {
    this.wire.setBool("body_sent", true);
    return this;
  }

  /** A handle that takes the body of a 2xx answer, whose bytes stay outside. */
  to(handle: i32): Request {
    this.mode.setString("mode", "ref").setInt("ref", handle);
    return this;
  }

  /** It may be sent again after a failure. */
  again(): Request {
    this.wire.setBool("idempotent", true);
    return this;
  }

  timeout(ms: i64): Request {
    this.wire.setInt("timeout_ms", ms);
    return this;
  }

  /** A member of the ABI's request that has no method here, as "parts", "multipart",
   * "encode" and "sign". */
  more(name: string, value: Json): Request {
    this.wire.set(name, value);
    return this;
  }

  /** How an answer that is read as it comes is cut into records. */
  frame(f: Frame): Request {
    this.mode.setString("frame", f.frame);
    if (f.field != "") {
      const route = Json.object().setString("field", f.field).setString("stdout", f.stdout).setString("stderr", f.stderr);
      this.mode.set("route", route.setString("data", f.data).setString("as", f.as_));
    }
    return this;
  }

  private block(): u64 {
    return put(utf8(this.wire.set("headers", this.headers).set("resp", this.mode).toString()));
  }

  /** Sends the request and waits for the whole answer. */
  send(): Response | null {
    const block = this.block();
    const at = host_http(block);
    kernel_free(block);
    return fine(at) ? Response.read(take(at)) : null;
  }

  /** Begins the request, whose answer is read while it comes. Stream.close lets go of
   * it. */
  start(): Stream | null {
    const block = this.block();
    const handle = host_http_start(block);
    kernel_free(block);
    return fine(handle) ? new Stream(handle) : null;
  }
}

/** An answer. A status of any kind is one. */
export class Response {
  constructor(public status: i32, public headers: Json, public body: Uint8Array) {}

  static read(data: Uint8Array): Response | null {
    const v = Json.parse(text(data));
    if (v == null) return null;
    if (!v.get("error").isNull()) {
      readFailure(v.get("error"));
      return null;
    }
    const coded = v.get("body_b64");
    const body = coded.isNull() ? utf8(v.get("body").str()) : fromBase64(coded.str());
    return new Response(i32(v.get("status").int()), v.get("headers"), body);
  }

  /** The body as JSON. */
  json(): Json | null {
    return Json.parse(text(this.body));
  }
}

/** A request on its way. */
export class Stream {
  /** Whether next has come to the end. */
  ended: bool = false;

  constructor(private handle: i32) {}

  /** Waits for the status and headers. */
  head(): Response | null {
    let at: i64;
    do at = host_http_wait(this.handle, PATIENCE);
    while (at == WAIT);
    return fine(at) ? Response.read(take(at)) : null;
  }

  /** Waits for the next record. Null is the end, or a failure: see ended. */
  next(): Uint8Array | null {
    let at: i64;
    do at = host_stream_next(this.handle, PATIENCE);
    while (at == WAIT);
    this.ended = at == END;
    return !this.ended && fine(at) ? take(at) : null;
  }

  /** How it stands: what was delivered, trailers, the code of a WebSocket's close. */
  info(): Json | null {
    return answer(host_stream_info(this.handle));
  }

  /** Sends up to 64 KiB of the request's body. False: no more is wanted, or a failure:
   * see ended. */
  send(piece: Uint8Array): bool {
    const block = put(piece);
    let status: i32;
    do status = host_stream_send(this.handle, block);
    while (status == WAIT);
    kernel_free(block);
    this.ended = status == END;
    return !this.ended && fine(status);
  }

  /** Says that the request's body is complete. */
  finish(): void {
    host_stream_finish(this.handle);
  }

  close(): void {
    host_stream_close(this.handle);
  }
}

// ---- Bytes, time and words ----

/** Reads a handle in pieces of at most 64 KiB. */
export class Reader {
  ended: bool = false;

  constructor(private handle: i32) {}

  /** Null is the end, or a failure: see ended. */
  next(): Uint8Array | null {
    let at: i64;
    do at = host_ref_read(this.handle, MAX_BLOCK, PATIENCE);
    while (at == WAIT);
    this.ended = at == END;
    return !this.ended && fine(at) ? take(at) : null;
  }
}

/** Gives bytes to a handle. */
export function write(handle: i32, bytes: Uint8Array): bool {
  for (let i = 0; i < bytes.length; i += MAX_BLOCK) {
    const block = put(bytes.subarray(i, min(i + MAX_BLOCK, bytes.length)));
    const status = host_ref_write(handle, block);
    kernel_free(block);
    if (!fine(status)) return false;
  }
  return true;
}

/** Delivers output of the running command: 1 is stdout, 2 stderr. That nobody takes
 * more is no failure, and no reason to end the command. */
export function emit(stream: i32, bytes: Uint8Array): bool {
  for (let i = 0; i < bytes.length; i += MAX_BLOCK) {
    const block = put(bytes.subarray(i, min(i + MAX_BLOCK, bytes.length)));
    const status = host_emit(stream, block);
    kernel_free(block);
    if (!fine(status)) return false;
  }
  return true;
}

/** Tells talkops of a machine that now exists: {"id": …}. From here on talkops ends it
 * if the opening fails in any way. */
export function created(opened: Json): bool {
  const block = put(utf8(opened.toString()));
  const status = host_created(block);
  kernel_free(block);
  return fine(status);
}

/** Says in a few words what is waited for. */
export function progress(words: string): void {
  const block = put(utf8(words));
  host_progress(block);
  kernel_free(block);
}

/** Writes a line to talkops' log: 0 debug, 1 info, 2 warning, 3 error. */
export function log(level: i32, line: string): void {
  const block = put(utf8(line));
  host_log(level, block);
  kernel_free(block);
}

/** A block that is JSON, and tells of a failure in its member "error". */
function answer(at: i64): Json | null {
  if (!fine(at)) return null;
  const v = Json.parse(text(take(at)));
  if (v == null || v.get("error").isNull()) return v;
  readFailure(v.get("error"));
  return null;
}

function ask(call: Json, f: (block: u64) => i64): Json | null {
  const block = put(utf8(call.toString()));
  const at = f(block);
  kernel_free(block);
  return answer(at);
}

/** The HMAC with a secret setting, which the provider cannot read: {"alg":
 * "hmac-sha256", "secret": "api_key", "data": …} gives {"mac": …}. */
export function mac(call: Json): Json | null {
  return ask(call, (block: u64) => host_mac(block));
}

/** The little that is kept for a provider between runs: {"fn": "get", "key": …}, "set"
 * with a "value", "delete". */
export function state(call: Json): Json | null {
  return ask(call, (block: u64) => host_state(block));
}

/** A file of a folder that the user granted by name: {"fn": "open", "root": …, "path":
 * …} gives {"handle": …}; also "stat", "list", "create" and "remove". */
export function file(call: Json): Json | null {
  return ask(call, (block: u64) => host_fs(block));
}

/** Waits so many milliseconds, at most a minute. */
export function sleep(ms: i32): bool {
  return fine(host_sleep(ms));
}

/** Milliseconds since 1970. */
export function now(): i64 {
  return host_now();
}

/** Milliseconds until the operation's deadline. */
export function remaining(): i64 {
  return host_remaining();
}

/** So many random bytes, at most 4096. */
export function random(n: i32): Uint8Array {
  const at = host_random(n);
  return at < 0 ? new Uint8Array(0) : take(at);
}

let told: bool = false;

/** Whether the operation shall end. The provider is told once, by the failure
 * "cancelled" of what it waits in or by this; after that requests work again, for a
 * short while, so that it can clean up. */
export function stopped(): bool {
  if (host_stopped() == 1) told = true;
  return told;
}

const END = -1;
const WAIT = -2;
const STOP = -3;
const PATIENCE: i32 = 60000; // one wait; a stop ends it at once
const MAX_BLOCK: i32 = 64 << 10;

// ---- The wall ----
//
// Bytes cross it in blocks of memory that belong to neither side. Who allocates a
// block or receives one frees it: put's is freed by its caller, take frees.

@external("extism:host/env", "alloc") declare function kernel_alloc(n: u64): u64;
@external("extism:host/env", "free") declare function kernel_free(at: u64): void;
@external("extism:host/env", "length") declare function kernel_length(at: u64): u64;
@external("extism:host/env", "load_u8") declare function kernel_load_u8(at: u64): u32;
@external("extism:host/env", "load_u64") declare function kernel_load_u64(at: u64): u64;
@external("extism:host/env", "store_u8") declare function kernel_store_u8(at: u64, v: u32): void;
@external("extism:host/env", "store_u64") declare function kernel_store_u64(at: u64, v: u64): void;
@external("extism:host/env", "input_length") declare function kernel_input_length(): u64;
@external("extism:host/env", "input_load_u8") declare function kernel_input_u8(at: u64): u32;
@external("extism:host/env", "input_load_u64") declare function kernel_input_u64(at: u64): u64;
@external("extism:host/env", "output_set") declare function kernel_output_set(at: u64, n: u64): void;

@external("talkops:host/v1", "http") declare function host_http(request: u64): i64;
@external("talkops:host/v1", "http_start") declare function host_http_start(request: u64): i32;
@external("talkops:host/v1", "http_wait") declare function host_http_wait(handle: i32, ms: i32): i64;
@external("talkops:host/v1", "stream_next") declare function host_stream_next(handle: i32, ms: i32): i64;
@external("talkops:host/v1", "stream_send") declare function host_stream_send(handle: i32, piece: u64): i32;
@external("talkops:host/v1", "stream_finish") declare function host_stream_finish(handle: i32): i32;
@external("talkops:host/v1", "stream_info") declare function host_stream_info(handle: i32): i64;
@external("talkops:host/v1", "stream_close") declare function host_stream_close(handle: i32): i32;
@external("talkops:host/v1", "emit") declare function host_emit(stream: i32, bytes: u64): i32;
@external("talkops:host/v1", "ref_read") declare function host_ref_read(handle: i32, most: i32, ms: i32): i64;
@external("talkops:host/v1", "ref_write") declare function host_ref_write(handle: i32, bytes: u64): i32;
@external("talkops:host/v1", "fs") declare function host_fs(call: u64): i64;
@external("talkops:host/v1", "mac") declare function host_mac(call: u64): i64;
@external("talkops:host/v1", "state") declare function host_state(call: u64): i64;
@external("talkops:host/v1", "created") declare function host_created(opened: u64): i32;
@external("talkops:host/v1", "progress") declare function host_progress(words: u64): i32;
@external("talkops:host/v1", "log") declare function host_log(level: i32, line: u64): i32;
@external("talkops:host/v1", "sleep") declare function host_sleep(ms: i32): i32;
@external("talkops:host/v1", "now") declare function host_now(): i64;
@external("talkops:host/v1", "remaining") declare function host_remaining(): i64;
@external("talkops:host/v1", "stopped") declare function host_stopped(): i32;
@external("talkops:host/v1", "random") declare function host_random(n: i32): i64;
@external("talkops:host/v1", "last_error") declare function host_last_error(): i64;

function put(data: Uint8Array): u64 {
  const at = kernel_alloc(data.length);
  let i = 0;
  for (; i + 8 <= data.length; i += 8) kernel_store_u64(at + i, load<u64>(data.dataStart + i));
  for (; i < data.length; i++) kernel_store_u8(at + i, data[i]);
  return at;
}

function take(at: u64): Uint8Array {
  const data = new Uint8Array(i32(kernel_length(at)));
  let i = 0;
  for (; i + 8 <= data.length; i += 8) store<u64>(data.dataStart + i, kernel_load_u64(at + i));
  for (; i < data.length; i++) data[i] = u8(kernel_load_u8(at + i));
  kernel_free(at);
  return data;
}

function input(): Uint8Array {
  const data = new Uint8Array(i32(kernel_input_length()));
  let i = 0;
  for (; i + 8 <= data.length; i += 8) store<u64>(data.dataStart + i, kernel_input_u64(i));
  for (; i < data.length; i++) data[i] = u8(kernel_input_u8(i));
  return data;
}
