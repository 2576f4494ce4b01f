// A provider whose bytes go through the module: what the tutorial's leaves out.

import {
  Frame, Json, Reader, Request, emit, fail, file, mac, now, progress, random, remaining, serve, sleep, state, stopped, text, toBase64, utf8, write,
} from "./talkops";
export { talkops_provider_abi_1 } from "./talkops";

export function provider_describe(): i32 { return serve(describe); }
export function provider_open(): i32 { return serve(open); }
export function sandbox_exec(): i32 { return serve(exec); }
export function sandbox_read_file(): i32 { return serve(readFile); }
export function sandbox_write_file(): i32 { return serve(writeFile); }
export function sandbox_destroy(): i32 { return serve(destroy); }

function describe(call: Json): Json | null {
  return Json.parse(`{"abi": [1, 0], "name": "pieces", "settings": [{"key": "api_url", "url": true}, {"key": "api_key", "secret": true}], "features": {}}`);
}

function open(call: Json): Json | null {
  progress("halfway");
  return Json.object().setString("id", "p").setString("dir", "/");
}

function address(call: Json, path: string): string {
  return call.get("settings").get("api_url").str() + path;
}

function exec(call: Json): Json | null {
  const cmd = call.get("cmd");
  const word = cmd.get("args").items()[0].bytes();
  while (text(word) == "sleep") {
    if (!sleep(60000)) return null;
  }
  const stdin = new Reader(i32(cmd.get("stdin").int()));
  for (let piece = stdin.next(); piece != null; piece = stdin.next()) {
    if (!emit(1, piece)) return null;
  }
  const signed = mac(Json.object().setString("alg", "hmac-sha256").setString("secret", "api_key").setString("data", "what is signed"));
  if (!stdin.ended || signed == null || !emit(2, utf8(call.get("options").toString()))) return null;
  if (!emit(2, utf8("\n" + toBase64(word) + "\n" + signed.get("mac").str() + "\n"))) return null;
  if (state(Json.object().setString("fn", "no such").setString("key", "k")) != null || file(Json.object().setString("fn", "open")) != null) {
    return fail<Json>("internal", "what cannot be was not refused");
  }
  const sane = random(16).length == 16 && now() > 1600000000000 && remaining() > 0 && !stopped();
  return Json.object().setInt("exit", sane ? 3 : 4);
}

function readFile(call: Json): Json | null {
  const path = call.get("path").str();
  const get = new Request("GET", address(call, path));
  if (path == "/events") get.frame(new Frame("sse"));
  const answer = get.start();
  if (answer == null) return null;
  const head = answer.head();
  if (head == null) return null;
  const info = answer.info();
  if (info == null || info.get("status").int() != head.status) return null;
  for (let piece = answer.next(); piece != null; piece = answer.next()) {
    if (head.status != 200) return fail<Json>("file_not_found", text(piece));
    if (path == "/events") {
      const event = Json.parse(text(piece));
      if (event == null || !write(i32(call.get("dst").int()), utf8(event.get("data").str()))) return null;
    } else if (!write(i32(call.get("dst").int()), piece)) return null;
  }
  answer.close();
  return answer.ended ? Json.object() : null;
}

function writeFile(call: Json): Json | null {
  const put = new Request("PUT", address(call, "/put")).pieces().start();
  if (put == null) return null;
  const source = new Reader(i32(call.get("src").int()));
  for (let piece = source.next(); piece != null; piece = source.next()) {
    if (put.send(piece)) continue;
    if (!put.ended) return null;
    break;
  }
  put.finish();
  const head = put.head();
  if (head == null) return null;
  return head.status == 200 ? Json.object() : fail<Json>("no_space", "status " + head.status.toString());
}

function destroy(call: Json): Json | null {
  const bytes = new Uint8Array(5);
  bytes.set([0, 255, 254, 34, 10]);
  const answer = new Request("POST", address(call, "/echo")).bytes(bytes).send();
  if (answer == null) return null;
  const echo = answer.headers.get("x-echo").items();
  if (toBase64(answer.body) != toBase64(bytes) || echo.length != 1 || echo[0].str() != "yes") return fail<Json>("internal", answer.headers.toString());
  const parts = Json.array().push(Json.object().setString("text", "a")).push(Json.object().setString("b64", "AP8="));
  const second = new Request("POST", address(call, "/echo")).more("parts", parts).send();
  if (second == null) return null;
  return toBase64(second.body) == "YQD/" ? Json.object() : fail<Json>("internal", toBase64(second.body));
}
