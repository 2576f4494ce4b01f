// A provider for Acme, the practice service of sdk/practice: complete and small.

import {
  Frame, Json, Request, Response, created, escape, fail, failAgain, failure, moment, serve, sleep, stopped, text, utf8,
} from "./talkops";
export { talkops_provider_abi_1 } from "./talkops";

export function provider_describe(): i32 { return serve(describe); }
export function provider_open(): i32 { return serve(open); }
export function provider_list(): i32 { return serve(list); }
export function sandbox_exec(): i32 { return serve(exec); }
export function sandbox_kill(): i32 { return serve(kill); }
export function sandbox_read_file(): i32 { return serve(readFile); }
export function sandbox_write_file(): i32 { return serve(writeFile); }
export function sandbox_snapshot(): i32 { return serve(snapshot); }
export function sandbox_destroy(): i32 { return serve(destroy); }

function describe(call: Json): Json | null {
  return Json.parse(`{
    "abi": [1, 0],
    "name": "acme",
    "title": "Acme Boxes",
    "sign_in": "export ACME_API_KEY=\\"your-key\\"",
    "settings": [
      {"key": "api_key", "env": ["ACME_API_KEY"], "help": "API key", "secret": true},
      {"key": "api_url", "env": ["ACME_API_URL"], "help": "address of the API", "url": true, "default": "https://api.acme.example"}
    ],
    "logins": [["api_key"]],
    "features": {"attach": true, "snapshot": true, "lifetime": true, "labels": true},
    "hosts": ["api.acme.example"]
  }`);
}

// ---- The service ----

/** A request to the service, signed in. */
function request(call: Json, method: string, path: string): Request | null {
  const settings = call.get("settings");
  const key = settings.get("api_key").str(); // a placeholder, or "" when there is no key
  if (key == "") return fail<Request>("unauthenticated", "not signed in to Acme: ACME_API_KEY is not set");
  const r = new Request(method, settings.get("api_url").str() + path).header("authorization", "Bearer " + key);
  return method == "GET" || method == "DELETE" ? r.again() : r;
}

/** The answer, if it is one of success. */
function accepted(answer: Response | null): Response | null {
  if (answer == null || answer.status / 100 == 2) return answer;
  const body = answer.json();
  const e = body == null ? Json.null() : body.get("error");
  const code = e.get("code").str();
  let kind = answer.status == 429 ? "rate_limited" : answer.status >= 500 ? "unavailable" : "internal";
  if (code == "no_such_box" || code == "no_such_snapshot") kind = "not_found";
  else if (code == "bad_key") kind = "unauthenticated";
  else if (code == "no_such_file") kind = "file_not_found";
  else if (code == "bad_path") kind = "invalid_path";
  else if (code == "bad_request") kind = "invalid_argument";
  else if (code == "is_directory" || code == "not_a_directory" || code == "not_a_file" || code == "permission_denied") kind = code;
  return fail<Response>(kind, "Acme: " + e.get("message").str() + " (" + answer.status.toString() + ")");
}

function send(call: Json, method: string, path: string, body: Json | null = null): Response | null {
  const r = request(call, method, path);
  if (r == null) return null;
  return accepted(body == null ? r.send() : r.json(body).send());
}

/** What comes of a request whose answer is JSON, or does not matter. */
function json(answer: Response | null): Json | null {
  return answer == null ? null : answer.json();
}
function done(answer: Response | null): Json | null {
  return answer == null ? null : Json.object();
}

/** The address of the request's box, and what follows it. */
function path(call: Json, rest: string): string {
  return "/v1/boxes/" + escape(call.get("sandbox").get("id").bytes()) + rest;
}

/** Says of a missing box that it was there before. */
function gone<T>(call: Json, result: T | null): T | null {
  if (result == null && failure.kind == "not_found") {
    return fail<T>("gone", "the box " + call.get("sandbox").get("id").str() + " no longer exists");
  }
  return result;
}

// ---- A box's life ----

function show(call: Json, id: string): Json | null {
  return json(send(call, "GET", "/v1/boxes/" + escape(utf8(id))));
}

function open(call: Json): Json | null {
  const spec = call.get("spec");
  let id = spec.get("id").str();
  let machine: Json | null;
  if (id != "") {
    machine = show(call, id);
  } else {
    const wanted = Json.object()
      .set("name", spec.get("name"))
      .set("env", spec.get("env"))
      .set("labels", spec.get("labels"))
      .set("snapshot", spec.get("snapshot"))
      .setInt("lifetime_s", spec.get("lifetime_ms").int() / 1000);
    machine = json(send(call, "POST", "/v1/boxes", wanted));
    if (machine == null) return null;
    id = machine.get("id").str();
    // From here on the host ends the box if anything goes wrong.
    if (!created(Json.object().setString("id", id))) return null;
  }
  while (machine != null && machine.get("state").str() == "starting") {
    if (!sleep(100)) return null;
    machine = show(call, id);
  }
  if (machine == null) return null;
  if (stopped()) return fail<Json>("cancelled", "the opening was cancelled");
  let dir = machine.get("dir");
  const wanted = spec.get("dir");
  if (!wanted.isNull()) {
    // The wanted directory, if it can be made; else the box's own.
    const args = Json.array().push(Json.string("/bin/sh")).push(Json.string("-c"));
    args.push(Json.string(`mkdir -p -- "$1" && cd -- "$1" && [ -w . ]`)).push(Json.string("sh")).push(wanted);
    const run = Json.object()
      .set("settings", call.get("settings"))
      .set("sandbox", Json.object().setString("id", id).set("dir", dir))
      .set("cmd", Json.object().setString("id", "dir-" + call.get("call").str()).set("args", args));
    const ran = exec(run);
    if (ran == null) return null;
    if (ran.get("exit").int() == 0) dir = wanted;
  }
  return Json.object().setString("id", id).set("dir", dir).setInt("expires_at_ms", moment(machine.get("expires_at").str()));
}

function destroy(call: Json): Json | null {
  const answer = send(call, "DELETE", path(call, ""));
  if (answer == null && failure.kind == "not_found") return Json.object(); // it is gone
  return done(answer);
}

function list(call: Json): Json | null {
  const labels = call.get("labels");
  let query = "/v1/boxes?";
  for (let i = 0; i < labels.names().length; i++) {
    query += "label=" + escape(utf8(labels.names()[i] + "=" + labels.items()[i].str())) + "&";
  }
  const answer = json(send(call, "GET", query));
  if (answer == null) return null;
  const found = Json.array();
  const boxes = answer.get("boxes").items();
  for (let i = 0; i < boxes.length; i++) {
    const m = boxes[i];
    found.push(Json.object()
      .set("id", m.get("id"))
      .set("name", m.get("name"))
      .set("state", m.get("state"))
      .set("labels", m.get("labels"))
      .setInt("created_at_ms", moment(m.get("created_at").str()))
      .setInt("expires_at_ms", moment(m.get("expires_at").str())));
  }
  return Json.object().set("sandboxes", found);
}

function snapshot(call: Json): Json | null {
  return gone(call, done(send(call, "POST", path(call, "/snapshots"), Json.object().set("name", call.get("name")))));
}

// ---- Commands ----

function exec(call: Json): Json | null {
  const command = path(call, "/commands/" + escape(call.get("cmd").get("id").bytes()));
  const exited = run(call, command);
  if (exited == null) {
    // Whatever went wrong, the command is not left running.
    const why = failure;
    const end = request(call, "DELETE", command);
    if (end != null) end.timeout(5000).send();
    failAgain(why);
  }
  return gone(call, exited);
}

function run(call: Json, command: string): Json | null {
  const cmd = call.get("cmd");
  const dir = cmd.get("dir").isNull() ? call.get("sandbox").get("dir") : cmd.get("dir");
  const stdin = i32(cmd.get("stdin").int());
  const start = Json.object().set("args", cmd.get("args")).set("dir", dir).set("env", cmd.get("env")).setBool("stdin", stdin != 0);
  if (send(call, "PUT", command, start) == null) return null;
  if (stdin != 0) {
    // It goes on while output comes, and ends with the operation.
    const put = request(call, "PUT", command + "/stdin");
    if (put == null || put.from(stdin).start() == null) return null;
  }
  // The host delivers the output; the other lines come here.
  const get = request(call, "GET", command + "/output");
  if (get == null) return null;
  const output = get.frame(new Frame("lines", "stream", "stdout", "stderr", "data", "base64")).start();
  if (output == null || accepted(output.head()) == null) return null;
  for (let line = output.next(); line != null; line = output.next()) {
    const last = Json.parse(text(line));
    if (last != null && !last.get("exit").isNull()) return Json.object().set("exit", last.get("exit"));
  }
  if (output.ended) return fail<Json>("unavailable", "Acme's answer ended before the command did");
  return null;
}

function kill(call: Json): Json | null {
  return done(send(call, "DELETE", path(call, "/commands/" + escape(call.get("name").bytes()))));
}

// ---- Files ----

function readFile(call: Json): Json | null {
  const get = request(call, "GET", path(call, "/files?path=" + escape(call.get("path").bytes())));
  if (get == null) return null;
  return gone(call, done(accepted(get.to(i32(call.get("dst").int())).send())));
}

function writeFile(call: Json): Json | null {
  const query = "/files?path=" + escape(call.get("path").bytes()) + "&mode=" + call.get("mode").str();
  const put = request(call, "PUT", path(call, query));
  if (put == null) return null;
  return gone(call, done(accepted(put.from(i32(call.get("src").int())).send())));
}
