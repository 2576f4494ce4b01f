package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/runtime/config"
)

// valueFlags are the flags, beside those of the settings, whose next argument is
// their value.
var valueFlags = []string{"-p", "--prompt", "-m", "--message", "--record", "--replay", "--rubric", "--junit", "--timeout", "--cwd"}

// joinSandbox makes the optional value of --sandbox plain before the flags are
// parsed: `--sandbox modal` becomes `--sandbox=modal`, and a bare `--sandbox` is
// taken out and remembered.
func (a *app) joinSandbox(args []string) ([]string, error) {
	takes := slices.Clone(valueFlags)
	for _, k := range config.Keys() {
		if k.Flag != "" && k.Flag != "sandbox" && k.Kind != config.Bool {
			takes = append(takes, "--"+k.Flag)
		}
	}
	known := a.providers.Names()
	var out []string
	given := ""
	seen := false
	take := func(name string) error {
		if seen && name != given {
			return &config.Error{Text: fmt.Sprintf("--sandbox is given twice: %q and %q", given, name)}
		}
		given, seen = name, true
		return nil
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return append(out, args[i:]...), nil
		case slices.Contains(takes, arg), promptLast(arg):
			out = append(out, arg)
			if i+1 < len(args) {
				i++
				out = append(out, args[i])
			}
		case arg == "-r", arg == "--resume": // its value is optional too
			id := lastThread
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				id = args[i]
			}
			out = append(out, "--resume="+id)
		case strings.HasPrefix(arg, "--sandbox="):
			name := strings.TrimPrefix(arg, "--sandbox=")
			if strings.TrimSpace(name) == "" {
				return nil, &config.Error{Text: `--sandbox is given but empty. Use "local" to run on this computer, or leave it out.`}
			}
			if err := take(name); err != nil {
				return nil, err
			}
			out = append(out, arg)
		case arg == "--sandbox":
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "-") {
				if err := take(""); err != nil {
					return nil, err
				}
				a.bare = true
				continue
			}
			i++
			name := strings.ToLower(strings.TrimSpace(args[i]))
			if !slices.Contains(known, name) && !a.isCustom(name) {
				return nil, config.Unknown(args[i], known, "--sandbox", a.home)
			}
			if err := take(name); err != nil {
				return nil, err
			}
			out = append(out, "--sandbox="+name)
		default:
			out = append(out, arg)
		}
	}
	return out, nil
}

// promptLast reports whether arg is a group of short flags that ends with -p, as in
// -yp, so that the next argument is the prompt.
func promptLast(arg string) bool {
	group, short := strings.CutPrefix(arg, "-")
	return short && strings.HasSuffix(group, "p") && strings.Trim(group, "yqhvp") == "" && strings.Index(group, "p") == len(group)-1
}
