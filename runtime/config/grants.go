package config

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
)

// grants reads what a module may be and touch. A project can pin a module, and
// nothing else.
func (c *Config) grants(p *Provider, f *file, own bool, at string, t map[string]any, src Sources) error {
	if v, set := t["sha256"]; set {
		sum, _ := v.(string)
		raw, err := hex.DecodeString(sum)
		if err != nil || len(raw) != 32 {
			return errorf("%s: %s.sha256 must be 64 hexadecimal digits", f.at(at+".sha256"), at)
		}
		if p.SHA256 != "" && !strings.EqualFold(p.SHA256, sum) {
			return errorf("%s: %s.sha256 is another than in your own file", f.at(at+".sha256"), at)
		}
		p.SHA256 = strings.ToLower(sum)
	}
	for _, key := range grantKeys {
		v, set := t[key]
		if !set {
			continue
		}
		where := f.at(at + "." + key)
		if !own {
			c.warnf("%s: %s.%s is yours to set, not a project's; ignored", where, at, key)
			continue
		}
		switch key {
		case "memory_mb":
			n, ok := v.(int64)
			if !ok || n < 1 || n > 1024 {
				return errorf("%s: %s.memory_mb must be a whole number from 1 to 1024", where, at)
			}
			p.MemoryMB = int(n)
		case "usd_per_hour":
			usd := -1.0
			switch n := v.(type) {
			case float64:
				usd = n
			case int64:
				usd = float64(n)
			}
			if !(usd >= 0 && usd <= 1000) {
				return errorf("%s: %s.usd_per_hour must be a number from 0 to 1000", where, at)
			}
			p.USDPerHour = &usd
		case "limits":
			if err := p.Limits.read(f, at+".limits", v); err != nil {
				return err
			}
		case "allow_paths":
			list, ok := v.([]any)
			if !ok {
				return errorf("%s: %s.allow_paths must be a list of tables {name, path, mode}", where, at)
			}
			for _, item := range list {
				e, _ := item.(map[string]any)
				name, _ := e["name"].(string)
				path, _ := e["path"].(string)
				mode, given := e["mode"].(string)
				if name == "" || path == "" || given && mode != "ro" && mode != "rw" {
					return errorf(`%s: each of %s.allow_paths has a name, a path and a mode, "ro" or "rw"`, where, at)
				}
				if slices.ContainsFunc(p.AllowPaths, func(a AllowPath) bool { return a.Name == name }) {
					return errorf("%s: %s.allow_paths names %q twice", where, at, name)
				}
				p.AllowPaths = append(p.AllowPaths, AllowPath{name, expand(path, src.UserHome, filepath.Dir(f.path)), mode == "rw"})
			}
		default:
			words, err := Key{Kind: List}.decode(v)
			if err != nil {
				return errorf("%s: %s.%s: %v", where, at, key, err)
			}
			if key == "env" {
				p.Env = words.([]string)
			} else {
				p.AllowHosts = words.([]string)
			}
		}
	}
	return nil
}

// read takes the table of limits.
func (l *Limits) read(f *file, at string, v any) error {
	table, ok := v.(map[string]any)
	if !ok {
		return errorf("%s: %s must be a table", f.at(at), at)
	}
	into := map[string]*int{"concurrency": &l.Concurrency, "compile_s": &l.CompileSeconds, "log_kb": &l.LogKB, "http_inline_kb": &l.HTTPInlineKB}
	for name, v := range table {
		to, ok := into[name]
		k, known := Lookup(at + "." + name)
		if !ok || !known {
			return errorf("%s: unknown key %s.%s", f.at(at+"."+name), at, clip(name))
		}
		n, err := k.decode(v)
		if err != nil {
			return errorf("%s: %s.%s: %v", f.at(at+"."+name), at, name, err)
		}
		*to = int(n.(int64))
	}
	return nil
}
