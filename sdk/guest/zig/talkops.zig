//! The talkops kit for providers written in Zig.
//!
//!     const talkops = @import("talkops.zig");
//!     pub const panic = talkops.panic;
//!
//!     comptime {
//!         talkops.exports(.{ .sandbox_destroy = destroy, … });
//!     }
//!
//!     fn destroy(call: talkops.Call) !talkops.Done { … }
//!
//! An operation is a function from its request to its reply, which is any value that
//! can be written as JSON. Its errors are the kinds that talkops knows, such as
//! error.NotFound, Unauthenticated, Unavailable, FileNotFound, InvalidArgument or
//! Internal; fail adds a message.
//!
//! Every operation runs in a fresh instance: nothing in memory outlives it, so
//! memory is an arena that is never freed. Files, clocks and sockets of the standard
//! library do not exist here; what a provider can do to the world is the functions
//! of this file.

const std = @import("std");

var arena = std.heap.ArenaAllocator.init(std.heap.wasm_allocator);

/// Memory that lasts as long as the operation.
pub const memory = arena.allocator();

// ---- Messages ----

pub const Map = std.json.ArrayHashMap([]const u8);
pub const Json = std.json.Value;
pub const Done = struct {};

/// Bytes that may be no UTF-8, as arguments and file names. In JSON a string, or
/// {"b64": "…"} where that cannot be.
pub const Text = struct {
    bytes: []const u8 = "",

    pub fn jsonParse(allocator: std.mem.Allocator, source: anytype, options: std.json.ParseOptions) !Text {
        switch (try std.json.innerParse(Json, allocator, source, options)) {
            .string => |s| return .{ .bytes = s },
            .object => |o| {
                const coded = o.get("b64") orelse return error.UnexpectedToken;
                if (coded != .string) return error.UnexpectedToken;
                return .{ .bytes = fromBase64(coded.string) catch return error.UnexpectedToken };
            },
            else => return error.UnexpectedToken,
        }
    }

    pub fn jsonStringify(self: Text, out: anytype) !void {
        if (std.unicode.utf8ValidateSlice(self.bytes)) return out.write(self.bytes);
        try out.write(.{ .b64 = toBase64(self.bytes) });
    }
};

pub const Texts = std.json.ArrayHashMap(Text);

/// A request: of its members those that its operation has.
pub const Call = struct {
    call: []const u8 = "", // unique
    deadline_ms: i64 = 0,
    grace_ms: i64 = 0, // what is left for cleaning up after a stop
    settings: Map = .{}, // the value of a secret one is a placeholder
    options: Json = .null, // the user's own table
    sandbox: struct { id: []const u8 = "", dir: Text = .{}, token: []const u8 = "", env: ?Texts = null } = .{},

    mode: []const u8 = "", // of an opening "start" or "attach"; of a new file, octal
    spec: Spec = .{},
    cmd: Cmd = .{},
    path: Text = .{},
    src: i32 = 0, // handles
    dst: i32 = 0,
    name: []const u8 = "", // of a snapshot, or a command's id
    labels: ?Map = null,
    cursor: []const u8 = "",
    until_ms: i64 = 0,

    /// A setting, or "".
    pub fn setting(self: Call, key: []const u8) []const u8 {
        return self.settings.map.get(key) orelse "";
    }
};

pub const Spec = struct {
    id: []const u8 = "",
    token: []const u8 = "",
    name: []const u8 = "",
    snapshot: []const u8 = "",
    image: []const u8 = "",
    dir: ?Text = null,
    env: ?Texts = null,
    labels: ?Map = null,
    lifetime_ms: i64 = 0,
    idle_ms: i64 = 0,
};

pub const Cmd = struct {
    id: []const u8 = "",
    args: []const Text = &.{},
    dir: ?Text = null,
    env: ?Texts = null,
    stdin: i32 = 0, // a handle; 0 is none
};

/// Reads JSON as a T; members that T lacks are passed over.
pub fn parse(comptime T: type, text: []const u8) !T {
    return std.json.parseFromSliceLeaky(T, memory, text, .{ .ignore_unknown_fields = true, .allocate = .alloc_always }) catch
        fail(error.Internal, "not the JSON expected", .{});
}

/// Writes a value as JSON, without members that are null.
pub fn json(value: anytype) []const u8 {
    return std.json.Stringify.valueAlloc(memory, value, .{ .emit_null_optional_fields = false }) catch unreachable;
}

pub fn format(comptime text: []const u8, args: anytype) []const u8 {
    return std.fmt.allocPrint(memory, text, args) catch unreachable;
}

// ---- Errors and exports ----

/// What is known of the last error beside its kind.
pub var failure: struct {
    message: []const u8 = "",
    sent: bool = false, // part of a failed request may have reached the vendor
} = .{};

/// An error with a message: return fail(error.NotFound, "there is no {s}", .{id});
pub fn fail(err: anyerror, comptime message: []const u8, args: anytype) anyerror {
    failure = .{ .message = format(message, args) };
    return err;
}

/// The kind that an error is on the wire: error.NotFound is "not_found".
fn kindOf(err: anyerror) []const u8 {
    var out: std.ArrayList(u8) = .empty;
    for (@errorName(err), 0..) |c, i| {
        if (std.ascii.isUpper(c) and i > 0) out.append(memory, '_') catch unreachable;
        out.append(memory, std.ascii.toLower(c)) catch unreachable;
    }
    return out.items;
}

const known = .{
    error.NotFound,         error.Unauthenticated, error.Quota,           error.RateLimited,   error.Unavailable,
    error.Gone,             error.Timeout,         error.Cancelled,       error.Unsupported,   error.FileNotFound,
    error.PermissionDenied, error.IsDirectory,     error.NotADirectory,   error.NotAFile,      error.InvalidPath,
    error.InvalidArgument,  error.TooLarge,        error.NoSpace,
};

const WireError = struct { kind: []const u8 = "internal", message: []const u8 = "", sent: bool = false };

fn explained(e: WireError) anyerror {
    failure = .{ .message = e.message, .sent = e.sent };
    inline for (known) |err| {
        if (std.mem.eql(u8, e.kind, kindOf(err))) {
            if (err == error.Cancelled) told = true;
            return err;
        }
    }
    return error.Internal;
}

/// Makes the module's exports of the functions of its operations.
pub fn exports(comptime operations: anytype) void {
    @export(&marker, .{ .name = "talkops_provider_abi_1" });
    for (std.meta.fieldNames(@TypeOf(operations))) |name| {
        const operation = @field(operations, name);
        @export(&struct {
            fn run() callconv(.c) i32 {
                return serve(operation);
            }
        }.run, .{ .name = name });
    }
}

fn marker() callconv(.c) i32 {
    return 0;
}

fn serve(comptime operation: anytype) i32 {
    const answer = if (operate(operation)) |ok|
        json(.{ .ok = ok })
    else |err|
        json(.{ .@"error" = WireError{ .kind = kindOf(err), .message = failure.message } });
    kernel.output_set(put(answer), answer.len);
    return 0;
}

fn operate(comptime operation: anytype) anyerror!@typeInfo(@typeInfo(@TypeOf(operation)).@"fn".return_type.?).error_union.payload {
    return operation(try parse(Call, input()));
}

pub const panic = std.debug.FullPanic(struct {
    fn f(message: []const u8, _: ?usize) noreturn {
        log(3, message);
        @trap();
    }
}.f);

// ---- Requests ----

/// One HTTP request.
pub const Request = struct {
    method: []const u8 = "GET",
    url: []const u8,
    /// The value of a secret setting is a placeholder: talkops puts the secret in
    /// its place where it stands in a header.
    authorization: []const u8 = "",
    headers: []const [2][]const u8 = &.{},
    json: ?[]const u8 = null, // the body: JSON
    body: ?[]const u8 = null, // or any bytes
    from: i32 = 0, // or a handle, whose bytes stay outside
    pieces: bool = false, // or what Stream.send gives, until Stream.finish
    to: i32 = 0, // a handle that takes the body of a 2xx answer, whose bytes stay outside
    again: bool = false, // it may be sent again after a failure
    timeout_ms: i64 = 0, // 0: the operation's own
    frame: ?Frame = null, // of an answer that is read as it comes
    parts: ?[]const Part = null, // of the body, one after the other
    multipart: ?[]const Part = null, // or as multipart/form-data
    gzip: bool = false, // the host compresses the body
    sign: ?Sign = null, // the host signs the request

    fn wire(self: Request, stream: bool) []const u8 {
        var headers: std.json.ArrayHashMap([]const []const u8) = .{};
        for (self.headers) |h| header(&headers, h[0], h[1]);
        if (self.authorization.len > 0) header(&headers, "authorization", self.authorization);
        if (self.json != null) header(&headers, "content-type", "application/json");
        return json(.{
            .method = self.method,
            .url = self.url,
            .headers = headers,
            .body = self.json,
            .body_b64 = if (self.body) |b| @as(?[]const u8, toBase64(b)) else null,
            .body_ref = self.from,
            .body_sent = self.pieces,
            .idempotent = self.again,
            .timeout_ms = self.timeout_ms,
            .parts = self.parts,
            .multipart = self.multipart,
            .encode = if (self.gzip) @as(?[]const u8, "gzip") else null,
            .sign = self.sign,
            .resp = .{
                .mode = @as([]const u8, if (stream) "stream" else if (self.to != 0) "ref" else "inline"),
                .ref = self.to,
                .frame = if (self.frame) |f| @as(?[]const u8, f.frame) else null,
                .route = if (self.frame) |f| f.route else null,
            },
        });
    }

    fn header(headers: anytype, name: []const u8, value: []const u8) void {
        const values = memory.dupe([]const u8, &.{value}) catch unreachable;
        headers.map.put(memory, name, values) catch unreachable;
    }

    /// Sends the request and waits for the whole answer.
    pub fn send(self: Request) !Response {
        const at = with(self.wire(false), host.http);
        if (at < 0) return failed(at);
        return Response.read(take(at));
    }

    /// Begins the request, whose answer is read while it comes. Stream.close lets go
    /// of it.
    pub fn start(self: Request) !Stream {
        const handle = with(self.wire(true), host.http_start);
        if (handle < 0) return failed(handle);
        return .{ .handle = handle };
    }
};

/// A piece of a body: text, bytes as base64 or a handle. A name is of multipart.
pub const Part = struct {
    text: ?[]const u8 = null,
    b64: ?[]const u8 = null,
    ref: ?i32 = null,
    as: ?[]const u8 = null, // of a handle: "raw", "base64", or "json" for the inside of a JSON string
    name: ?[]const u8 = null,
    filename: ?[]const u8 = null,
    headers: ?Map = null,
};

/// Names the settings with which the host signs, so that no key is held here.
pub const Sign = struct {
    kind: []const u8 = "sigv4",
    service: []const u8,
    region: []const u8,
    key_id: []const u8,
    key: []const u8,
    session_token: ?[]const u8 = null,
};

/// Records are lines or server-sent events ("lines", "sse").
pub const Frame = struct { frame: []const u8, route: ?Route = null };

/// Of the records JSON objects whose member `field` is `stdout` or `stderr` are
/// output of the running command: talkops delivers their member `data` itself, as it
/// is ("text") or decoded ("base64"). All others reach the provider.
pub const Route = struct { field: []const u8, stdout: []const u8, stderr: []const u8, data: []const u8, as: []const u8 = "text" };

/// An answer. A status of any kind is one.
pub const Response = struct {
    status: i32,
    headers: std.json.ArrayHashMap([]const []const u8),
    body: []const u8,

    fn read(text: []const u8) !Response {
        const Wire = struct {
            status: i32 = 0,
            headers: std.json.ArrayHashMap([]const []const u8) = .{},
            body: []const u8 = "",
            body_b64: ?[]const u8 = null,
            @"error": ?WireError = null,
        };
        const w = try parse(Wire, text);
        if (w.@"error") |e| return explained(e);
        return .{ .status = w.status, .headers = w.headers, .body = if (w.body_b64) |b| try fromBase64(b) else w.body };
    }
};

/// A request on its way.
pub const Stream = struct {
    handle: i32,
    buffer: []u8 = &.{},

    /// Waits for the status and headers.
    pub fn head(self: Stream) !Response {
        const at = try wait(host.http_wait, .{self.handle}) orelse return error.Unavailable;
        return Response.read(take(at));
    }

    /// Waits for the next record, which is valid until the next call; null is the end.
    pub fn next(self: *Stream) !?[]const u8 {
        const at = try wait(host.stream_next, .{self.handle}) orelse return null;
        return try takeInto(at, &self.buffer);
    }

    /// How it stands: what was delivered, trailers, the code of a WebSocket's close.
    pub fn info(self: Stream) !Json {
        return answered(host.stream_info(self.handle));
    }

    /// Sends up to 64 KiB of the request's body. False: no more is wanted.
    pub fn send(self: Stream, piece: []const u8) !bool {
        const at = put(piece);
        defer kernel.free(at);
        while (true) switch (host.stream_send(self.handle, at)) {
            0 => return true,
            END => return false,
            WAIT => {},
            else => |status| return failed(status),
        };
    }

    /// Says that the request's body is complete.
    pub fn finish(self: Stream) void {
        _ = host.stream_finish(self.handle);
    }

    pub fn close(self: Stream) void {
        _ = host.stream_close(self.handle);
    }
};

// ---- Bytes, time and words ----

/// Reads a handle in pieces of at most 64 KiB, each valid until the next.
pub const Reader = struct {
    handle: i32,
    buffer: []u8 = &.{},

    pub fn next(self: *Reader) !?[]const u8 {
        const at = try wait(host.ref_read, .{ self.handle, MAX_BLOCK }) orelse return null;
        return try takeInto(at, &self.buffer);
    }
};

/// Gives bytes to a handle.
pub fn write(handle: i32, bytes: []const u8) !void {
    var left = bytes;
    while (left.len > 0) : (left = left[@min(left.len, MAX_BLOCK)..]) {
        const at = put(left[0..@min(left.len, MAX_BLOCK)]);
        defer kernel.free(at);
        try done(host.ref_write(handle, at));
    }
}

/// Delivers output of the running command: 1 is stdout, 2 stderr. That nobody takes
/// more is no error, and no reason to end the command.
pub fn emit(stream: i32, bytes: []const u8) !void {
    var left = bytes;
    while (left.len > 0) : (left = left[@min(left.len, MAX_BLOCK)..]) {
        const at = put(left[0..@min(left.len, MAX_BLOCK)]);
        defer kernel.free(at);
        try done(host.emit(stream, at));
    }
}

/// Tells talkops of a machine that now exists: .{ .id = … }. From here on talkops
/// ends it if the opening fails in any way.
pub fn created(opened: anytype) !void {
    try done(with(json(opened), host.created));
}

/// Says in a few words what is waited for.
pub fn progress(text: []const u8) void {
    _ = with(text, host.progress);
}

/// Writes a line to talkops' log: 0 debug, 1 info, 2 warning, 3 error.
pub fn log(level: i32, text: []const u8) void {
    const at = put(text);
    defer kernel.free(at);
    _ = host.log(level, at);
}

/// A block that is JSON, and tells of a failure in its member "error".
fn answered(at: i64) !Json {
    if (at < 0) return failed(at);
    const text = take(at);
    if ((try parse(struct { @"error": ?WireError = null }, text)).@"error") |e| return explained(e);
    return parse(Json, text);
}

/// The HMAC with a secret setting, which the provider cannot read:
/// .{ .alg = "hmac-sha256", .secret = "api_key", .data = … } gives {"mac": …}.
pub fn mac(call: anytype) !Json {
    return answered(with(json(call), host.mac));
}

/// The little that is kept for a provider between runs: .{ .@"fn" = "get", .key = … },
/// "set" with a value, "delete".
pub fn state(call: anytype) !Json {
    return answered(with(json(call), host.state));
}

/// A file of a folder that the user granted by name: .{ .@"fn" = "open", .root = …,
/// .path = … } gives {"handle": …}; also "stat", "list", "create" and "remove".
pub fn file(call: anytype) !Json {
    return answered(with(json(call), host.fs));
}

/// Waits so many milliseconds, at most a minute.
pub fn sleep(ms: i32) !void {
    try done(host.sleep(ms));
}

/// Milliseconds since 1970.
pub fn now() i64 {
    return host.now();
}

/// Milliseconds until the operation's deadline.
pub fn remaining() i64 {
    return host.remaining();
}

/// So many random bytes, at most 4096.
pub fn random(n: i32) ![]const u8 {
    const at = host.random(n);
    return if (at < 0) failed(at) else take(at);
}

var told = false;

/// Whether the operation shall end. The provider is told once, by error.Cancelled of
/// what it waits in or by this; after that requests work again, for a short while, so
/// that it can clean up.
pub fn stopped() bool {
    if (host.stopped() == 1) told = true;
    return told;
}

const END = -1;
const WAIT = -2;
const STOP = -3;
const PATIENCE = 60_000; // one wait; a stop ends it at once
const MAX_BLOCK = 64 << 10;

/// What the status of a host function means.
fn failed(status: i64) anyerror {
    if (status == STOP) {
        told = true;
        return fail(error.Cancelled, "the operation shall end", .{});
    }
    const at = host.last_error();
    if (at < 0) return error.Internal;
    return explained(parse(WireError, take(at)) catch |err| return err);
}

fn done(status: i32) !void {
    if (status < 0) return failed(status);
}

fn wait(comptime f: anytype, args: anytype) !?i64 {
    while (true) {
        const at = @call(.auto, f, args ++ .{PATIENCE});
        if (at >= 0) return at;
        if (at == END) return null;
        if (at != WAIT) return failed(at);
    }
}

// ---- Words of other formats ----

/// Bytes as part of an address: of a path or a query.
pub fn escape(bytes: []const u8) []const u8 {
    var out: std.ArrayList(u8) = .empty;
    for (bytes) |c| {
        if (std.ascii.isAlphanumeric(c) or std.mem.indexOfScalar(u8, "-_.~", c) != null) {
            out.append(memory, c) catch unreachable;
        } else {
            const digits = "0123456789ABCDEF";
            out.appendSlice(memory, &.{ '%', digits[c >> 4], digits[c & 15] }) catch unreachable;
        }
    }
    return out.items;
}

/// "2026-01-31T12:00:00Z" in milliseconds since 1970; 0 if it is none.
pub fn moment(text: []const u8) i64 {
    var n: [6]i64 = undefined;
    for ([_][2]usize{ .{ 0, 4 }, .{ 5, 7 }, .{ 8, 10 }, .{ 11, 13 }, .{ 14, 16 }, .{ 17, 19 } }, &n) |part, *to| {
        if (part[1] > text.len) return 0;
        to.* = std.fmt.parseInt(i64, text[part[0]..part[1]], 10) catch return 0;
    }
    // A year that begins in March has its odd day at its end.
    const y = if (n[1] > 2) n[0] else n[0] - 1;
    const m = if (n[1] > 2) n[1] - 3 else n[1] + 9;
    const days = 365 * y + @divFloor(y, 4) - @divFloor(y, 100) + @divFloor(y, 400) + @divFloor(153 * m + 2, 5) + n[2] - 719469;
    return (((days * 24 + n[3]) * 60 + n[4]) * 60 + n[5]) * 1000;
}

pub fn toBase64(bytes: []const u8) []const u8 {
    const coder = std.base64.standard.Encoder;
    return coder.encode(memory.alloc(u8, coder.calcSize(bytes.len)) catch unreachable, bytes);
}

pub fn fromBase64(text: []const u8) ![]const u8 {
    const coder = std.base64.standard.Decoder;
    const out = memory.alloc(u8, coder.calcSizeForSlice(text) catch return error.Internal) catch unreachable;
    coder.decode(out, text) catch return error.Internal;
    return out;
}

// ---- The wall ----
//
// Bytes cross it in blocks of memory that belong to neither side. Who allocates a
// block or receives one frees it: put is undone by with or free, take frees.

const kernel = struct {
    extern "extism:host/env" fn alloc(n: u64) u64;
    extern "extism:host/env" fn free(at: u64) void;
    extern "extism:host/env" fn length(at: u64) u64;
    extern "extism:host/env" fn load_u8(at: u64) u32;
    extern "extism:host/env" fn load_u64(at: u64) u64;
    extern "extism:host/env" fn store_u8(at: u64, v: u32) void;
    extern "extism:host/env" fn store_u64(at: u64, v: u64) void;
    extern "extism:host/env" fn input_length() u64;
    extern "extism:host/env" fn input_load_u8(at: u64) u32;
    extern "extism:host/env" fn input_load_u64(at: u64) u64;
    extern "extism:host/env" fn output_set(at: u64, n: u64) void;
};

const host = struct {
    extern "talkops:host/v1" fn http(request: u64) i64;
    extern "talkops:host/v1" fn http_start(request: u64) i32;
    extern "talkops:host/v1" fn http_wait(handle: i32, ms: i32) i64;
    extern "talkops:host/v1" fn stream_next(handle: i32, ms: i32) i64;
    extern "talkops:host/v1" fn stream_send(handle: i32, piece: u64) i32;
    extern "talkops:host/v1" fn stream_finish(handle: i32) i32;
    extern "talkops:host/v1" fn stream_info(handle: i32) i64;
    extern "talkops:host/v1" fn stream_close(handle: i32) i32;
    extern "talkops:host/v1" fn emit(stream: i32, bytes: u64) i32;
    extern "talkops:host/v1" fn ref_read(handle: i32, most: i32, ms: i32) i64;
    extern "talkops:host/v1" fn ref_write(handle: i32, bytes: u64) i32;
    extern "talkops:host/v1" fn fs(call: u64) i64;
    extern "talkops:host/v1" fn mac(call: u64) i64;
    extern "talkops:host/v1" fn state(call: u64) i64;
    extern "talkops:host/v1" fn created(opened: u64) i32;
    extern "talkops:host/v1" fn progress(text: u64) i32;
    extern "talkops:host/v1" fn log(level: i32, text: u64) i32;
    extern "talkops:host/v1" fn sleep(ms: i32) i32;
    extern "talkops:host/v1" fn now() i64;
    extern "talkops:host/v1" fn remaining() i64;
    extern "talkops:host/v1" fn stopped() i32;
    extern "talkops:host/v1" fn random(n: i32) i64;
    extern "talkops:host/v1" fn last_error() i64;
};

fn put(data: []const u8) u64 {
    const at = kernel.alloc(data.len);
    var i: usize = 0;
    while (i + 8 <= data.len) : (i += 8) kernel.store_u64(at + i, std.mem.readInt(u64, data[i..][0..8], .little));
    while (i < data.len) : (i += 1) kernel.store_u8(at + i, data[i]);
    return at;
}

fn with(data: []const u8, comptime f: anytype) @typeInfo(@TypeOf(f)).@"fn".return_type.? {
    const at = put(data);
    defer kernel.free(at);
    return f(at);
}

fn take(at: i64) []const u8 {
    const n: usize = @intCast(kernel.length(@bitCast(at)));
    var buffer = memory.alloc(u8, n) catch unreachable;
    return takeInto(at, &buffer) catch unreachable;
}

/// Copies a block to a buffer, which is replaced if it is too small, and frees it.
fn takeInto(block: i64, buffer: *[]u8) ![]const u8 {
    const at: u64 = @bitCast(block);
    const n: usize = @intCast(kernel.length(at));
    if (n > buffer.len) buffer.* = try memory.alloc(u8, @max(n, MAX_BLOCK));
    const to = buffer.*[0..n];
    var i: usize = 0;
    while (i + 8 <= n) : (i += 8) std.mem.writeInt(u64, to[i..][0..8], kernel.load_u64(at + i), .little);
    while (i < n) : (i += 1) to[i] = @truncate(kernel.load_u8(at + i));
    kernel.free(at);
    return to;
}

fn input() []const u8 {
    const n: usize = @intCast(kernel.input_length());
    const to = memory.alloc(u8, n) catch unreachable;
    var i: usize = 0;
    while (i + 8 <= n) : (i += 8) std.mem.writeInt(u64, to[i..][0..8], kernel.input_load_u64(i), .little);
    while (i < n) : (i += 1) to[i] = @truncate(kernel.input_load_u8(i));
    return to;
}
