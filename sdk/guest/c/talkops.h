// The talkops kit for providers written in C. It needs no libc, and is included by
// one file:
//
//	#include "talkops.h"
//
//	static failure destroy(text call, text *reply) { … }
//
//	OPERATION(sandbox_destroy, destroy)
//
// An operation is a function from its request to its reply, both JSON. Every
// operation runs in a fresh instance: nothing in memory outlives it, so memory is
// handed out and never taken back (but see memory_mark). What a provider can do to
// the world is the functions of this file.
#ifndef TALKOPS_H
#define TALKOPS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define UNUSED __attribute__((unused)) static

// A text is bytes somewhere else, without a zero at the end. A JSON value is the
// text of it; the empty text is no value.
typedef struct {
	const char *at;
	int len;
} text;

#define TEXT(literal) ((text){(literal), sizeof(literal) - 1})

// A JSON literal: JSON({"abi": [1, 0]}).
#define JSON(...) TEXT(#__VA_ARGS__)

// A failure says what went wrong; without a kind nothing did. Kinds are words that
// talkops knows: "not_found", "unauthenticated", "unavailable", "file_not_found",
// "invalid_argument", "internal", …
typedef struct {
	const char *kind;
	text message;
	bool sent; // part of a failed request may have reached the vendor
} failure;

// Returns from a function if a step of it fails.
#define TRY(step)                \
	do {                         \
		failure failed_ = (step); \
		if (failed_.kind)        \
			return failed_;      \
	} while (0)

UNUSED const failure fine = {0};

// Makes an export of the function of an operation.
#define OPERATION(name, function)                                                \
	__attribute__((export_name(#name))) int name##_(void) { return serve(function); }

__attribute__((export_name("talkops_provider_abi_1"))) int talkops_provider_abi_1(void) { return 0; }

#include "json.h"

// ---- The wall ----
//
// Bytes cross it in blocks of memory that belong to neither side. Who allocates a
// block or receives one frees it: block_put's is freed by its caller, block_take
// frees.

#define KERNEL(name) __attribute__((import_module("extism:host/env"), import_name(#name)))
#define HOST(name) __attribute__((import_module("talkops:host/v1"), import_name(#name)))

KERNEL(alloc) uint64_t kernel_alloc(uint64_t n);
KERNEL(free) void kernel_free(uint64_t at);
KERNEL(length) uint64_t kernel_length(uint64_t at);
KERNEL(load_u8) uint32_t kernel_load_u8(uint64_t at);
KERNEL(load_u64) uint64_t kernel_load_u64(uint64_t at);
KERNEL(store_u8) void kernel_store_u8(uint64_t at, uint32_t v);
KERNEL(store_u64) void kernel_store_u64(uint64_t at, uint64_t v);
KERNEL(input_length) uint64_t kernel_input_length(void);
KERNEL(input_load_u8) uint32_t kernel_input_u8(uint64_t at);
KERNEL(input_load_u64) uint64_t kernel_input_u64(uint64_t at);
KERNEL(output_set) void kernel_output(uint64_t at, uint64_t n);

HOST(http) int64_t host_http(uint64_t request);
HOST(http_start) int32_t host_http_start(uint64_t request);
HOST(http_wait) int64_t host_http_wait(int32_t handle, int32_t ms);
HOST(stream_next) int64_t host_stream_next(int32_t handle, int32_t ms);
HOST(stream_send) int32_t host_stream_send(int32_t handle, uint64_t piece);
HOST(stream_finish) int32_t host_stream_finish(int32_t handle);
HOST(stream_info) int64_t host_stream_info(int32_t handle);
HOST(stream_close) int32_t host_stream_close(int32_t handle);
HOST(emit) int32_t host_emit(int32_t stream, uint64_t bytes);
HOST(ref_read) int64_t host_ref_read(int32_t handle, int32_t most, int32_t ms);
HOST(ref_write) int32_t host_ref_write(int32_t handle, uint64_t bytes);
HOST(fs) int64_t host_fs(uint64_t call);
HOST(mac) int64_t host_mac(uint64_t call);
HOST(state) int64_t host_state(uint64_t call);
HOST(created) int32_t host_created(uint64_t opened);
HOST(progress) int32_t host_progress(uint64_t words);
HOST(log) int32_t host_log(int32_t level, uint64_t line);
HOST(sleep) int32_t host_sleep(int32_t ms);
HOST(now) int64_t host_now(void);
HOST(remaining) int64_t host_remaining(void);
HOST(stopped) int32_t host_stopped(void);
HOST(random) int64_t host_random(int32_t n);
HOST(last_error) int64_t host_last_error(void);

enum { END = -1, WAIT = -2, STOP = -3 };
enum { PATIENCE = 60000 };    // milliseconds of one wait; a stop ends it at once
enum { MAX_BLOCK = 64 << 10 }; // bytes of bulk data in one call

UNUSED uint64_t block_put(text t) {
	uint64_t at = kernel_alloc(t.len);
	int i = 0;
	for (; i + 8 <= t.len; i += 8) {
		uint64_t word;
		memcpy(&word, t.at + i, 8);
		kernel_store_u64(at + i, word);
	}
	for (; i < t.len; i++)
		kernel_store_u8(at + i, (unsigned char)t.at[i]);
	return at;
}

// Copies a block to a place that is large enough.
UNUSED text block_take(uint64_t at, char *to) {
	int n = kernel_length(at), i = 0;
	for (; i + 8 <= n; i += 8) {
		uint64_t word = kernel_load_u64(at + i);
		memcpy(to + i, &word, 8);
	}
	for (; i < n; i++)
		to[i] = kernel_load_u8(at + i);
	kernel_free(at);
	return (text){to, n};
}

UNUSED text block_new(uint64_t at) { return block_take(at, memory(kernel_length(at))); }

// Calls a host function with a block.
#define WITH(block, bytes, call)        \
	({                                  \
		uint64_t block = block_put(bytes); \
		__typeof__(call) result_ = (call); \
		kernel_free(block);             \
		result_;                        \
	})

UNUSED bool told_to_stop;

UNUSED failure cancelled(void) {
	told_to_stop = true;
	return fail("cancelled", TEXT("the operation shall end"));
}

UNUSED failure failure_read(text v) {
	failure f = fail(text_zero(json_text(json_get(v, "kind"))), json_text(json_get(v, "message")));
	f.sent = text_is(json_get(v, "sent"), "true");
	return text_is(TEXT_OF(f.kind), "cancelled") ? cancelled() : f;
}

// What the status of a host function means.
UNUSED failure status(int64_t n) {
	if (n >= 0)
		return fine;
	if (n == STOP)
		return cancelled();
	int64_t at = host_last_error();
	return at < 0 ? fail("internal", TEXT("a host function failed")) : failure_read(block_new(at));
}

// Runs one operation.
UNUSED int serve(failure (*operation)(text call, text *reply)) {
	int n = kernel_input_length(), i = 0;
	char *in = memory(n);
	for (; i + 8 <= n; i += 8) {
		uint64_t word = kernel_input_u64(i);
		memcpy(in + i, &word, 8);
	}
	for (; i < n; i++)
		in[i] = kernel_input_u8(i);
	text reply = TEXT("{}");
	failure f = operation((text){in, n}, &reply);
	if (f.kind)
		reply = format("{\"error\":{\"kind\":%q,\"message\":%q}}", TEXT_OF(f.kind), f.message);
	else
		reply = format("{\"ok\":%t}", reply);
	kernel_output(block_put(reply), reply.len);
	return 0;
}

// ---- Requests ----

// Records are lines or server-sent events ("lines", "sse"). Of them, JSON objects
// whose member field is stdout or stderr are output of the running command: talkops
// delivers their member data itself, as it is ("text") or decoded ("base64"). All
// others reach the provider.
typedef struct {
	const char *frame, *field, *out, *err, *data, *as;
} framing;

typedef struct {
	const char *method;
	text url;
	text headers; // JSON: {"name": ["value"]}. The value of a secret setting is a
	              // placeholder: talkops puts the secret in its place in a header.
	text body;    // JSON or other UTF-8
	text bytes;   // or any bytes
	int from;     // or a handle whose bytes are the body and stay outside
	bool pieces;  // or what stream_send gives, until stream_finish
	int to;       // a handle that takes the body of a 2xx answer, whose bytes stay outside
	bool again;   // it may be sent again after a failure
	int timeout_ms; // 0: the operation's own
	const framing *frame; // of an answer that is read as it comes
	text more;    // a JSON object: members of the ABI's request that have no field
	              // here, as "parts", "multipart", "encode" and "sign"
} request;

// An answer. A status of any kind is one.
typedef struct {
	int status;
	text headers; // JSON, names in lower case
	text body;
} response;

UNUSED text request_wire(const request *r, bool stream) {
	text route = TEXT("null");
	const framing *f = r->frame;
	if (f && f->field)
		route = format("{\"field\":%q,\"stdout\":%q,\"stderr\":%q,\"data\":%q,\"as\":%q}", TEXT_OF(f->field), TEXT_OF(f->out), TEXT_OF(f->err), TEXT_OF(f->data), TEXT_OF(f->as));
	text wire = format("{\"method\":%q,\"url\":%q,\"headers\":%j,\"body\":%q,\"body_b64\":%q,\"body_ref\":%d,\"body_sent\":%s,\"idempotent\":%s,\"timeout_ms\":%d,"
	              "\"resp\":{\"mode\":%q,\"ref\":%d,\"frame\":%q,\"route\":%t}}",
	              TEXT_OF(r->method), r->url, r->headers, r->body, to_base64(r->bytes), r->from, r->pieces ? "true" : "false", r->again ? "true" : "false", r->timeout_ms,
	              TEXT_OF(stream ? "stream" : r->to ? "ref" : "inline"), r->to, TEXT_OF(f ? f->frame : ""), route);
	if (json_trim(r->more).len > 2)
		wire = format("%t,%t", (text){wire.at, wire.len - 1}, (text){r->more.at + 1, r->more.len - 1});
	return wire;
}

UNUSED failure response_read(text v, response *to) {
	text e = json_get(v, "error");
	if (e.len)
		return failure_read(e);
	text coded = json_get(v, "body_b64");
	*to = (response){json_int(json_get(v, "status")), json_get(v, "headers"), coded.len ? from_base64(json_text(coded)) : json_text(json_get(v, "body"))};
	return fine;
}

// Sends a request and waits for the whole answer.
UNUSED failure http(const request *r, response *to) {
	int64_t at = WITH(block, request_wire(r, false), host_http(block));
	TRY(status(at));
	return response_read(block_new(at), to);
}

// A stream is a request on its way.
typedef struct {
	int handle;
	char *buffer;
	int size;
} stream;

// Begins a request, whose answer is read while it comes. stream_close lets go of it.
UNUSED failure http_start(const request *r, stream *s) {
	*s = (stream){WITH(block, request_wire(r, true), host_http_start(block)), 0, 0};
	return status(s->handle);
}

// Waits for the status and headers.
UNUSED failure stream_head(stream *s, response *to) {
	int64_t at;
	do
		at = host_http_wait(s->handle, PATIENCE);
	while (at == WAIT);
	TRY(status(at));
	return response_read(block_new(at), to);
}

// Waits for the next record, which is valid until the next call. One without a
// place is the end.
UNUSED failure stream_next(stream *s, text *record) {
	int64_t at;
	do
		at = host_stream_next(s->handle, PATIENCE);
	while (at == WAIT);
	*record = (text){0};
	if (at == END)
		return fine;
	TRY(status(at));
	int n = kernel_length(at);
	if (n > s->size) {
		s->size = n < MAX_BLOCK ? MAX_BLOCK : n;
		s->buffer = memory(s->size);
	}
	*record = block_take(at, s->buffer);
	return fine;
}

// A block that is JSON, and tells of a failure in its member "error".
UNUSED failure answer_read(int64_t at, text *to) {
	TRY(status(at));
	*to = block_new(at);
	text e = json_get(*to, "error");
	return e.len ? failure_read(e) : fine;
}

// How it stands: what was delivered, trailers, the code of a WebSocket's close.
UNUSED failure stream_info(stream *s, text *to) { return answer_read(host_stream_info(s->handle), to); }

// Sends up to MAX_BLOCK bytes of the request's body. *wanted says whether more is.
UNUSED failure stream_send(stream *s, text piece, bool *wanted) {
	int n;
	do
		n = WITH(block, piece, host_stream_send(s->handle, block));
	while (n == WAIT);
	*wanted = n != END;
	return n == END ? fine : status(n);
}

// Says that the request's body is complete.
UNUSED void stream_finish(stream *s) { host_stream_finish(s->handle); }

UNUSED void stream_close(stream *s) {
	if (s->handle > 0)
		host_stream_close(s->handle);
	s->handle = 0;
}

// ---- Bytes, time and words ----

// Reads the next bytes of a handle, at most MAX_BLOCK, into a place of that size.
// *n is 0 at the end.
UNUSED failure handle_read(int handle, char *to, int most, int *n) {
	int64_t at;
	do
		at = host_ref_read(handle, most, PATIENCE);
	while (at == WAIT);
	*n = 0;
	if (at == END)
		return fine;
	TRY(status(at));
	*n = block_take(at, to).len;
	return fine;
}

// Gives up to MAX_BLOCK bytes to a handle.
UNUSED failure handle_write(int handle, text bytes) {
	return status(WITH(block, bytes, host_ref_write(handle, block)));
}

// Delivers up to MAX_BLOCK bytes of output of the running command: 1 is stdout, 2
// stderr. That nobody takes more is no failure, and no reason to end the command.
UNUSED failure emit(int to, text bytes) { return status(WITH(block, bytes, host_emit(to, block))); }

// Tells talkops of a machine that now exists: {"id": …}. From here on talkops ends
// it if the opening fails in any way.
UNUSED failure created(text opened) { return status(WITH(block, opened, host_created(block))); }

// Says in a few words what is waited for.
UNUSED void progress(text words) { WITH(block, words, host_progress(block)); }

// Writes a line to talkops' log: 0 debug, 1 info, 2 warning, 3 error.
UNUSED void log_line(int level, text line) { WITH(block, line, host_log(level, block)); }

// The HMAC with a secret setting, which the provider cannot read: {"alg":
// "hmac-sha256", "secret": "api_key", "data": …} gives {"mac": …}.
UNUSED failure mac(text call, text *to) { return answer_read(WITH(block, call, host_mac(block)), to); }

// The little that is kept for a provider between runs: {"fn": "get", "key": …}, "set"
// with a "value", "delete".
UNUSED failure state(text call, text *to) { return answer_read(WITH(block, call, host_state(block)), to); }

// A file of a folder that the user granted by name: {"fn": "open", "root": …, "path":
// …} gives {"handle": …}; also "stat", "list", "create" and "remove".
UNUSED failure file(text call, text *to) { return answer_read(WITH(block, call, host_fs(block)), to); }

// Waits so many milliseconds, at most a minute.
UNUSED failure sleep_ms(int ms) { return status(host_sleep(ms)); }

// Milliseconds since 1970, and until the operation's deadline.
UNUSED int64_t now_ms(void) { return host_now(); }
UNUSED int64_t remaining_ms(void) { return host_remaining(); }

// So many random bytes, at most 4096.
UNUSED text random_bytes(int n) {
	int64_t at = host_random(n);
	return at < 0 ? (text){0} : block_new(at);
}

// Whether the operation shall end. The provider is told once, by the failure
// "cancelled" of what it waits in or by this; after that requests work again, for a
// short while, so that it can clean up.
UNUSED bool stopped(void) {
	if (host_stopped() == 1)
		told_to_stop = true;
	return told_to_stop;
}

#endif
