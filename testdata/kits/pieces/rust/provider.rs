//! A provider whose bytes go through the module: what the tutorial's leaves out.

mod json;
mod talkops;
use talkops::*;

talkops::exports! {
    provider_describe => describe,
    provider_open => open,
    sandbox_exec => exec,
    sandbox_read_file => read_file,
    sandbox_write_file => write_file,
    sandbox_destroy => destroy,
}

fn describe(_: &Json) -> Result<Json> {
    Json::parse(br#"{"abi": [1, 0], "name": "pieces", "settings": [{"key": "api_url", "url": true}, {"key": "api_key", "secret": true}], "features": {}}"#)
}

fn open(_: &Json) -> Result<Json> {
    progress("halfway");
    Ok(object([("id", "p".into()), ("dir", "/".into())]))
}

fn address(call: &Json, path: &str) -> String {
    call.get("settings").get("api_url").str().to_string() + path
}

fn exec(call: &Json) -> Result<Json> {
    let cmd = call.get("cmd");
    let word = cmd.get("args").items()[0].text();
    if word == b"sleep" {
        loop {
            sleep(60_000)?;
        }
    }
    while let Some(piece) = read(cmd.get("stdin").int() as i32, 50_000)? {
        emit(1, &piece)?;
    }
    emit(2, call.get("options").to_string().as_bytes())?;
    let call = object([("alg", "hmac-sha256".into()), ("secret", "api_key".into()), ("data", "what is signed".into())]);
    emit(2, format!("\n{}\n{}\n", to_base64(&word), mac(&call)?.get("mac").str()).as_bytes())?;
    if state(&object([("fn", "no such".into()), ("key", "k".into())])).is_ok() || file(&object([("fn", "open".into()), ("root", "none".into())])).is_ok() {
        return Err(error("internal", "what cannot be was not refused"));
    }
    let sane = random(16).len() == 16 && random(16) != random(16) && now() > 1_600_000_000_000 && remaining() > 0 && !stopped();
    Ok(object([("exit", if sane { 3.into() } else { 4.into() })]))
}

fn read_file(call: &Json) -> Result<Json> {
    let path = call.get("path").str();
    let mut get = Request { url: address(call, path), ..Request::default() };
    if path == "/events" {
        get.frame = Some(Frame { frame: "sse", field: "", stdout: "", stderr: "", data: "", base64: false });
    }
    let answer = get.start()?;
    let head = answer.head()?;
    if head.status != 200 {
        return Err(error("file_not_found", format!("{:?}", String::from_utf8(answer.next()?.unwrap_or_default()))));
    }
    if answer.info()?.get("status").int() != 200 {
        return Err(error("internal", answer.info()?.to_string()));
    }
    while let Some(piece) = answer.next()? {
        if path == "/events" {
            write(call.get("dst").int() as i32, Json::parse(&piece)?.get("data").str().as_bytes())?;
        } else {
            write(call.get("dst").int() as i32, &piece)?;
        }
    }
    Ok(object::<&str>([]))
}

fn write_file(call: &Json) -> Result<Json> {
    let put = Request { method: "PUT", url: address(call, "/put"), body: Body::Sent, ..Request::default() }.start()?;
    while let Some(piece) = read(call.get("src").int() as i32, 60_000)? {
        if !put.send(&piece)? {
            break;
        }
    }
    put.finish();
    match put.head()?.status {
        200 => Ok(object::<&str>([])),
        status => Err(error("no_space", format!("status {}", status))),
    }
}

fn destroy(call: &Json) -> Result<Json> {
    let bytes = vec![0, 255, 254, b'"', 10];
    let answer = Request { method: "POST", url: address(call, "/echo"), body: Body::Bytes(bytes.clone()), ..Request::default() }.send()?;
    if answer.body != bytes || answer.headers.get("x-echo").items()[0].str() != "yes" {
        return Err(error("internal", format!("{:?} {}", answer.body, answer.headers)));
    }
    let parts = object([("parts", Json::Array(vec![object([("text", "a".into())]), object([("b64", "AP8=".into())])]))]);
    let answer = Request { method: "POST", url: address(call, "/echo"), more: parts, ..Request::default() }.send()?;
    if answer.body != b"a\x00\xff" {
        return Err(error("internal", format!("{:?}", answer.body)));
    }
    Ok(object::<&str>([]))
}
