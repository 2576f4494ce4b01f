// Memory, text and JSON for talkops.h. A JSON value is the text of it, read where it
// stands: what is asked for often is better kept.
#ifndef TALKOPS_JSON_H
#define TALKOPS_JSON_H

// ---- Memory ----

extern unsigned char __heap_base;
UNUSED uintptr_t memory_top;

// So many bytes, for as long as the operation lasts.
UNUSED void *memory(int n) {
	if (!memory_top)
		memory_top = (uintptr_t)&__heap_base;
	uintptr_t at = (memory_top + 15) & ~(uintptr_t)15;
	memory_top = at + n;
	uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) << 16;
	if (memory_top > have && __builtin_wasm_memory_grow(0, ((memory_top - have) >> 16) + 1) == (unsigned long)-1)
		__builtin_trap(); // out of memory
	return (void *)at;
}

// A long loop gives back what a round of it took: mark before, release after.
UNUSED uintptr_t memory_mark(void) { return memory_top; }
UNUSED void memory_release(uintptr_t mark) { memory_top = mark; }

void *memcpy(void *to, const void *from, unsigned long n) {
	for (unsigned long i = 0; i < n; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int c, unsigned long n) {
	for (unsigned long i = 0; i < n; i++)
		((char *)to)[i] = c;
	return to;
}

// ---- Text ----

// The text of a string that ends with a zero.
UNUSED text TEXT_OF(const char *s) {
	int n = 0;
	while (s && s[n])
		n++;
	return (text){s, n};
}

UNUSED bool text_is(text t, const char *s) {
	int i = 0;
	while (i < t.len && s[i] && t.at[i] == s[i])
		i++;
	return i == t.len && !s[i];
}

// A copy that ends with a zero.
UNUSED const char *text_zero(text t) {
	char *to = memory(t.len + 1);
	memcpy(to, t.at, t.len);
	to[t.len] = 0;
	return to;
}

UNUSED failure fail(const char *kind, text message) { return (failure){kind, message, false}; }

typedef struct {
	char *at;
	int len, size;
} builder;

UNUSED void add(builder *b, char c) {
	if (b->len == b->size) {
		int size = b->size ? b->size * 2 : 256;
		char *at = memory(size);
		memcpy(at, b->at, b->len);
		b->at = at, b->size = size;
	}
	b->at[b->len++] = c;
}

UNUSED void add_quoted(builder *b, text t) {
	add(b, '"');
	for (int i = 0; i < t.len; i++) {
		unsigned char c = t.at[i];
		if (c == '"' || c == '\\')
			add(b, '\\'), add(b, c);
		else if (c >= ' ')
			add(b, c);
		else
			add(b, '\\'), add(b, 'u'), add(b, '0'), add(b, '0'), add(b, "01"[c >> 4]), add(b, "0123456789abcdef"[c & 15]);
	}
	add(b, '"');
}

// As part of an address: of a path or a query.
UNUSED void add_escaped(builder *b, text t) {
	for (int i = 0; i < t.len; i++) {
		unsigned char c = t.at[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~')
			add(b, c);
		else
			add(b, '%'), add(b, "0123456789ABCDEF"[c >> 4]), add(b, "0123456789ABCDEF"[c & 15]);
	}
}

UNUSED void add_number(builder *b, int64_t n) {
	char digits[20];
	int k = 0;
	uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
	do
		digits[k++] = '0' + left % 10;
	while (left /= 10);
	if (n < 0)
		add(b, '-');
	while (k)
		add(b, digits[--k]);
}

// A text of others, put in place of:
//
//	%t a text as it is          %s a string that ends with a zero
//	%q a text as a JSON string  %j a JSON value, null if there is none
//	%u a text in an address     %d an int    %D an int64_t
UNUSED text format(const char *f, ...) {
	va_list args;
	va_start(args, f);
	builder b = {0};
	text t;
	for (; *f; f++) {
		if (*f != '%') {
			add(&b, *f);
			continue;
		}
		switch (*++f) {
		case 'q':
			add_quoted(&b, va_arg(args, text));
			break;
		case 'u':
			add_escaped(&b, va_arg(args, text));
			break;
		case 'd':
			add_number(&b, va_arg(args, int));
			break;
		case 'D':
			add_number(&b, va_arg(args, int64_t));
			break;
		case 's':
		case 't':
		case 'j':
			t = *f == 's' ? TEXT_OF(va_arg(args, const char *)) : va_arg(args, text);
			if (*f == 'j' && !t.len)
				t = TEXT("null");
			for (int i = 0; i < t.len; i++)
				add(&b, t.at[i]);
			break;
		default:
			add(&b, *f);
		}
	}
	va_end(args);
	return (text){b.at, b.len};
}

// ---- JSON ----

UNUSED text json_trim(text v) {
	while (v.len && (v.at[0] == ' ' || v.at[0] == '\n' || v.at[0] == '\r' || v.at[0] == '\t'))
		v.at++, v.len--;
	return v;
}

// The length of the value that a text begins with, 0 if there is none.
UNUSED int json_span(text v) {
	int depth = 0;
	bool quoted = false;
	for (int i = 0; i < v.len; i++) {
		char c = v.at[i];
		if (quoted) {
			if (c == '\\')
				i++;
			else if (c == '"' && (quoted = false, !depth))
				return i + 1;
		} else if (c == '"') {
			if (i && !depth)
				return i;
			quoted = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (!depth)
				return i;
			if (!--depth)
				return i + 1;
		} else if (!depth && (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
			return i;
		}
	}
	return depth || quoted ? 0 : v.len;
}

// Walks through an array or object: rest begins as the value and is moved on. Key is
// a JSON string, of an object only.
//
//	text rest = labels, key, value;
//	while (json_each(&rest, &key, &value)) …
UNUSED bool json_each(text *rest, text *key, text *value) {
	text r = json_trim(*rest);
	if (!r.len || (*r.at != '{' && *r.at != '[' && *r.at != ','))
		return false;
	bool object = *r.at == '{';
	text last = {0};
	for (int part = 0; part < 2; part++) {
		r.at++, r.len--;
		r = json_trim(r);
		int n = json_span(r);
		text v = {r.at, n};
		r.at += n, r.len -= n;
		r = json_trim(r);
		if (!n)
			return false;
		if (r.len && *r.at == ':') {
			last = v;
			object = true;
			continue;
		}
		*key = last, *value = v, *rest = r;
		return !object || last.len;
	}
	return false;
}

// The bytes of a string, argument, path or value: a JSON string, or {"b64": …} where
// they are not UTF-8; else none.
UNUSED text json_text(text v);

// The member of an object. There is none if it is missing or null.
UNUSED text json_get(text v, const char *name) {
	text key, value;
	if (!v.len || *json_trim(v).at != '{')
		return (text){0};
	while (json_each(&v, &key, &value))
		if (text_is(json_text(key), name))
			return text_is(value, "null") ? (text){0} : value;
	return (text){0};
}

// A whole number, else 0.
UNUSED int64_t json_int(text v) {
	bool minus = v.len && *v.at == '-';
	int64_t n = 0;
	for (int i = minus; i < v.len; i++) {
		if (v.at[i] < '0' || v.at[i] > '9')
			return 0;
		n = n * 10 + v.at[i] - '0';
	}
	return minus ? -n : n;
}

UNUSED unsigned json_hex(text v, int at) {
	unsigned n = 0;
	for (int i = at; i < at + 4; i++) {
		char c = i < v.len ? v.at[i] : '0';
		n = n << 4 | (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	return n;
}

UNUSED text to_base64(text t) {
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	builder b = {0};
	for (int i = 0; i < t.len; i += 3) {
		const unsigned char *c = (const unsigned char *)t.at + i;
		int left = t.len - i, n = c[0] << 16 | (left > 1 ? c[1] << 8 : 0) | (left > 2 ? c[2] : 0);
		for (int k = 0; k < 4; k++)
			add(&b, k <= left ? digits[n >> (18 - 6 * k) & 63] : '=');
	}
	return (text){b.at, b.len};
}

UNUSED text from_base64(text t) {
	builder b = {0};
	uint32_t n = 0;
	int bits = 0;
	for (int i = 0; i < t.len && t.at[i] != '='; i++) {
		char c = t.at[i];
		n = n << 6 | (c >= 'a' ? c - 'a' + 26 : c >= 'A' ? c - 'A' : c >= '0' ? c - '0' + 52 : c == '+' ? 62 : 63);
		if ((bits += 6) >= 8)
			add(&b, n >> (bits -= 8));
	}
	return (text){b.at, b.len};
}

UNUSED text json_text(text v) {
	if (v.len && *v.at == '{')
		return from_base64(json_text(json_get(v, "b64")));
	if (v.len < 2 || *v.at != '"')
		return (text){0};
	v.at++, v.len -= 2;
	bool plain = true;
	for (int i = 0; i < v.len && plain; i++)
		plain = v.at[i] != '\\';
	if (plain)
		return v;
	builder b = {0};
	for (int i = 0; i < v.len; i++) {
		char c = v.at[i];
		if (c != '\\') {
			add(&b, c);
			continue;
		}
		c = v.at[++i];
		if (c != 'u') {
			add(&b, c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? 8 : c == 'f' ? 12 : c);
			continue;
		}
		unsigned n = json_hex(v, i + 1);
		i += 4;
		if (n >= 0xd800 && n < 0xdc00) {
			n = 0x10000 + ((n - 0xd800) << 10) + (json_hex(v, i + 3) - 0xdc00);
			i += 6;
		}
		if (n < 0x80) {
			add(&b, n);
		} else if (n < 0x800) {
			add(&b, 0xc0 | n >> 6), add(&b, 0x80 | (n & 63));
		} else if (n < 0x10000) {
			add(&b, 0xe0 | n >> 12), add(&b, 0x80 | (n >> 6 & 63)), add(&b, 0x80 | (n & 63));
		} else {
			add(&b, 0xf0 | n >> 18), add(&b, 0x80 | (n >> 12 & 63)), add(&b, 0x80 | (n >> 6 & 63)), add(&b, 0x80 | (n & 63));
		}
	}
	return (text){b.at, b.len};
}

// "2026-01-31T12:00:00Z" in milliseconds since 1970; 0 if it is none.
UNUSED int64_t moment(text t) {
	if (t.len < 20)
		return 0;
	int64_t y = json_int((text){t.at, 4}), m = json_int((text){t.at + 5, 2}), d = json_int((text){t.at + 8, 2});
	int64_t h = json_int((text){t.at + 11, 2}), min = json_int((text){t.at + 14, 2}), s = json_int((text){t.at + 17, 2});
	// A year that begins in March has its odd day at its end.
	if (m > 2)
		m -= 3;
	else
		m += 9, y--;
	int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 719469;
	return (((days * 24 + h) * 60 + min) * 60 + s) * 1000;
}

#endif
