//! The talkops kit for providers written in Rust. It needs no crates.
//!
//! An operation is a function from its request to its reply, both JSON:
//!
//!     mod json;
//!     mod talkops;
//!     use talkops::*;
//!
//!     talkops::exports! {
//!         provider_describe => describe, provider_open => open, sandbox_exec => exec,
//!         sandbox_read_file => read_file, sandbox_write_file => write_file, sandbox_destroy => destroy,
//!     }
//!
//!     fn destroy(call: &Json) -> Result<Json> { … }
//!
//! Every operation runs in a fresh instance: nothing in memory outlives it. Files,
//! clocks and sockets of the standard library do not work here; what a provider can
//! do to the world is the functions of this file.
#![allow(dead_code)]

pub use crate::json::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

// ---- Errors ----

/// A failure. `kind` is a word that talkops knows: "not_found", "unauthenticated",
/// "unavailable", "file_not_found", "invalid_argument", "internal", …
#[derive(Debug, Clone)]
pub struct Error {
    pub kind: String,
    pub message: String,
    /// Whether part of a failed request may have reached the vendor.
    pub sent: bool,
}

pub type Result<T> = std::result::Result<T, Error>;

pub fn error(kind: &str, message: impl Into<String>) -> Error {
    Error { kind: kind.into(), message: message.into(), sent: false }
}

impl Error {
    fn read(v: &Json) -> Error {
        Error { kind: v.get("kind").str().into(), message: v.get("message").str().into(), sent: *v.get("sent") == Json::Bool(true) }
    }

    /// The same failure under another kind.
    pub fn becomes(mut self, kind: &str, message: impl Into<String>) -> Error {
        self.kind = kind.into();
        self.message = message.into();
        self
    }
}

fn cancelled() -> Error {
    STOPPED.store(true, Relaxed);
    error("cancelled", "the operation shall end")
}

/// Why the last host function failed.
fn last_error() -> Error {
    match unsafe { host::last_error() } {
        at if at < 0 => error("internal", "a host function failed"),
        at => Json::parse(&take(at)).map_or_else(|e| e, |v| Error::read(&v)),
    }
}

// ---- Exports ----

/// Names the function of each operation, and makes the module's exports of them.
macro_rules! exports {
    ($($export:ident => $function:path),+ $(,)?) => {
        #[no_mangle]
        pub extern "C" fn talkops_provider_abi_1() -> i32 { 0 }
        $(#[no_mangle]
        pub extern "C" fn $export() -> i32 { $crate::talkops::serve($function) })+
    };
}

pub(crate) use exports;

/// Runs one operation.
pub fn serve(operation: fn(&Json) -> Result<Json>) -> i32 {
    std::panic::set_hook(Box::new(|p| log(3, &p.to_string())));
    let reply = match Json::parse(&input()).and_then(|call| operation(&call)) {
        Ok(ok) => object([("ok", ok)]),
        Err(e) => object([("error", object([("kind", e.kind.into()), ("message", e.message.into())]))]),
    };
    let text = reply.to_string();
    unsafe { kernel::output_set(put(text.as_bytes()), text.len() as u64) };
    0
}

// ---- Requests ----

/// One HTTP request. `Request::default()` is a GET without a body.
#[derive(Default)]
pub struct Request {
    pub method: &'static str,
    pub url: String,
    /// The value of a secret setting is a placeholder: talkops puts the secret in
    /// its place where it stands in a header.
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
    /// A handle that takes the body of a 2xx answer, whose bytes stay outside; 0: none.
    pub to: i32,
    /// It may be sent again after a failure.
    pub again: bool,
    /// 0: the operation's own.
    pub timeout_ms: i64,
    /// How an answer that is read as it comes is cut into records.
    pub frame: Option<Frame>,
    /// Members of the ABI's request that have no field here, as "parts", "multipart",
    /// "encode" and "sign"; null is none.
    pub more: Json,
}

pub enum Body {
    None,
    Json(Json),
    Bytes(Vec<u8>),
    /// A handle of the caller, whose bytes stay outside.
    Handle(i32),
    /// What `Stream::send` gives, until `Stream::finish`.
    Sent,
}

impl Default for Body {
    fn default() -> Self { Body::None }
}

/// Records are lines or server-sent events ("lines", "sse"). Of them, JSON objects
/// whose member `field` is `stdout` or `stderr` are output of the running command:
/// talkops delivers their member `data` itself. All others reach the provider.
pub struct Frame {
    pub frame: &'static str,
    pub field: &'static str,
    pub stdout: &'static str,
    pub stderr: &'static str,
    pub data: &'static str,
    pub base64: bool,
}

/// An answer. A status of any kind is one.
pub struct Response {
    pub status: i64,
    pub headers: Json,
    pub body: Vec<u8>,
}

impl Response {
    fn read(v: &Json) -> Result<Response> {
        if let Json::Object(_) = v.get("error") {
            let e = Error::read(v.get("error"));
            return Err(if e.kind == "cancelled" { cancelled() } else { e });
        }
        let body = match v.get("body_b64") {
            Json::String(s) => from_base64(s)?,
            _ => v.get("body").str().as_bytes().to_vec(),
        };
        Ok(Response { status: v.get("status").int(), headers: v.get("headers").clone(), body })
    }
}

impl Request {
    fn wire(&self, stream: bool) -> Json {
        let headers = self.headers.iter().map(|(k, v)| (*k, Json::Array(vec![v.as_str().into()])));
        let mut all = vec![("method", self.method.into()), ("url", self.url.as_str().into()), ("idempotent", Json::Bool(self.again))];
        let mut headers: Vec<_> = headers.collect();
        match &self.body {
            Body::None => {}
            Body::Json(v) => {
                headers.push(("content-type", Json::Array(vec!["application/json".into()])));
                all.push(("body", v.to_string().into()));
            }
            Body::Bytes(b) => all.push(("body_b64", to_base64(b).into())),
            Body::Handle(h) => all.push(("body_ref", (*h as i64).into())),
            Body::Sent => all.push(("body_sent", Json::Bool(true))),
        }
        all.push(("headers", object(headers)));
        if self.timeout_ms > 0 {
            all.push(("timeout_ms", self.timeout_ms.into()));
        }
        let mut resp = vec![("mode", if stream { "stream".into() } else if self.to != 0 { "ref".into() } else { "inline".into() })];
        if self.to != 0 {
            resp.push(("ref", (self.to as i64).into()));
        }
        if let Some(f) = &self.frame {
            resp.push(("frame", f.frame.into()));
            if !f.field.is_empty() {
                resp.push(("route", object([
                    ("field", f.field.into()), ("stdout", f.stdout.into()), ("stderr", f.stderr.into()),
                    ("data", f.data.into()), ("as", if f.base64 { "base64".into() } else { "text".into() }),
                ])));
            }
        }
        all.push(("resp", object(resp)));
        all.extend(self.more.members().iter().map(|(k, v)| (k.as_str(), v.clone())));
        object(all)
    }

    /// Sends the request and waits for the whole answer.
    pub fn send(&self) -> Result<Response> {
        match with(self.wire(false).to_string().as_bytes(), |at| unsafe { host::http(at) }) {
            at if at < 0 => Err(failed(at)),
            at => Response::read(&Json::parse(&take(at))?),
        }
    }

    /// Begins the request, whose answer is read while it comes.
    pub fn start(&self) -> Result<Stream> {
        match with(self.wire(true).to_string().as_bytes(), |at| unsafe { host::http_start(at) }) {
            handle if handle < 0 => Err(failed(handle as i64)),
            handle => Ok(Stream(handle)),
        }
    }
}

/// A request on its way. It is let go of when dropped.
pub struct Stream(i32);

impl Stream {
    /// Waits for the status and headers.
    pub fn head(&self) -> Result<Response> {
        match wait(|| unsafe { host::http_wait(self.0, PATIENCE) })? {
            Some(data) => Response::read(&Json::parse(&data)?),
            None => Err(error("unavailable", "the answer has ended")),
        }
    }

    /// Waits for the next record; None is the end.
    pub fn next(&self) -> Result<Option<Vec<u8>>> {
        wait(|| unsafe { host::stream_next(self.0, PATIENCE) })
    }

    /// How it stands: what was delivered, trailers, the code of a WebSocket's close.
    pub fn info(&self) -> Result<Json> {
        answer(unsafe { host::stream_info(self.0) })
    }

    /// Sends up to 64 KiB of the request's body. False: no more is wanted.
    pub fn send(&self, piece: &[u8]) -> Result<bool> {
        loop {
            match with(piece, |at| unsafe { host::stream_send(self.0, at) }) {
                0 => return Ok(true),
                END => return Ok(false),
                WAIT => {}
                status => return Err(failed(status as i64)),
            }
        }
    }

    /// Says that the request's body is complete.
    pub fn finish(&self) {
        unsafe { host::stream_finish(self.0) };
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { host::stream_close(self.0) };
    }
}

// ---- Bytes, time and words ----

/// The next bytes of a handle, at most 64 KiB; None is the end.
pub fn read(handle: i32, most: i32) -> Result<Option<Vec<u8>>> {
    wait(|| unsafe { host::ref_read(handle, most, PATIENCE) })
}

/// Gives bytes to a handle.
pub fn write(handle: i32, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(MAX_BLOCK) {
        done(with(piece, |at| unsafe { host::ref_write(handle, at) }))?;
    }
    Ok(())
}

/// Delivers output of the running command: 1 is stdout, 2 stderr. False: nobody
/// takes more, which is no reason to end the command.
pub fn emit(stream: i32, bytes: &[u8]) -> Result<bool> {
    for piece in bytes.chunks(MAX_BLOCK) {
        match with(piece, |at| unsafe { host::emit(stream, at) }) {
            1 => return Ok(false),
            status => done(status)?,
        }
    }
    Ok(true)
}

/// Tells talkops of a machine that now exists: {"id": …}. From here on talkops ends
/// it if the opening fails in any way.
pub fn created(opened: &Json) -> Result<()> {
    done(with(opened.to_string().as_bytes(), |at| unsafe { host::created(at) }))
}

/// Says in a few words what is waited for.
pub fn progress(text: &str) {
    with(text.as_bytes(), |at| unsafe { host::progress(at) });
}

/// Writes a line to talkops' log: 0 debug, 1 info, 2 warning, 3 error.
pub fn log(level: i32, text: &str) {
    with(text.as_bytes(), |at| unsafe { host::log(level, at) });
}

/// The HMAC with a secret setting, which the provider cannot read:
/// {"alg": "hmac-sha256", "secret": "api_key", "data": …} gives {"mac": …}.
pub fn mac(call: &Json) -> Result<Json> {
    answer(with(call.to_string().as_bytes(), |at| unsafe { host::mac(at) }))
}

/// The little that is kept for a provider between runs: {"fn": "get", "key": …},
/// "set" with a "value", "delete".
pub fn state(call: &Json) -> Result<Json> {
    answer(with(call.to_string().as_bytes(), |at| unsafe { host::state(at) }))
}

/// A file of a folder that the user granted by name: {"fn": "open", "root": …,
/// "path": …} gives {"handle": …}; also "stat", "list", "create" and "remove".
pub fn file(call: &Json) -> Result<Json> {
    answer(with(call.to_string().as_bytes(), |at| unsafe { host::fs(at) }))
}

/// Waits so many milliseconds, at most a minute.
pub fn sleep(ms: i32) -> Result<()> {
    done(unsafe { host::sleep(ms) })
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    unsafe { host::now() }
}

/// Milliseconds until the operation's deadline.
pub fn remaining() -> i64 {
    unsafe { host::remaining() }
}

/// So many random bytes, at most 4096.
pub fn random(n: i32) -> Vec<u8> {
    match unsafe { host::random(n) } {
        at if at < 0 => vec![],
        at => take(at),
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether the operation shall end. The provider is told once, by the error
/// "cancelled" of what it waits in or by this; after that requests work again, for
/// a short while, so that it can clean up.
pub fn stopped() -> bool {
    if unsafe { host::stopped() } == 1 {
        STOPPED.store(true, Relaxed);
    }
    STOPPED.load(Relaxed)
}

const END: i32 = -1;
const WAIT: i32 = -2;
const STOP: i32 = -3;
const PATIENCE: i32 = 60_000; // one wait; a stop ends it at once
const MAX_BLOCK: usize = 64 << 10;

fn failed(status: i64) -> Error {
    if status == STOP as i64 { cancelled() } else { last_error() }
}

fn done(status: i32) -> Result<()> {
    if status < 0 { Err(failed(status as i64)) } else { Ok(()) }
}

/// A block that is JSON, and tells of a failure in its member "error".
fn answer(at: i64) -> Result<Json> {
    if at < 0 {
        return Err(failed(at));
    }
    let v = Json::parse(&take(at))?;
    if *v.get("error") == Json::Null { Ok(v) } else { Err(Error::read(v.get("error"))) }
}

fn wait(f: impl Fn() -> i64) -> Result<Option<Vec<u8>>> {
    loop {
        match f() {
            at if at >= 0 => return Ok(Some(take(at))),
            at if at == END as i64 => return Ok(None),
            at if at == WAIT as i64 => {}
            at => return Err(failed(at)),
        }
    }
}

// ---- The wall ----
//
// Bytes cross it in blocks of memory that belong to neither side. Who allocates a
// block or receives one frees it: put is undone by with, take frees.

mod kernel {
    #[link(wasm_import_module = "extism:host/env")]
    extern "C" {
        pub fn alloc(n: u64) -> u64;
        pub fn free(at: u64);
        pub fn length(at: u64) -> u64;
        pub fn load_u8(at: u64) -> u32;
        pub fn load_u64(at: u64) -> u64;
        pub fn store_u8(at: u64, v: u32);
        pub fn store_u64(at: u64, v: u64);
        pub fn input_length() -> u64;
        pub fn input_load_u8(at: u64) -> u32;
        pub fn input_load_u64(at: u64) -> u64;
        pub fn output_set(at: u64, n: u64);
    }
}

mod host {
    #[link(wasm_import_module = "talkops:host/v1")]
    extern "C" {
        pub fn http(request: u64) -> i64;
        pub fn http_start(request: u64) -> i32;
        pub fn http_wait(handle: i32, ms: i32) -> i64;
        pub fn stream_next(handle: i32, ms: i32) -> i64;
        pub fn stream_send(handle: i32, piece: u64) -> i32;
        pub fn stream_finish(handle: i32) -> i32;
        pub fn stream_info(handle: i32) -> i64;
        pub fn stream_close(handle: i32) -> i32;
        pub fn emit(stream: i32, bytes: u64) -> i32;
        pub fn ref_read(handle: i32, most: i32, ms: i32) -> i64;
        pub fn ref_write(handle: i32, bytes: u64) -> i32;
        pub fn fs(call: u64) -> i64;
        pub fn mac(call: u64) -> i64;
        pub fn state(call: u64) -> i64;
        pub fn created(opened: u64) -> i32;
        pub fn progress(text: u64) -> i32;
        pub fn log(level: i32, text: u64) -> i32;
        pub fn sleep(ms: i32) -> i32;
        pub fn now() -> i64;
        pub fn remaining() -> i64;
        pub fn stopped() -> i32;
        pub fn random(n: i32) -> i64;
        pub fn last_error() -> i64;
    }
}

fn put(data: &[u8]) -> u64 {
    let at = unsafe { kernel::alloc(data.len() as u64) };
    let words = data.chunks_exact(8);
    let whole = data.len() / 8 * 8;
    for (i, &b) in words.remainder().iter().enumerate() {
        unsafe { kernel::store_u8(at + (whole + i) as u64, b as u32) };
    }
    for (i, w) in words.enumerate() {
        unsafe { kernel::store_u64(at + i as u64 * 8, u64::from_le_bytes(w.try_into().unwrap())) };
    }
    at
}

fn with<T>(data: &[u8], f: impl FnOnce(u64) -> T) -> T {
    let at = put(data);
    let result = f(at);
    unsafe { kernel::free(at) };
    result
}

fn take(at: i64) -> Vec<u8> {
    let at = at as u64;
    let data = copy(unsafe { kernel::length(at) }, |i| unsafe { kernel::load_u64(at + i) }, |i| unsafe { kernel::load_u8(at + i) });
    unsafe { kernel::free(at) };
    data
}

fn input() -> Vec<u8> {
    copy(unsafe { kernel::input_length() }, |i| unsafe { kernel::input_load_u64(i) }, |i| unsafe { kernel::input_load_u8(i) })
}

fn copy(n: u64, word: impl Fn(u64) -> u64, byte: impl Fn(u64) -> u32) -> Vec<u8> {
    let mut data = Vec::with_capacity(n as usize);
    for i in 0..n / 8 {
        data.extend_from_slice(&word(i * 8).to_le_bytes());
    }
    for i in n / 8 * 8..n {
        data.push(byte(i) as u8);
    }
    data
}
