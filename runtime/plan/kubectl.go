package plan

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
)

// kubectlValued are options of kubectl whose value may be a word of its own.
var kubectlValued = []string{
	"-f", "--filename", "-k", "--kustomize", "-l", "--selector", "-o", "--output", "--field-manager", "--field-selector", "--timeout", "--grace-period",
	"--prune-allowlist", "--raw", "--template", "--as", "--as-group", "--as-uid", "--cache-dir", "--certificate-authority", "--client-certificate", "--client-key",
	"--token", "--request-timeout", "--tls-server-name", "-v", "--v", "--profile", "--profile-output", "--password", "--username", "--applyset",
}

// kubectlApply asks the cluster what an apply would change. An answer of 1 means
// that something would.
func (l *look) kubectlApply(ctx context.Context) error {
	options, words := l.sort(kubectlValued)
	if len(words) > 0 {
		return errors.New("it has words that are not known")
	}
	if slices.Contains(values(options, "-f", "--filename"), "-") {
		return errors.New("it reads what to apply from its standard input")
	}
	args := append(slices.Clone(l.global), "diff")
	args = append(args, keep(options, "-f", "--filename", "-k", "--kustomize", "-R", "--recursive", "-l", "--selector", "--server-side", "--force-conflicts",
		"--field-manager", "--prune", "--prune-allowlist")...)
	out, exit, err := l.ask(ctx, args...)
	if err != nil && exit != 1 {
		return err
	}
	if exit == 1 && len(out) == 0 {
		return err // another program's 1
	}
	return l.kubectlDiff(string(out))
}

// kubectlDiff reads a unified diff between directories with one file an object.
func (l *look) kubectlDiff(text string) error {
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "diff ") {
			fields := strings.Fields(line)
			name = path.Base(fields[len(fields)-1])
			continue
		}
		if !strings.HasPrefix(line, "@@ ") || name == "" {
			continue
		}
		switch {
		case strings.HasPrefix(line, "@@ -0,0 "):
			l.note("add", name)
		case strings.Contains(line, " +0,0 @@"):
			l.note("destroy", name)
		default:
			l.note("change", name)
		}
		name = "" // the other hunks are of the same object
	}
	l.trim()
	return nil
}

// kubectlDelete lists what a delete would find.
func (l *look) kubectlDelete(ctx context.Context) error {
	options, words := l.sort(kubectlValued)
	if slices.Contains(values(options, "-f", "--filename"), "-") {
		return errors.New("it reads what to delete from its standard input")
	}
	if len(values(options, "--raw")) > 0 {
		return errors.New("it names an address of the cluster")
	}
	args := append(slices.Clone(l.global), "get")
	args = append(args, words...)
	args = append(args, keep(options, "-f", "--filename", "-k", "--kustomize", "-R", "--recursive", "-l", "--selector", "--field-selector", "-A", "--all-namespaces")...)
	out, _, err := l.ask(ctx, append(args, "--ignore-not-found", "-o", "name")...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			l.note("destroy", line)
		}
	}
	l.trim()
	return nil
}
