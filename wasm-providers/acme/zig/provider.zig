//! A provider for Acme, the practice service of sdk/practice: complete and small.

const std = @import("std");
const talkops = @import("talkops.zig");
const Call = talkops.Call;
const Done = talkops.Done;
const Request = talkops.Request;
const fail = talkops.fail;
const format = talkops.format;
const escape = talkops.escape;

pub const panic = talkops.panic;

comptime {
    talkops.exports(.{
        .provider_describe = describe,
        .provider_open = open,
        .provider_list = list,
        .sandbox_exec = exec,
        .sandbox_kill = kill,
        .sandbox_read_file = readFile,
        .sandbox_write_file = writeFile,
        .sandbox_snapshot = snapshot,
        .sandbox_destroy = destroy,
    });
}

const about =
    \\{
    \\  "abi": [1, 0],
    \\  "name": "acme",
    \\  "title": "Acme Boxes",
    \\  "sign_in": "export ACME_API_KEY=\"your-key\"",
    \\  "settings": [
    \\    {"key": "api_key", "env": ["ACME_API_KEY"], "help": "API key", "secret": true},
    \\    {"key": "api_url", "env": ["ACME_API_URL"], "help": "address of the API", "url": true, "default": "https://api.acme.example"}
    \\  ],
    \\  "logins": [["api_key"]],
    \\  "features": {"attach": true, "snapshot": true, "lifetime": true, "labels": true},
    \\  "hosts": ["api.acme.example"]
    \\}
;

fn describe(_: Call) !talkops.Json {
    return talkops.parse(talkops.Json, about);
}

// ---- The service ----

/// A request to the service, signed in.
fn request(call: Call, method: []const u8, path: []const u8) !Request {
    const key = call.setting("api_key"); // a placeholder, or "" when there is no key
    if (key.len == 0) return fail(error.Unauthenticated, "not signed in to Acme: ACME_API_KEY is not set", .{});
    return .{
        .method = method,
        .url = format("{s}{s}", .{ call.setting("api_url"), path }),
        .authorization = format("Bearer {s}", .{key}),
        .again = method[0] == 'G' or method[0] == 'D',
    };
}

/// The body of an answer, if it is one of success.
fn accepted(answer: talkops.Response) ![]const u8 {
    if (@divTrunc(answer.status, 100) == 2) return answer.body;
    const Refusal = struct { @"error": struct { code: []const u8 = "", message: []const u8 = "" } = .{} };
    const e = (talkops.parse(Refusal, answer.body) catch Refusal{}).@"error";
    const kinds = .{
        .{ "no_such_box", error.NotFound },         .{ "no_such_snapshot", error.NotFound },
        .{ "bad_key", error.Unauthenticated },      .{ "no_such_file", error.FileNotFound },
        .{ "bad_path", error.InvalidPath },         .{ "bad_request", error.InvalidArgument },
        .{ "is_directory", error.IsDirectory },     .{ "not_a_directory", error.NotADirectory },
        .{ "not_a_file", error.NotAFile },          .{ "permission_denied", error.PermissionDenied },
    };
    var kind: anyerror = if (answer.status == 429) error.RateLimited else if (answer.status >= 500) error.Unavailable else error.Internal;
    inline for (kinds) |k| {
        if (std.mem.eql(u8, e.code, k[0])) kind = k[1];
    }
    return fail(kind, "Acme: {s} ({d})", .{ e.message, answer.status });
}

fn send(call: Call, method: []const u8, path: []const u8, body: ?[]const u8) ![]const u8 {
    var r = try request(call, method, path);
    r.json = body;
    return accepted(try r.send());
}

/// The address of the request's box, and what follows it.
fn box(call: Call, comptime rest: []const u8, args: anytype) []const u8 {
    return format("/v1/boxes/{s}" ++ rest, .{escape(call.sandbox.id)} ++ args);
}

/// Says of a missing box that it was there before.
fn gone(call: Call, err: anyerror) anyerror {
    if (err != error.NotFound) return err;
    return fail(error.Gone, "the box {s} no longer exists", .{call.sandbox.id});
}

// ---- A box's life ----

/// A box as the service tells of it.
const Machine = struct {
    id: []const u8,
    name: []const u8 = "",
    dir: talkops.Text = .{},
    state: []const u8 = "",
    labels: ?talkops.Map = null,
    created_at: []const u8 = "",
    expires_at: []const u8 = "",
};

fn show(call: Call, id: []const u8) !Machine {
    return talkops.parse(Machine, try send(call, "GET", format("/v1/boxes/{s}", .{escape(id)}), null));
}

const Opened = struct { id: []const u8, dir: talkops.Text, expires_at_ms: i64 };

fn open(call: Call) !Opened {
    const spec = call.spec;
    var machine: Machine = undefined;
    if (spec.id.len > 0) {
        machine = try show(call, spec.id);
    } else {
        const wanted = talkops.json(.{
            .name = spec.name,
            .env = spec.env,
            .labels = spec.labels,
            .snapshot = spec.snapshot,
            .lifetime_s = @divTrunc(spec.lifetime_ms, 1000),
        });
        machine = try talkops.parse(Machine, try send(call, "POST", "/v1/boxes", wanted));
        // From here on the host ends the box if anything goes wrong.
        try talkops.created(.{ .id = machine.id });
    }
    while (std.mem.eql(u8, machine.state, "starting")) {
        try talkops.sleep(100);
        machine = try show(call, machine.id);
    }
    if (talkops.stopped()) return fail(error.Cancelled, "the opening was cancelled", .{});
    if (spec.dir) |dir| {
        // The wanted directory, if it can be made; else the box's own.
        var run = call;
        run.sandbox = .{ .id = machine.id, .dir = machine.dir };
        run.cmd = .{ .id = format("dir-{s}", .{call.call}), .args = &.{
            .{ .bytes = "/bin/sh" }, .{ .bytes = "-c" }, .{ .bytes = "mkdir -p -- \"$1\" && cd -- \"$1\" && [ -w . ]" }, .{ .bytes = "sh" }, dir,
        } };
        if ((try exec(run)).exit == 0) machine.dir = dir;
    }
    return .{ .id = machine.id, .dir = machine.dir, .expires_at_ms = talkops.moment(machine.expires_at) };
}

fn destroy(call: Call) !Done {
    _ = send(call, "DELETE", box(call, "", .{}), null) catch |err| if (err != error.NotFound) return err; // else it is gone
    return .{};
}

const Listed = struct { id: []const u8, name: []const u8, state: []const u8, labels: ?talkops.Map, created_at_ms: i64, expires_at_ms: i64 };

fn list(call: Call) !struct { sandboxes: []Listed } {
    var path: []const u8 = "/v1/boxes?";
    const labels = call.labels orelse talkops.Map{};
    for (labels.map.keys(), labels.map.values()) |k, v| {
        path = format("{s}label={s}&", .{ path, escape(format("{s}={s}", .{ k, v })) });
    }
    const answer = try talkops.parse(struct { boxes: []Machine }, try send(call, "GET", path, null));
    const found = try talkops.memory.alloc(Listed, answer.boxes.len);
    for (answer.boxes, found) |m, *to| to.* = .{
        .id = m.id,
        .name = m.name,
        .state = m.state,
        .labels = m.labels,
        .created_at_ms = talkops.moment(m.created_at),
        .expires_at_ms = talkops.moment(m.expires_at),
    };
    return .{ .sandboxes = found };
}

fn snapshot(call: Call) !Done {
    _ = send(call, "POST", box(call, "/snapshots", .{}), talkops.json(.{ .name = call.name })) catch |err| return gone(call, err);
    return .{};
}

// ---- Commands ----

const Exited = struct { exit: i64 };

fn exec(call: Call) !Exited {
    const command = box(call, "/commands/{s}", .{escape(call.cmd.id)});
    return follow(call, command) catch |err| {
        // Whatever went wrong, the command is not left running.
        const why = talkops.failure;
        var end = try request(call, "DELETE", command);
        end.timeout_ms = 5000;
        _ = end.send() catch {};
        talkops.failure = why;
        return gone(call, err);
    };
}

fn follow(call: Call, command: []const u8) !Exited {
    const cmd = call.cmd;
    _ = try send(call, "PUT", command, talkops.json(.{
        .args = cmd.args,
        .dir = cmd.dir orelse call.sandbox.dir,
        .env = cmd.env,
        .stdin = cmd.stdin != 0,
    }));
    // The input goes on while output comes, and ends with the operation.
    if (cmd.stdin != 0) {
        var put = try request(call, "PUT", format("{s}/stdin", .{command}));
        put.from = cmd.stdin;
        _ = try put.start();
    }
    // The host delivers the output; the other lines come here.
    var get = try request(call, "GET", format("{s}/output", .{command}));
    get.frame = .{ .frame = "lines", .route = .{ .field = "stream", .stdout = "stdout", .stderr = "stderr", .data = "data", .as = "base64" } };
    var output = try get.start();
    defer output.close();
    _ = try accepted(try output.head());
    while (try output.next()) |line| {
        const last = try talkops.parse(struct { exit: ?i64 = null }, line);
        if (last.exit) |exit| return .{ .exit = exit };
    }
    return fail(error.Unavailable, "Acme's answer ended before the command did", .{});
}

fn kill(call: Call) !Done {
    _ = try send(call, "DELETE", box(call, "/commands/{s}", .{escape(call.name)}), null);
    return .{};
}

// ---- Files ----

fn readFile(call: Call) !Done {
    var get = try request(call, "GET", box(call, "/files?path={s}", .{escape(call.path.bytes)}));
    get.to = call.dst;
    _ = accepted(try get.send()) catch |err| return gone(call, err);
    return .{};
}

fn writeFile(call: Call) !Done {
    var put = try request(call, "PUT", box(call, "/files?path={s}&mode={s}", .{ escape(call.path.bytes), call.mode }));
    put.from = call.src;
    _ = accepted(try put.send()) catch |err| return gone(call, err);
    return .{};
}
