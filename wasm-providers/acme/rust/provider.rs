//! A provider for Acme, the practice service of sdk/practice: complete and small.

mod json;
mod talkops;
use talkops::*;

talkops::exports! {
    provider_describe => describe,
    provider_open => open,
    provider_list => list,
    sandbox_exec => exec,
    sandbox_kill => kill,
    sandbox_read_file => read_file,
    sandbox_write_file => write_file,
    sandbox_snapshot => snapshot,
    sandbox_destroy => destroy,
}

const ABOUT: &str = r#"{
    "abi": [1, 0],
    "name": "acme",
    "title": "Acme Boxes",
    "sign_in": "export ACME_API_KEY=\"your-key\"",
    "settings": [
        {"key": "api_key", "env": ["ACME_API_KEY"], "help": "API key", "secret": true},
        {"key": "api_url", "env": ["ACME_API_URL"], "help": "address of the API", "url": true, "default": "https://api.acme.example"}
    ],
    "logins": [["api_key"]],
    "features": {"attach": true, "snapshot": true, "lifetime": true, "labels": true},
    "hosts": ["api.acme.example"]
}"#;

fn describe(_: &Json) -> Result<Json> {
    Json::parse(ABOUT.as_bytes())
}

fn done() -> Result<Json> {
    Json::parse(b"{}")
}

// ---- The service ----

/// A request to the service, signed in.
fn request(call: &Json, method: &'static str, path: String, body: Body) -> Result<Request> {
    let settings = call.get("settings");
    let key = settings.get("api_key").str(); // a placeholder, or "" when there is no key
    if key.is_empty() {
        return Err(error("unauthenticated", "not signed in to Acme: ACME_API_KEY is not set"));
    }
    Ok(Request {
        method,
        url: settings.get("api_url").str().to_string() + &path,
        headers: vec![("authorization", format!("Bearer {}", key))],
        body,
        again: matches!(method, "GET" | "DELETE"),
        ..Request::default()
    })
}

/// The answer, if it is one of success.
fn accepted(answer: Response) -> Result<Response> {
    if answer.status / 100 == 2 {
        return Ok(answer);
    }
    let body = Json::parse(&answer.body).unwrap_or(Json::Null);
    let kind = match (body.get("error").get("code").str(), answer.status) {
        ("no_such_box" | "no_such_snapshot", _) => "not_found",
        ("bad_key", _) => "unauthenticated",
        ("no_such_file", _) => "file_not_found",
        ("bad_path", _) => "invalid_path",
        ("bad_request", _) => "invalid_argument",
        (code @ ("is_directory" | "not_a_directory" | "not_a_file" | "permission_denied"), _) => code,
        (_, 429) => "rate_limited",
        (_, 500..) => "unavailable",
        _ => "internal",
    };
    Err(error(kind, format!("Acme: {} ({})", body.get("error").get("message").str(), answer.status)))
}

fn send(call: &Json, method: &'static str, path: String, body: Body) -> Result<Response> {
    accepted(request(call, method, path, body)?.send()?)
}

/// The address of the request's box, and what follows it.
fn path(call: &Json, rest: &str) -> String {
    format!("/v1/boxes/{}{}", escape(call.get("sandbox").get("id").str().as_bytes()), rest)
}

/// Says of a missing box that it was there before.
fn gone<T>(call: &Json, result: Result<T>) -> Result<T> {
    result.map_err(|e| match e.kind.as_str() {
        "not_found" => e.becomes("gone", format!("the box {} no longer exists", call.get("sandbox").get("id").str())),
        _ => e,
    })
}

// ---- A box's life ----

fn open(call: &Json) -> Result<Json> {
    let spec = call.get("spec");
    let id = spec.get("id").str();
    let mut machine = if id.is_empty() {
        let wanted = object([
            ("name", spec.get("name").clone()),
            ("env", spec.get("env").clone()),
            ("labels", spec.get("labels").clone()),
            ("snapshot", spec.get("snapshot").clone()),
            ("lifetime_s", (spec.get("lifetime_ms").int() / 1000).into()),
        ]);
        let made = Json::parse(&send(call, "POST", "/v1/boxes".into(), Body::Json(wanted))?.body)?;
        // From here on the host ends the box if anything goes wrong.
        created(&object([("id", made.get("id").clone())]))?;
        made
    } else {
        show(call, id)?
    };
    while machine.get("state").str() == "starting" {
        sleep(100)?;
        machine = show(call, machine.get("id").str())?;
    }
    if stopped() {
        return Err(error("cancelled", "the opening was cancelled"));
    }
    let mut dir = machine.get("dir").clone();
    if *spec.get("dir") != Json::Null {
        // The wanted directory, if it can be made; else the box's own.
        let script = r#"mkdir -p -- "$1" && cd -- "$1" && [ -w . ]"#;
        let args = vec!["/bin/sh".into(), "-c".into(), script.into(), "sh".into(), spec.get("dir").clone()];
        let run = object([
            ("settings", call.get("settings").clone()),
            ("sandbox", object([("id", machine.get("id").clone()), ("dir", dir.clone())])),
            ("cmd", object([("id", format!("dir-{}", call.get("call").str()).into()), ("args", Json::Array(args))])),
        ]);
        if exec(&run)?.get("exit").int() == 0 {
            dir = spec.get("dir").clone();
        }
    }
    Ok(object([
        ("id", machine.get("id").clone()),
        ("dir", dir),
        ("expires_at_ms", moment(machine.get("expires_at").str()).into()),
    ]))
}

fn show(call: &Json, id: &str) -> Result<Json> {
    Json::parse(&send(call, "GET", format!("/v1/boxes/{}", escape(id.as_bytes())), Body::None)?.body)
}

fn destroy(call: &Json) -> Result<Json> {
    match send(call, "DELETE", path(call, ""), Body::None) {
        Err(e) if e.kind != "not_found" => Err(e),
        _ => done(), // it is gone
    }
}

fn list(call: &Json) -> Result<Json> {
    let labels = call.get("labels").members().iter();
    let query: Vec<String> = labels.map(|(k, v)| format!("label={}", escape(format!("{}={}", k, v.str()).as_bytes()))).collect();
    let answer = Json::parse(&send(call, "GET", format!("/v1/boxes?{}", query.join("&")), Body::None)?.body)?;
    let boxes = answer.get("boxes").items().iter().map(|m| {
        object([
            ("id", m.get("id").clone()),
            ("name", m.get("name").clone()),
            ("state", m.get("state").clone()),
            ("labels", m.get("labels").clone()),
            ("created_at_ms", moment(m.get("created_at").str()).into()),
            ("expires_at_ms", moment(m.get("expires_at").str()).into()),
        ])
    });
    Ok(object([("sandboxes", Json::Array(boxes.collect()))]))
}

fn snapshot(call: &Json) -> Result<Json> {
    let name = object([("name", call.get("name").clone())]);
    gone(call, send(call, "POST", path(call, "/snapshots"), Body::Json(name)))?;
    done()
}

// ---- Commands ----

fn exec(call: &Json) -> Result<Json> {
    let cmd = call.get("cmd");
    let command = path(call, &format!("/commands/{}", escape(cmd.get("id").str().as_bytes())));
    let result = run(call, cmd, &command);
    if result.is_err() {
        // Whatever went wrong, the command is not left running.
        if let Ok(mut end) = request(call, "DELETE", command, Body::None) {
            end.timeout_ms = 5000;
            let _ = end.send();
        }
    }
    let exit = gone(call, result)?;
    Ok(object([("exit", exit.into())]))
}

fn run(call: &Json, cmd: &Json, command: &str) -> Result<i64> {
    let own = call.get("sandbox").get("dir");
    let stdin = cmd.get("stdin").int() as i32;
    let start = object([
        ("args", cmd.get("args").clone()),
        ("dir", if *cmd.get("dir") == Json::Null { own.clone() } else { cmd.get("dir").clone() }),
        ("env", cmd.get("env").clone()),
        ("stdin", Json::Bool(stdin != 0)),
    ]);
    send(call, "PUT", command.into(), Body::Json(start))?;
    // It goes on while output comes, and ends with this function.
    let _input = match stdin {
        0 => None,
        handle => Some(request(call, "PUT", format!("{}/stdin", command), Body::Handle(handle))?.start()?),
    };
    // The host delivers the output; the other lines come here.
    let mut follow = request(call, "GET", format!("{}/output", command), Body::None)?;
    follow.frame = Some(Frame { frame: "lines", field: "stream", stdout: "stdout", stderr: "stderr", data: "data", base64: true });
    let output = follow.start()?;
    accepted(output.head()?)?;
    while let Some(line) = output.next()? {
        if let exit @ Json::Number(_) = Json::parse(&line)?.get("exit") {
            return Ok(exit.int());
        }
    }
    Err(error("unavailable", "Acme's answer ended before the command did"))
}

fn kill(call: &Json) -> Result<Json> {
    send(call, "DELETE", path(call, &format!("/commands/{}", escape(call.get("name").str().as_bytes()))), Body::None)?;
    done()
}

// ---- Files ----

fn read_file(call: &Json) -> Result<Json> {
    let mut get = request(call, "GET", path(call, &format!("/files?path={}", escape(&call.get("path").text()))), Body::None)?;
    get.to = call.get("dst").int() as i32;
    gone(call, get.send().and_then(accepted))?;
    done()
}

fn write_file(call: &Json) -> Result<Json> {
    let query = format!("/files?path={}&mode={}", escape(&call.get("path").text()), call.get("mode").str());
    let src = Body::Handle(call.get("src").int() as i32);
    gone(call, send(call, "PUT", path(call, &query), src))?;
    done()
}
