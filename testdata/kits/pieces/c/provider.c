// A provider whose bytes go through the module: what the tutorial's leaves out.

#include "talkops.h"

static failure describe(text call, text *reply) {
	*reply = JSON({"abi": [1, 0], "name": "pieces", "settings": [{"key": "api_url", "url": true}, {"key": "api_key", "secret": true}], "features": {}});
	return fine;
}

static failure start(text call, text *reply) {
	progress(TEXT("halfway"));
	*reply = JSON({"id": "p", "dir": "/"});
	return fine;
}

static text address(text call, text path) { return format("%t%t", json_text(json_get(json_get(call, "settings"), "api_url")), path); }

static failure exec(text call, text *reply) {
	text cmd = json_get(call, "cmd"), rest = json_get(cmd, "args"), key, value;
	json_each(&rest, &key, &value);
	text word = json_text(value);
	while (text_is(word, "sleep"))
		TRY(sleep_ms(60000));
	static char buffer[50000];
	for (int n = 1; n;) {
		TRY(handle_read(json_int(json_get(cmd, "stdin")), buffer, sizeof buffer, &n));
		if (n)
			TRY(emit(1, (text){buffer, n}));
	}
	TRY(emit(2, json_get(call, "options")));
	text signed_, none;
	TRY(mac(JSON({"alg": "hmac-sha256", "secret": "api_key", "data": "what is signed"}), &signed_));
	TRY(emit(2, format("\n%t\n%t\n", to_base64(word), json_text(json_get(signed_, "mac")))));
	if (!state(JSON({"fn": "no such", "key": "k"}), &none).kind || !file(JSON({"fn": "open", "root": "none"}), &none).kind)
		return fail("internal", TEXT("what cannot be was not refused"));
	bool sane = random_bytes(16).len == 16 && now_ms() > 1600000000000 && remaining_ms() > 0 && !stopped();
	*reply = format("{\"exit\":%d}", sane ? 3 : 4);
	return fine;
}

static failure read_file(text call, text *reply) {
	static const framing events = {.frame = "sse"};
	text path = json_text(json_get(call, "path")), piece;
	bool framed = text_is(path, "/events");
	request get = {.method = "GET", .url = address(call, path), .frame = framed ? &events : 0};
	stream answer;
	response head;
	TRY(http_start(&get, &answer));
	TRY(stream_head(&answer, &head));
	TRY(stream_next(&answer, &piece));
	if (head.status != 200)
		return fail("file_not_found", piece);
	text info;
	TRY(stream_info(&answer, &info));
	if (json_int(json_get(info, "status")) != 200)
		return fail("internal", info);
	while (piece.at) {
		uintptr_t mark = memory_mark();
		TRY(handle_write(json_int(json_get(call, "dst")), framed ? json_text(json_get(piece, "data")) : piece));
		memory_release(mark);
		TRY(stream_next(&answer, &piece));
	}
	stream_close(&answer);
	return fine;
}

static failure write_file(text call, text *reply) {
	request r = {.method = "PUT", .url = address(call, TEXT("/put")), .pieces = true};
	stream put;
	response head;
	static char buffer[60000];
	TRY(http_start(&r, &put));
	bool wanted = true;
	for (int n = 1; n && wanted;) {
		TRY(handle_read(json_int(json_get(call, "src")), buffer, sizeof buffer, &n));
		if (n)
			TRY(stream_send(&put, (text){buffer, n}, &wanted));
	}
	stream_finish(&put);
	TRY(stream_head(&put, &head));
	return head.status == 200 ? fine : fail("no_space", format("status %d", head.status));
}

static failure destroy(text call, text *reply) {
	static const char bytes[] = {0, 255, 254, '"', 10};
	request r = {.method = "POST", .url = address(call, TEXT("/echo")), .bytes = {bytes, sizeof bytes}};
	response answer;
	TRY(http(&r, &answer));
	text rest = json_get(answer.headers, "x-echo"), key, value;
	if (answer.body.len != sizeof bytes || !json_each(&rest, &key, &value) || !text_is(json_text(value), "yes"))
		return fail("internal", answer.headers);
	for (int i = 0; i < answer.body.len; i++)
		if (answer.body.at[i] != bytes[i])
			return fail("internal", format("byte %d differs", i));
	r.bytes = (text){0};
	r.more = JSON({"parts": [{"text": "a"}, {"b64": "AP8="}]});
	TRY(http(&r, &answer));
	return text_is(to_base64(answer.body), "YQD/") ? fine : fail("internal", answer.body);
}

OPERATION(provider_describe, describe)
OPERATION(provider_open, start)
OPERATION(sandbox_exec, exec)
OPERATION(sandbox_read_file, read_file)
OPERATION(sandbox_write_file, write_file)
OPERATION(sandbox_destroy, destroy)
