package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
)

// helmValued are options of helm whose value may be a word of its own.
var helmValued = []string{
	"-f", "--values", "--set", "--set-string", "--set-file", "--set-json", "--set-literal", "--version", "--repo", "--timeout", "-o", "--output", "--history-max",
	"--description", "--post-renderer", "--post-renderer-args", "--username", "--password", "--ca-file", "--cert-file", "--key-file", "--keyring", "-l", "--labels",
	"--registry-config", "--repository-cache", "--repository-config", "--kube-as-user", "--kube-as-group", "--kube-ca-file", "--kube-token", "--burst-limit", "--qps",
	"--cascade",
}

// helm compares the objects of a release with those that its chart would give now.
func (l *look) helm(ctx context.Context) error {
	options, words := l.sort(helmValued)
	if l.change.Names == nil {
		l.change.Names = map[string]string{}
	}
	switch {
	case len(words) > 0 && l.verb == "upgrade":
		l.change.Names["release"] = clip(words[0])
	case len(words) > 0:
		l.change.Names["release"] = clip(strings.Join(words, " "))
	}
	if l.verb == "uninstall" {
		if len(words) == 0 {
			return errors.New("it names no release")
		}
		for _, release := range words {
			out, _, err := l.ask(ctx, append(slices.Clone(l.global), "get", "manifest", release)...)
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(objects(string(out)))) {
				l.note("destroy", name)
			}
		}
		l.trim()
		return nil
	}
	if len(words) != 2 {
		return errors.New("it does not name a release and a chart")
	}
	if len(keep(options, "--reuse-values", "--reset-then-reuse-values", "--post-renderer")) > 0 {
		return errors.New("it depends on values or programs that only the upgrade itself has")
	}
	out, _, err := l.ask(ctx, append(slices.Clone(l.global), "get", "manifest", words[0])...)
	if err != nil && !strings.Contains(err.Error(), "not found") {
		return err
	}
	before := objects(string(out))
	args := append(slices.Clone(l.global), "template", words[0], words[1], "--no-hooks", "--is-upgrade")
	args = append(args, keep(options, "-f", "--values", "--set", "--set-string", "--set-file", "--set-json", "--set-literal", "--version", "--repo", "--devel")...)
	if out, _, err = l.ask(ctx, args...); err != nil {
		return err
	}
	after := objects(string(out))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		old, there := before[name]
		switch {
		case !there:
			l.note("add", name)
		case old != after[name]:
			l.note("change", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			l.note("destroy", name)
		}
	}
	l.trim()
	return nil
}

// objects are the documents of a manifest by kind, namespace and name.
func objects(manifest string) map[string]string {
	all := map[string]string{}
	for doc := range strings.SplitSeq("\n"+manifest, "\n---") {
		var kind, name, namespace string
		var text strings.Builder
		top := ""
		for line := range strings.Lines(doc) {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				continue
			}
			text.WriteString(line)
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.Trim(strings.TrimSpace(value), `"'`)
			switch {
			case !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "-"):
				if top = key; key == "kind" {
					kind = value
				}
			case top == "metadata" && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && key == "name":
				name = value
			case top == "metadata" && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && key == "namespace":
				namespace = value
			}
		}
		if kind == "" || name == "" {
			continue
		}
		if namespace != "" {
			name = namespace + "/" + name
		}
		all[kind+" "+name] = text.String()
	}
	return all
}
