//! A provider whose bytes go through the module: what the tutorial's leaves out.

const std = @import("std");
const talkops = @import("talkops.zig");
const Call = talkops.Call;
const Done = talkops.Done;

pub const panic = talkops.panic;

comptime {
    talkops.exports(.{
        .provider_describe = describe,
        .provider_open = open,
        .sandbox_exec = exec,
        .sandbox_read_file = readFile,
        .sandbox_write_file = writeFile,
        .sandbox_destroy = destroy,
    });
}

fn describe(_: Call) !talkops.Json {
    return talkops.parse(talkops.Json,
        \\{"abi": [1, 0], "name": "pieces", "settings": [{"key": "api_url", "url": true}, {"key": "api_key", "secret": true}], "features": {}}
    );
}

fn open(_: Call) !struct { id: []const u8, dir: []const u8 } {
    talkops.progress("halfway");
    return .{ .id = "p", .dir = "/" };
}

fn address(call: Call, path: []const u8) []const u8 {
    return talkops.format("{s}{s}", .{ call.setting("api_url"), path });
}

fn exec(call: Call) !struct { exit: i64 } {
    const word = call.cmd.args[0].bytes;
    while (std.mem.eql(u8, word, "sleep")) try talkops.sleep(60_000);
    var stdin: talkops.Reader = .{ .handle = call.cmd.stdin };
    while (try stdin.next()) |piece| try talkops.emit(1, piece);
    try talkops.emit(2, talkops.json(call.options));
    const signed = try talkops.mac(.{ .alg = "hmac-sha256", .secret = "api_key", .data = "what is signed" });
    try talkops.emit(2, talkops.format("\n{s}\n{s}\n", .{ talkops.toBase64(word), signed.object.get("mac").?.string }));
    if (talkops.state(.{ .@"fn" = "no such", .key = "k" })) |_| return error.Internal else |_| {}
    if (talkops.file(.{ .@"fn" = "open", .root = "none" })) |_| return error.Internal else |_| {}
    const sane = (try talkops.random(16)).len == 16 and talkops.now() > 1_600_000_000_000 and talkops.remaining() > 0 and !talkops.stopped();
    return .{ .exit = if (sane) 3 else 4 };
}

fn readFile(call: Call) !Done {
    const path = call.path.bytes;
    const framed = std.mem.eql(u8, path, "/events");
    var get: talkops.Request = .{ .url = address(call, path) };
    if (framed) get.frame = .{ .frame = "sse" };
    var answer = try get.start();
    defer answer.close();
    const head = try answer.head();
    if ((try answer.info()).object.get("status").?.integer != head.status) return error.Internal;
    while (try answer.next()) |piece| {
        if (head.status != 200) return talkops.fail(error.FileNotFound, "{s}", .{piece});
        try talkops.write(call.dst, if (framed) (try talkops.parse(struct { data: []const u8 }, piece)).data else piece);
    }
    return .{};
}

fn writeFile(call: Call) !Done {
    const put = try (talkops.Request{ .method = "PUT", .url = address(call, "/put"), .pieces = true }).start();
    defer put.close();
    var source: talkops.Reader = .{ .handle = call.src };
    while (try source.next()) |piece| if (!try put.send(piece)) break;
    put.finish();
    const head = try put.head();
    if (head.status != 200) return talkops.fail(error.NoSpace, "status {d}", .{head.status});
    return .{};
}

fn destroy(call: Call) !Done {
    const bytes = "\x00\xff\xfe\"\n";
    const answer = try (talkops.Request{ .method = "POST", .url = address(call, "/echo"), .body = bytes }).send();
    const echo = answer.headers.map.get("x-echo") orelse return talkops.fail(error.Internal, "no header", .{});
    if (!std.mem.eql(u8, answer.body, bytes) or !std.mem.eql(u8, echo[0], "yes")) return talkops.fail(error.Internal, "{s}", .{answer.body});
    const parts = [_]talkops.Part{ .{ .text = "a" }, .{ .b64 = "AP8=" } };
    const second = try (talkops.Request{ .method = "POST", .url = address(call, "/echo"), .parts = &parts }).send();
    if (!std.mem.eql(u8, second.body, "a\x00\xff")) return talkops.fail(error.Internal, "{s}", .{talkops.toBase64(second.body)});
    return .{};
}
