//! JSON, and the small formats beside it: parts of addresses, moments, base64.

#![allow(dead_code)]

use crate::talkops::{error, Result};
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String), // as it is written
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

static NULL: Json = Json::Null;

impl Default for Json {
    fn default() -> Json { Json::Null }
}

pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(k, v)| (k.into(), v)).collect())
}

impl From<&str> for Json {
    fn from(s: &str) -> Json { Json::String(s.into()) }
}

impl From<String> for Json {
    fn from(s: String) -> Json { Json::String(s) }
}

impl From<i64> for Json {
    fn from(n: i64) -> Json { Json::Number(n.to_string()) }
}

impl Json {
    /// The member of an object; null if there is none.
    pub fn get(&self, name: &str) -> &Json {
        self.members().iter().find(|(k, _)| k == name).map_or(&NULL, |(_, v)| v)
    }

    /// A string, else "".
    pub fn str(&self) -> &str {
        if let Json::String(s) = self { s } else { "" }
    }

    /// A whole number, else 0.
    pub fn int(&self) -> i64 {
        if let Json::Number(s) = self { s.parse().unwrap_or(0) } else { 0 }
    }

    pub fn items(&self) -> &[Json] {
        if let Json::Array(a) = self { a } else { &[] }
    }

    pub fn members(&self) -> &[(String, Json)] {
        if let Json::Object(o) = self { o } else { &[] }
    }

    /// The bytes of an argument, path or value: a string, or {"b64": …} where they
    /// are not UTF-8.
    pub fn text(&self) -> Vec<u8> {
        match self.get("b64") {
            Json::String(s) => from_base64(s).unwrap_or_default(),
            _ => self.str().as_bytes().to_vec(),
        }
    }

    pub fn parse(text: &[u8]) -> Result<Json> {
        let mut p = Parser { text, at: 0 };
        match p.value(0) {
            Some(v) if p.peek() == 0 && p.at == text.len() => Ok(v),
            _ => Err(error("internal", format!("not JSON at byte {}", p.at))),
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    /// The next byte that is no space; 0 is the end.
    fn peek(&mut self) -> u8 {
        while let Some(&c) = self.text.get(self.at) {
            if !matches!(c, b' ' | b'\t' | b'\n' | b'\r') {
                return c;
            }
            self.at += 1;
        }
        0
    }

    fn eat(&mut self, c: u8) -> bool {
        let found = self.peek() == c && c != 0;
        self.at += found as usize;
        found
    }

    fn word(&mut self, word: &str, v: Json) -> Option<Json> {
        self.text[self.at..].starts_with(word.as_bytes()).then(|| { self.at += word.len(); v })
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > 100 {
            return None;
        }
        match self.peek() {
            b'n' => self.word("null", Json::Null),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'"' => self.string().map(Json::String),
            b'[' => {
                self.at += 1;
                let mut items = vec![];
                while !self.eat(b']') {
                    if !items.is_empty() && !self.eat(b',') {
                        return None;
                    }
                    items.push(self.value(depth + 1)?);
                }
                Some(Json::Array(items))
            }
            b'{' => {
                self.at += 1;
                let mut members = vec![];
                while !self.eat(b'}') {
                    if !members.is_empty() && !self.eat(b',') {
                        return None;
                    }
                    self.peek();
                    let key = self.string()?;
                    if !self.eat(b':') {
                        return None;
                    }
                    members.push((key, self.value(depth + 1)?));
                }
                Some(Json::Object(members))
            }
            b'-' | b'0'..=b'9' => {
                let from = self.at;
                while matches!(self.text.get(self.at), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
                    self.at += 1;
                }
                Some(Json::Number(String::from_utf8_lossy(&self.text[from..self.at]).into()))
            }
            _ => None,
        }
    }

    fn string(&mut self) -> Option<String> {
        if !self.eat(b'"') {
            return None;
        }
        let mut out = vec![];
        loop {
            let c = *self.text.get(self.at)?;
            self.at += 1;
            match c {
                b'"' => return String::from_utf8(out).ok(),
                b'\\' => {
                    let c = *self.text.get(self.at)?;
                    self.at += 1;
                    out.push(match c {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'b' => 8,
                        b'f' => 12,
                        b'u' => {
                            let mut n = self.hex()?;
                            if (0xd800..0xdc00).contains(&n) && self.text[self.at..].starts_with(b"\\u") {
                                self.at += 2;
                                n = 0x10000 + ((n - 0xd800) << 10) + self.hex()?.wrapping_sub(0xdc00);
                            }
                            let c = char::from_u32(n).unwrap_or('\u{fffd}');
                            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                            continue;
                        }
                        c => c,
                    });
                }
                c => out.push(c),
            }
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(b) => f.write_str(if *b { "true" } else { "false" }),
            Json::Number(n) => f.write_str(n),
            Json::String(s) => quote(s, f),
            Json::Array(items) => {
                for (i, v) in items.iter().enumerate() {
                    f.write_str(if i == 0 { "[" } else { "," })?;
                    v.fmt(f)?;
                }
                f.write_str(if items.is_empty() { "[]" } else { "]" })
            }
            Json::Object(members) => {
                for (i, (k, v)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "{" } else { "," })?;
                    quote(k, f)?;
                    f.write_str(":")?;
                    v.fmt(f)?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn quote(s: &str, f: &mut fmt::Formatter) -> fmt::Result {
    f.write_str("\"")?;
    for c in s.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{}", c)?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{}", c)?,
        }
    }
    f.write_str("\"")
}

// ---- Words of other formats ----

/// Bytes as part of an address: of a path or a query.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &b in bytes {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(b as char),
            _ => out += &format!("%{:02X}", b),
        }
    }
    out
}

/// "2026-01-31T12:00:00Z" in milliseconds since 1970; 0 if it is none.
pub fn moment(s: &str) -> i64 {
    let n = |from: usize, to: usize| s.get(from..to).and_then(|d| d.parse::<i64>().ok());
    let read = || Some((n(0, 4)?, n(5, 7)?, n(8, 10)?, n(11, 13)?, n(14, 16)?, n(17, 19)?));
    let (year, month, day, h, m, s) = match read() {
        Some(t) => t,
        None => return 0,
    };
    // A year that begins in March has its odd day at its end.
    let (y, mon) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * mon + 2) / 5 + day - 719_469;
    (((days * 24 + h) * 60 + m) * 60 + s) * 1000
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in bytes.chunks(3) {
        let n = (c[0] as usize) << 16 | (*c.get(1).unwrap_or(&0) as usize) << 8 | *c.get(2).unwrap_or(&0) as usize;
        for i in 0..4 {
            out.push(if i <= c.len() { DIGITS[n >> (18 - 6 * i) & 63] as char } else { '=' });
        }
    }
    out
}

pub fn from_base64(text: &str) -> Result<Vec<u8>> {
    let (mut out, mut n, mut bits) = (vec![], 0u32, 0);
    for c in text.bytes().filter(|c| *c != b'=') {
        let digit = DIGITS.iter().position(|d| *d == c).ok_or_else(|| error("internal", "not base64"))?;
        n = n << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((n >> bits) as u8);
        }
    }
    Ok(out)
}
