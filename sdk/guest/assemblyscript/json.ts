// JSON, and the small formats beside it: parts of addresses, moments, base64.

const enum Kind { Null, True, False, Number, String, Array, Object }

/** A JSON value. */
export class Json {
  private constructor(
    private kind: Kind,
    private word: string = "", // of a string, or a number as it is written
    private keys: string[] = [],
    private values: Json[] = [],
  ) {}

  static null(): Json { return new Json(Kind.Null); }
  static bool(b: bool): Json { return new Json(b ? Kind.True : Kind.False); }
  static int(n: i64): Json { return new Json(Kind.Number, n.toString()); }
  static string(s: string): Json { return new Json(Kind.String, s); }
  static array(): Json { return new Json(Kind.Array); }
  static object(): Json { return new Json(Kind.Object); }

  /** Adds to an array. */
  push(v: Json): Json {
    this.values.push(v);
    return this;
  }

  /** Adds a member to an object. */
  set(name: string, v: Json): Json {
    this.keys.push(name);
    return this.push(v);
  }
  setString(name: string, s: string): Json { return this.set(name, Json.string(s)); }
  setInt(name: string, n: i64): Json { return this.set(name, Json.int(n)); }
  setBool(name: string, b: bool): Json { return this.set(name, Json.bool(b)); }

  /** The member of an object; null if there is none. */
  get(name: string): Json {
    const i = this.keys.indexOf(name);
    return i < 0 ? Json.null() : this.values[i];
  }

  isNull(): bool { return this.kind == Kind.Null; }
  isTrue(): bool { return this.kind == Kind.True; }

  /** A string, else "". */
  str(): string { return this.kind == Kind.String ? this.word : ""; }

  /** A whole number, else 0. */
  int(): i64 { return this.kind == Kind.Number ? I64.parseInt(this.word) : 0; }

  /** The values of an array or object, and the names of an object's. */
  items(): Json[] { return this.values; }
  names(): string[] { return this.keys; }

  /** The bytes of an argument, path or value: a string, or {"b64": …} where they are
   * not UTF-8. */
  bytes(): Uint8Array {
    const coded = this.get("b64");
    return coded.kind == Kind.String ? fromBase64(coded.word) : utf8(this.str());
  }

  toString(): string {
    const parts: string[] = [];
    this.write(parts);
    return parts.join("");
  }

  private write(out: string[]): void {
    const object = this.kind == Kind.Object;
    switch (this.kind) {
      case Kind.Null: out.push("null"); return;
      case Kind.True: out.push("true"); return;
      case Kind.False: out.push("false"); return;
      case Kind.Number: out.push(this.word); return;
      case Kind.String: quote(this.word, out); return;
    }
    out.push(object ? "{" : "[");
    for (let i = 0; i < this.values.length; i++) {
      if (i > 0) out.push(",");
      if (object) {
        quote(this.keys[i], out);
        out.push(":");
      }
      this.values[i].write(out);
    }
    out.push(object ? "}" : "]");
  }

  /** Reads JSON; null if it is none. */
  static parse(s: string): Json | null {
    const p = new Parser(s);
    const v = p.value(0);
    return p.bad || p.peek() != 0 ? null : v;
  }

  /** For Parser. */
  static literal(s: string): Json | null {
    if (s == "null") return Json.null();
    if (s == "true") return Json.bool(true);
    if (s == "false") return Json.bool(false);
    const c = s.length > 0 ? s.charCodeAt(0) : 0;
    return c == 0x2d || (c >= 0x30 && c <= 0x39) ? new Json(Kind.Number, s) : null;
  }
}

class Parser {
  private at: i32 = 0;
  bad: bool = false;

  constructor(private s: string) {}

  /** The next character that is no space; 0 is the end. */
  peek(): i32 {
    while (this.at < this.s.length) {
      const c = this.s.charCodeAt(this.at);
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return c;
      this.at++;
    }
    return 0;
  }

  private eat(c: i32): bool {
    const found = this.peek() == c;
    if (found) this.at++;
    return found;
  }

  private fail(): Json {
    this.bad = true;
    return Json.null();
  }

  value(depth: i32): Json {
    if (depth > 100) return this.fail();
    const c = this.peek();
    if (c == 0x22) return Json.string(this.string());
    if (c == 0x5b) { // [
      this.at++;
      const list = Json.array();
      while (!this.bad && !this.eat(0x5d)) {
        if (list.items().length > 0 && !this.eat(0x2c)) return this.fail();
        list.push(this.value(depth + 1));
      }
      return list;
    }
    if (c == 0x7b) { // {
      this.at++;
      const object = Json.object();
      while (!this.bad && !this.eat(0x7d)) {
        if (object.items().length > 0 && !this.eat(0x2c)) return this.fail();
        const name = this.peek() == 0x22 ? this.string() : "";
        if (!this.eat(0x3a)) return this.fail();
        object.set(name, this.value(depth + 1));
      }
      return object;
    }
    const from = this.at;
    for (; this.at < this.s.length; this.at++) {
      const c = this.s.charCodeAt(this.at);
      if (c <= 0x20 || c == 0x2c || c == 0x5d || c == 0x7d) break;
    }
    const v = Json.literal(this.s.substring(from, this.at));
    return v == null ? this.fail() : v;
  }

  private string(): string {
    const parts: string[] = [];
    let from = ++this.at;
    for (; this.at < this.s.length; this.at++) {
      let c = this.s.charCodeAt(this.at);
      if (c == 0x22) {
        parts.push(this.s.substring(from, this.at++));
        return parts.join("");
      }
      if (c != 0x5c) continue;
      parts.push(this.s.substring(from, this.at++));
      c = this.at < this.s.length ? this.s.charCodeAt(this.at) : 0;
      if (c == 0x6e) parts.push("\n");
      else if (c == 0x74) parts.push("\t");
      else if (c == 0x72) parts.push("\r");
      else if (c == 0x62) parts.push("\b");
      else if (c == 0x66) parts.push("\f");
      else if (c == 0x75) {
        parts.push(String.fromCharCode(i32(I64.parseInt(this.s.substring(this.at + 1, this.at + 5), 16))));
        this.at += 4;
      } else parts.push(String.fromCharCode(c));
      from = this.at + 1;
    }
    this.bad = true;
    return "";
  }
}

function quote(s: string, out: string[]): void {
  out.push('"');
  let from = 0;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c) continue;
    out.push(s.substring(from, i));
    if (c >= 0x20) out.push("\\" + s.charAt(i));
    else out.push("\\u00" + (c < 16 ? "0" : "") + c.toString(16));
    from = i + 1;
  }
  out.push(s.substring(from));
  out.push('"');
}

/** The bytes of a string, and back. */
export function utf8(s: string): Uint8Array {
  return Uint8Array.wrap(String.UTF8.encode(s));
}
export function text(bytes: Uint8Array): string {
  return String.UTF8.decodeUnsafe(bytes.dataStart, bytes.length);
}

/** Bytes as part of an address: of a path or a query. */
export function escape(bytes: Uint8Array): string {
  const out: string[] = [];
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i];
    const letter = (c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a);
    if (letter || (c >= 0x30 && c <= 0x39) || c == 0x2d || c == 0x5f || c == 0x2e || c == 0x7e) out.push(String.fromCharCode(c));
    else out.push("%" + (c < 16 ? "0" : "") + c.toString(16).toUpperCase());
  }
  return out.join("");
}

/** "2026-01-31T12:00:00Z" in milliseconds since 1970; 0 if it is none. */
export function moment(s: string): i64 {
  if (s.length < 20) return 0;
  let year = I64.parseInt(s.substring(0, 4)), month = I64.parseInt(s.substring(5, 7));
  const day = I64.parseInt(s.substring(8, 10)), hour = I64.parseInt(s.substring(11, 13));
  const minute = I64.parseInt(s.substring(14, 16)), second = I64.parseInt(s.substring(17, 19));
  // A year that begins in March has its odd day at its end.
  if (month > 2) month -= 3;
  else { month += 9; year--; }
  const days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719469;
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

export function toBase64(b: Uint8Array): string {
  const out: string[] = [];
  for (let i = 0; i < b.length; i += 3) {
    const left = b.length - i;
    const n = (i32(b[i]) << 16) | (left > 1 ? i32(b[i + 1]) << 8 : 0) | (left > 2 ? i32(b[i + 2]) : 0);
    for (let k = 0; k < 4; k++) out.push(k <= left ? DIGITS.charAt((n >> (18 - 6 * k)) & 63) : "=");
  }
  return out.join("");
}

export function fromBase64(s: string): Uint8Array {
  const out: u8[] = [];
  let n: u32 = 0, bits = 0;
  for (let i = 0; i < s.length && s.charCodeAt(i) != 0x3d; i++) {
    n = (n << 6) | u32(DIGITS.indexOf(s.charAt(i)));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push(u8(n >> bits));
    }
  }
  const bytes = new Uint8Array(out.length);
  for (let i = 0; i < out.length; i++) bytes[i] = out[i];
  return bytes;
}
