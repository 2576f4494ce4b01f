// A provider for Acme, the practice service of sdk/practice: complete and small.

#include "talkops.h"

static failure describe(text call, text *reply) {
	*reply = JSON({
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
	});
	return fine;
}

// ---- The service ----

// Makes a request to the service, signed in.
static failure prepare(text call, const char *method, text path, request *r) {
	text settings = json_get(call, "settings");
	text key = json_text(json_get(settings, "api_key")); // a placeholder, or nothing when there is no key
	if (!key.len)
		return fail("unauthenticated", TEXT("not signed in to Acme: ACME_API_KEY is not set"));
	*r = (request){
		.method = method,
		.url = format("%t%t", json_text(json_get(settings, "api_url")), path),
		.headers = format("{\"authorization\":[%q]}", format("Bearer %t", key)),
		.again = *method == 'G' || *method == 'D',
	};
	return fine;
}

// The failure of an answer that is none of success.
static failure accepted(const response *answer) {
	static const struct {
		const char *code, *kind;
	} kinds[] = {
		{"no_such_box", "not_found"}, {"no_such_snapshot", "not_found"}, {"bad_key", "unauthenticated"},
		{"no_such_file", "file_not_found"}, {"bad_path", "invalid_path"}, {"bad_request", "invalid_argument"},
		{"is_directory", "is_directory"}, {"not_a_directory", "not_a_directory"}, {"not_a_file", "not_a_file"},
		{"permission_denied", "permission_denied"},
	};
	if (answer->status / 100 == 2)
		return fine;
	text e = json_get(answer->body, "error"), code = json_text(json_get(e, "code"));
	const char *kind = answer->status == 429 ? "rate_limited" : answer->status >= 500 ? "unavailable" : "internal";
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (text_is(code, kinds[i].code))
			kind = kinds[i].kind;
	return fail(kind, format("Acme: %t (%d)", json_text(json_get(e, "message")), answer->status));
}

static failure send(text call, const char *method, text path, text body, text *answer) {
	request r;
	response a;
	TRY(prepare(call, method, path, &r));
	if (body.len) {
		r.body = body;
		r.headers = format("{\"content-type\":[\"application/json\"],%t", (text){r.headers.at + 1, r.headers.len - 1});
	}
	TRY(http(&r, &a));
	TRY(accepted(&a));
	*answer = a.body;
	return fine;
}

static const text none;

// The id of the request's box.
static text box(text call) { return json_text(json_get(json_get(call, "sandbox"), "id")); }

// Says of a missing box that it was there before.
static failure gone(text call, failure f) {
	if (f.kind && text_is(TEXT_OF(f.kind), "not_found"))
		return fail("gone", format("the box %t no longer exists", box(call)));
	return f;
}

// ---- Commands ----

static failure run(text call, text cmd, text command, int64_t *exit) {
	text own = json_get(json_get(call, "sandbox"), "dir"), dir = json_get(cmd, "dir"), answer;
	int in = json_int(json_get(cmd, "stdin"));
	TRY(send(call, "PUT", command,
	         format("{\"args\":%j,\"dir\":%j,\"env\":%j,\"stdin\":%s}", json_get(cmd, "args"), dir.len ? dir : own, json_get(cmd, "env"), in ? "true" : "false"),
	         &answer));
	if (in) {
		// It goes on while output comes, and ends with the operation.
		request put;
		stream input;
		TRY(prepare(call, "PUT", format("%t/stdin", command), &put));
		put.from = in;
		TRY(http_start(&put, &input));
	}
	// The host delivers the output; the other lines come here.
	static const framing lines = {.frame = "lines", .field = "stream", .out = "stdout", .err = "stderr", .data = "data", .as = "base64"};
	request get;
	stream output;
	response head;
	TRY(prepare(call, "GET", format("%t/output", command), &get));
	get.frame = &lines;
	TRY(http_start(&get, &output));
	TRY(stream_head(&output, &head));
	TRY(accepted(&head));
	for (text line;;) {
		TRY(stream_next(&output, &line));
		if (!line.at)
			return fail("unavailable", TEXT("Acme's answer ended before the command did"));
		text last = json_get(line, "exit");
		if (last.len) {
			*exit = json_int(last);
			return fine;
		}
	}
}

static failure exec(text call, text *reply) {
	text cmd = json_get(call, "cmd");
	text command = format("/v1/boxes/%u/commands/%u", box(call), json_text(json_get(cmd, "id")));
	int64_t exit = 0;
	failure f = run(call, cmd, command, &exit);
	request end;
	if (f.kind && !prepare(call, "DELETE", command, &end).kind) {
		// Whatever went wrong, the command is not left running.
		response ended;
		end.timeout_ms = 5000;
		http(&end, &ended);
	}
	*reply = format("{\"exit\":%D}", exit);
	return gone(call, f);
}

static failure kill(text call, text *reply) {
	text answer;
	return send(call, "DELETE", format("/v1/boxes/%u/commands/%u", box(call), json_text(json_get(call, "name"))), none, &answer);
}

// ---- A box's life ----

static failure show(text call, text id, text *machine) {
	return send(call, "GET", format("/v1/boxes/%u", id), none, machine);
}

static failure start(text call, text *reply) {
	text spec = json_get(call, "spec"), id = json_text(json_get(spec, "id")), machine;
	if (id.len) {
		TRY(show(call, id, &machine));
	} else {
		TRY(send(call, "POST", TEXT("/v1/boxes"),
		         format("{\"name\":%j,\"env\":%j,\"labels\":%j,\"snapshot\":%j,\"lifetime_s\":%D}", json_get(spec, "name"), json_get(spec, "env"),
		                json_get(spec, "labels"), json_get(spec, "snapshot"), json_int(json_get(spec, "lifetime_ms")) / 1000),
		         &machine));
		id = json_text(json_get(machine, "id"));
		// From here on the host ends the box if anything goes wrong.
		TRY(created(format("{\"id\":%q}", id)));
	}
	while (text_is(json_text(json_get(machine, "state")), "starting")) {
		TRY(sleep_ms(100));
		TRY(show(call, id, &machine));
	}
	if (stopped())
		return fail("cancelled", TEXT("the opening was cancelled"));
	text dir = json_get(machine, "dir"), wanted = json_get(spec, "dir");
	if (wanted.len) {
		// The wanted directory, if it can be made; else the box's own.
		text script = TEXT("mkdir -p -- \"$1\" && cd -- \"$1\" && [ -w . ]"), ran;
		TRY(exec(format("{\"settings\":%j,\"sandbox\":{\"id\":%q,\"dir\":%j},\"cmd\":{\"id\":%q,\"args\":[\"/bin/sh\",\"-c\",%q,\"sh\",%j]}}",
		                json_get(call, "settings"), id, dir, format("dir-%t", json_text(json_get(call, "call"))), script, wanted),
		         &ran));
		if (json_int(json_get(ran, "exit")) == 0)
			dir = wanted;
	}
	*reply = format("{\"id\":%q,\"dir\":%j,\"expires_at_ms\":%D}", id, dir, moment(json_text(json_get(machine, "expires_at"))));
	return fine;
}

static failure destroy(text call, text *reply) {
	text answer;
	failure f = send(call, "DELETE", format("/v1/boxes/%u", box(call)), none, &answer);
	return f.kind && text_is(TEXT_OF(f.kind), "not_found") ? fine : f; // it is gone
}

static failure list(text call, text *reply) {
	text rest = json_get(call, "labels"), key, value, answer, found = none;
	text path = TEXT("/v1/boxes?");
	while (json_each(&rest, &key, &value))
		path = format("%tlabel=%u&", path, format("%t=%t", json_text(key), json_text(value)));
	TRY(send(call, "GET", path, none, &answer));
	for (rest = json_get(answer, "boxes"); json_each(&rest, &key, &value);)
		found = format("%t%s{\"id\":%j,\"name\":%j,\"state\":%j,\"labels\":%j,\"created_at_ms\":%D,\"expires_at_ms\":%D}", found, found.len ? "," : "",
		               json_get(value, "id"), json_get(value, "name"), json_get(value, "state"), json_get(value, "labels"),
		               moment(json_text(json_get(value, "created_at"))), moment(json_text(json_get(value, "expires_at"))));
	*reply = format("{\"sandboxes\":[%t]}", found);
	return fine;
}

static failure snapshot(text call, text *reply) {
	text answer;
	return gone(call, send(call, "POST", format("/v1/boxes/%u/snapshots", box(call)), format("{\"name\":%j}", json_get(call, "name")), &answer));
}

// ---- Files ----

static failure read_file(text call, text *reply) {
	request get;
	response answer;
	TRY(prepare(call, "GET", format("/v1/boxes/%u/files?path=%u", box(call), json_text(json_get(call, "path"))), &get));
	get.to = json_int(json_get(call, "dst"));
	TRY(http(&get, &answer));
	return gone(call, accepted(&answer));
}

static failure write_file(text call, text *reply) {
	request put;
	response answer;
	TRY(prepare(call, "PUT", format("/v1/boxes/%u/files?path=%u&mode=%u", box(call), json_text(json_get(call, "path")), json_text(json_get(call, "mode"))), &put));
	put.from = json_int(json_get(call, "src"));
	TRY(http(&put, &answer));
	return gone(call, accepted(&answer));
}

OPERATION(provider_describe, describe)
OPERATION(provider_open, start)
OPERATION(provider_list, list)
OPERATION(sandbox_exec, exec)
OPERATION(sandbox_kill, kill)
OPERATION(sandbox_read_file, read_file)
OPERATION(sandbox_write_file, write_file)
OPERATION(sandbox_snapshot, snapshot)
OPERATION(sandbox_destroy, destroy)
