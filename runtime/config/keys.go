package config

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Scope says how far a project's own file may set a key.
type Scope int

// The scopes. "Free" ones hold even before the project is trusted.
const (
	ScopeUser         Scope = iota // never from a project file
	ScopeTrust                     // once the project is trusted
	ScopeFree                      // always
	ScopeFreeTrue                  // free to set true, otherwise the user's
	ScopeFreeFalse                 // free to set false, trust to set true
	ScopeFreeLower                 // free to lower, otherwise the user's
	ScopeFreeStricter              // free to choose an earlier one of Enum, otherwise the user's
)

// A Kind is the type of a setting's value.
type Kind int

// The kinds, with the Go type a value has.
const (
	String   Kind = iota // string
	Bool                 // bool
	Int                  // int64
	Number               // float64
	Duration             // time.Duration
	List                 // []string
)

// A Key declares one setting. The table below is the only place where one is
// declared; flags, environment, files, documentation and checks follow from it.
type Key struct {
	Name    string   // "sandbox.provider"
	Paths   []string // where it stands in a file; the first is what `config set` writes
	Env     []string // environment variables, the first wins
	Flag    string   // long flag without dashes; empty: none
	Kind    Kind
	Default any // nil: none
	Scope   Scope
	Enum    []string
	Min     float64 // of Int, Number, and Duration in seconds
	Max     float64 // 0: no limit
	Joins   bool    // lists of all layers together
	Help    string
}

// Keys lists every setting.
func Keys() []Key {
	const day = 24 * 3600
	return []Key{
		{Name: "sandbox.provider", Paths: []string{"sandboxes.default", "sandboxes.provider"}, Env: []string{"TALKOPS_SANDBOX_PROVIDER", "SANDBOX_PROVIDER"}, Flag: "sandbox", Default: "local", Scope: ScopeTrust, Help: "which sandbox is used"},
		{Name: "sandbox.id", Paths: []string{"sandboxes.sandbox_id"}, Env: []string{"TALKOPS_SANDBOX_ID"}, Flag: "sandbox-id", Scope: ScopeUser, Help: "attach to this running sandbox and leave it running"},
		{Name: "sandbox.snapshot_name", Paths: []string{"sandboxes.snapshot_name"}, Env: []string{"TALKOPS_SANDBOX_SNAPSHOT"}, Flag: "sandbox-snapshot-name", Scope: ScopeTrust, Help: "start from this snapshot, where the provider has them"},
		{Name: "sandbox.setup_script_path", Paths: []string{"sandboxes.setup_script_path"}, Env: []string{"TALKOPS_SANDBOX_SETUP_SCRIPT"}, Flag: "sandbox-setup", Scope: ScopeTrust, Help: "script that runs in the sandbox right after it starts"},
		{Name: "sandbox.sync_workspace", Paths: []string{"sandboxes.sync_workspace"}, Env: []string{"TALKOPS_SANDBOX_SYNC_WORKSPACE"}, Kind: Bool, Default: true, Scope: ScopeFreeFalse, Help: "upload the project when a session starts"},
		{Name: "sandbox.image", Paths: []string{"sandboxes.image"}, Env: []string{"TALKOPS_SANDBOX_IMAGE"}, Scope: ScopeTrust, Help: "base image, where the provider takes one"},
		{Name: "sandbox.create_timeout", Paths: []string{"sandboxes.create_timeout"}, Env: []string{"TALKOPS_SANDBOX_CREATE_TIMEOUT"}, Kind: Duration, Default: 180 * time.Second, Min: 1, Max: day, Scope: ScopeUser, Help: "time a sandbox has to become ready"},
		{Name: "sandbox.setup_timeout", Paths: []string{"sandboxes.setup_timeout"}, Env: []string{"TALKOPS_SANDBOX_SETUP_TIMEOUT"}, Kind: Duration, Default: 30 * time.Minute, Min: 1, Max: day, Scope: ScopeTrust, Help: "time for the setup script"},
		{Name: "sandbox.max_lifetime", Paths: []string{"sandboxes.max_lifetime"}, Env: []string{"TALKOPS_SANDBOX_MAX_LIFETIME"}, Kind: Duration, Default: 4 * time.Hour, Min: 60, Max: 7 * day, Scope: ScopeFreeLower, Help: "the vendor ends a sandbox of ours after this"},
		{Name: "sandbox.idle_timeout", Paths: []string{"sandboxes.idle_timeout"}, Env: []string{"TALKOPS_SANDBOX_IDLE_TIMEOUT"}, Kind: Duration, Default: 30 * time.Minute, Min: 60, Max: 7 * day, Scope: ScopeFreeLower, Help: "the vendor ends a sandbox of ours unused this long"},
		{Name: "sandbox.warm", Paths: []string{"sandboxes.warm"}, Env: []string{"TALKOPS_SANDBOX_WARM"}, Kind: Bool, Default: false, Scope: ScopeTrust, Help: "keep the state after the setup script as a snapshot, and start from it the next time"},
		{Name: "sandbox.env", Paths: []string{"sandboxes.env"}, Env: []string{"TALKOPS_SANDBOX_ENV"}, Flag: "sandbox-env", Kind: List, Scope: ScopeTrust, Help: "names of variables passed into the sandbox"},
		{Name: "sandbox.export", Paths: []string{"sandboxes.export"}, Env: []string{"TALKOPS_SANDBOX_EXPORT"}, Flag: "sandbox-export", Default: "ask", Scope: ScopeUser, Help: "what becomes of the work at the end: ask (without a person: patch), patch or patch:FILE, branch:NAME, apply, none"},
		{Name: "sandbox.keep", Paths: []string{"sandboxes.keep"}, Flag: "keep-sandbox", Kind: Bool, Default: false, Scope: ScopeUser, Help: "do not delete a fresh sandbox on exit"},
		{Name: "sandbox.require", Paths: []string{"sandboxes.require"}, Env: []string{"TALKOPS_SANDBOX_REQUIRE"}, Kind: Bool, Default: false, Scope: ScopeFreeTrue, Help: "refuse to run on this computer"},
		{Name: "sync.include", Paths: []string{"sync.include"}, Kind: List, Scope: ScopeTrust, Help: "take back what the skip list drops"},
		{Name: "sync.exclude", Paths: []string{"sync.exclude"}, Kind: List, Scope: ScopeFree, Joins: true, Help: "skip more"},
		{Name: "sync.gitignore", Paths: []string{"sync.gitignore"}, Env: []string{"TALKOPS_SYNC_GITIGNORE"}, Kind: Bool, Default: true, Scope: ScopeFreeTrue, Help: "also skip what git ignores"},
		{Name: "sync.max_file_bytes", Paths: []string{"sync.max_file_bytes"}, Kind: Int, Default: int64(10 << 20), Min: 1, Scope: ScopeFreeLower, Help: "larger files are skipped"},
		{Name: "sync.max_total_bytes", Paths: []string{"sync.max_total_bytes"}, Kind: Int, Default: int64(2 << 30), Min: 1, Scope: ScopeFreeLower, Help: "a larger upload is refused"},
		{Name: "sync.max_return_bytes", Paths: []string{"sync.max_return_bytes"}, Env: []string{"TALKOPS_SYNC_MAX_RETURN_BYTES"}, Kind: Int, Default: int64(8 << 30), Min: 1, Scope: ScopeUser, Help: "more than this altogether does not come home from a sandbox, which is left running then"},
		{Name: "sync.allow_secrets", Paths: []string{"sync.allow_secrets"}, Kind: List, Scope: ScopeUser, Help: "exact exceptions from the secret filter"},
		{Name: "saved.max_age", Paths: []string{"saved.max_age"}, Kind: Duration, Default: 30 * 24 * time.Hour, Min: 60, Scope: ScopeUser, Help: "work of runs that was applied, exported or pulled is removed from this computer's record after this"},
		{Name: "saved.max_bytes", Paths: []string{"saved.max_bytes"}, Kind: Int, Default: int64(5 << 30), Min: 1, Scope: ScopeUser, Help: "and, the oldest first, while it is more than this altogether"},
		{Name: "threads.max_age", Paths: []string{"threads.max_age"}, Kind: Duration, Default: 180 * 24 * time.Hour, Min: 60, Scope: ScopeUser, Help: "kept conversations that nobody went on with for this long are removed when a chat begins"},
		{Name: "tools.exec_timeout", Paths: []string{"tools.exec_timeout"}, Env: []string{"TALKOPS_EXEC_TIMEOUT"}, Kind: Duration, Default: 10 * time.Minute, Min: 1, Max: day, Scope: ScopeFreeLower, Help: "deadline of a command when the model gives none"},
		{Name: "tools.exec_timeout_max", Paths: []string{"tools.exec_timeout_max"}, Kind: Duration, Default: time.Hour, Min: 1, Max: day, Scope: ScopeFreeLower, Help: "most the model may ask for"},
		{Name: "tools.output_bytes", Paths: []string{"tools.output_bytes"}, Kind: Int, Default: int64(40000), Min: 1000, Max: 1 << 20, Scope: ScopeFree, Help: "command output shown to the model, per stream"},
		{Name: "web.search_provider", Paths: []string{"web.search_provider"}, Env: []string{"TALKOPS_WEB_SEARCH_PROVIDER"}, Enum: []string{"brave", "tavily", "searxng"}, Scope: ScopeUser, Help: "what web_search asks; else the first that has its key or address"},
		{Name: "web.searxng_url", Paths: []string{"web.searxng_url"}, Env: []string{"TALKOPS_WEB_SEARXNG_URL"}, Scope: ScopeUser, Help: "address of your SearXNG, with its JSON format switched on"},
		{Name: "web.allow_hosts", Paths: []string{"web.allow_hosts"}, Kind: List, Scope: ScopeUser, Help: "hosts the web tools may reach without a question, as acme.com or *.acme.com"},
		{Name: "model.default", Paths: []string{"model.default"}, Env: []string{"TALKOPS_MODEL"}, Flag: "model", Scope: ScopeTrust, Help: "the model, as provider:name"},
		{Name: "run.max_turns", Paths: []string{"run.max_turns"}, Env: []string{"TALKOPS_MAX_TURNS"}, Flag: "max-turns", Kind: Int, Default: int64(50), Min: 1, Max: 100000, Scope: ScopeFreeLower, Help: "model calls per run"},
		{Name: "run.timeout", Paths: []string{"run.timeout"}, Env: []string{"TALKOPS_TIMEOUT"}, Flag: "timeout", Kind: Duration, Min: 1, Scope: ScopeFreeLower, Help: "wall clock of a headless run"},
		{Name: "run.max_cost_usd", Paths: []string{"run.max_cost_usd"}, Env: []string{"TALKOPS_MAX_COST_USD"}, Flag: "max-cost-usd", Kind: Number, Min: 0, Scope: ScopeFreeLower, Help: "the run stops before it costs more"},
		{Name: "run.output", Paths: []string{"run.output"}, Flag: "output", Default: "text", Enum: []string{"text", "json", "stream-json"}, Scope: ScopeUser, Help: "form of a headless run's output"},
		{Name: "rubric.max_iterations", Paths: []string{"rubric.max_iterations"}, Env: []string{"TALKOPS_RUBRIC_MAX_ITERATIONS"}, Flag: "rubric-max-iterations", Kind: Int, Default: int64(3), Min: 1, Max: 20, Scope: ScopeFreeLower, Help: "gradings of a run with --rubric"},
		{Name: "rubric.model", Paths: []string{"rubric.model"}, Env: []string{"TALKOPS_RUBRIC_MODEL"}, Flag: "rubric-model", Scope: ScopeTrust, Help: "the model that grades, as provider:name; else the run's own"},
		{Name: "ui.theme", Paths: []string{"ui.theme"}, Env: []string{"TALKOPS_THEME"}, Default: "auto", Enum: []string{"auto", "dark", "light", "none"}, Scope: ScopeFree, Help: "colours of the chat: auto follows the terminal's background; NO_COLOR has none"},
		{Name: "ui.plain", Paths: []string{"ui.plain"}, Env: []string{"TALKOPS_PLAIN"}, Kind: Bool, Default: false, Scope: ScopeFree, Help: "the chat prints lines and draws nothing again, for screen readers"},
		{Name: "ui.notify", Paths: []string{"ui.notify"}, Env: []string{"TALKOPS_NOTIFY"}, Default: "auto", Enum: []string{"auto", "osc9", "osc777", "bell", "off"}, Scope: ScopeFree, Help: "how the chat calls you when a question waits or a long turn ends while you look elsewhere"},
		{Name: "approval.mode", Paths: []string{"approval.mode"}, Env: []string{"TALKOPS_APPROVAL_MODE"}, Flag: "approval-mode", Enum: []string{"plan", "manual", "smart", "yolo"}, Scope: ScopeFreeStricter, Help: "who decides about tool calls"},
		{Name: "approval.allow", Paths: []string{"approval.allow"}, Flag: "allow", Kind: List, Scope: ScopeUser, Help: "never ask for calls of this rule, as in: terraform plan *"},
		{Name: "approval.ask", Paths: []string{"approval.ask"}, Kind: List, Scope: ScopeFree, Joins: true, Help: "always ask for calls of this rule"},
		{Name: "approval.deny", Paths: []string{"approval.deny"}, Flag: "deny", Kind: List, Scope: ScopeFree, Joins: true, Help: "never run calls of this rule"},
		{Name: "approval.model", Paths: []string{"approval.model"}, Env: []string{"TALKOPS_APPROVAL_MODEL"}, Scope: ScopeUser, Help: "with --smart on this computer, a model that is asked about programs the rules do not know, as provider:name"},
		{Name: "approval.environment", Paths: []string{"approval.environment"}, Env: []string{"TALKOPS_ENV"}, Enum: []string{"production", "development"}, Scope: ScopeFreeStricter, Help: "what the commands act on; production makes --smart stricter"},
		{Name: "approval.production", Paths: []string{"approval.production"}, Kind: List, Default: []string{"prod", "prod-*", "*-prod", "*production*"}, Scope: ScopeFree, Joins: true, Help: "names of clusters, contexts, profiles and workspaces that are production"},
	}
}

// Lookup finds a key by its name or by a path in the file.
func Lookup(name string) (Key, bool) {
	for _, k := range Keys() {
		if k.Name == name {
			return k, true
		}
		for _, p := range k.Paths {
			if p == name {
				return k, true
			}
		}
	}
	for _, pattern := range TableKeys() {
		for _, spelling := range append([]string{pattern.Name}, pattern.Paths...) {
			before, after, _ := strings.Cut(spelling, "<name>")
			n, ok := strings.CutPrefix(name, before)
			if !ok {
				continue
			}
			if n, ok = strings.CutSuffix(n, after); ok && plainName(n) {
				return pattern.of(n), true
			}
		}
	}
	return Key{}, false
}

// TableKeys lists the settings that exist once for each name in a table, which
// stands as <name> in Name and Paths.
func TableKeys() []Key {
	const day = 24 * 3600
	return []Key{
		{Name: "sandbox.providers.<name>.backend", Paths: []string{"sandboxes.providers.<name>.backend"}, Scope: ScopeTrust, Help: "the .wasm file of a provider of your own"},
		{Name: "sandbox.providers.<name>.working_dir", Paths: []string{"sandboxes.providers.<name>.working_dir"}, Scope: ScopeTrust, Help: "working directory in that provider's sandboxes"},
		{Name: "sandbox.providers.<name>.sha256", Paths: []string{"sandboxes.providers.<name>.sha256"}, Scope: ScopeTrust, Help: "what that file's bytes must be"},
		{Name: "sandbox.providers.<name>.allow_hosts", Paths: []string{"sandboxes.providers.<name>.allow_hosts"}, Kind: List, Scope: ScopeUser, Help: "hosts that module may reach"},
		{Name: "sandbox.providers.<name>.env", Paths: []string{"sandboxes.providers.<name>.env"}, Kind: List, Scope: ScopeUser, Help: "variables that module may be given"},
		{Name: "sandbox.providers.<name>.memory_mb", Paths: []string{"sandboxes.providers.<name>.memory_mb"}, Kind: Int, Min: 1, Max: 1024, Scope: ScopeUser, Help: "memory of that module; 64 if not set"},
		{Name: "sandbox.providers.<name>.limits.concurrency", Paths: []string{"sandboxes.providers.<name>.limits.concurrency"}, Kind: Int, Min: 1, Max: 16, Scope: ScopeUser, Help: "operations of that module at a time; 16 if not set"},
		{Name: "sandbox.providers.<name>.limits.compile_s", Paths: []string{"sandboxes.providers.<name>.limits.compile_s"}, Kind: Int, Min: 1, Max: 60, Scope: ScopeUser, Help: "seconds to prepare that module in; 60 if not set"},
		{Name: "sandbox.providers.<name>.limits.log_kb", Paths: []string{"sandboxes.providers.<name>.limits.log_kb"}, Kind: Int, Min: 1, Max: 1024, Scope: ScopeUser, Help: "log lines of one operation of that module; 64 if not set"},
		{Name: "sandbox.providers.<name>.limits.http_inline_kb", Paths: []string{"sandboxes.providers.<name>.limits.http_inline_kb"}, Kind: Int, Min: 1, Max: 512, Scope: ScopeUser, Help: "largest answer that module may read as text; 512 if not set"},
		{Name: "sandbox.providers.<name>.usd_per_hour", Paths: []string{"sandboxes.providers.<name>.usd_per_hour"}, Kind: Number, Min: 0, Max: 1000, Scope: ScopeUser, Help: "what one of that provider's sandboxes costs you an hour, for estimates; for built-in ones, instead of the list price"},
		{Name: "hooks.<name>.event", Paths: []string{"hooks.<name>.event"}, Enum: []string{"session_start", "before_tool", "after_tool", "session_end"}, Scope: ScopeTrust, Help: "when that program runs, on this computer"},
		{Name: "hooks.<name>.command", Paths: []string{"hooks.<name>.command"}, Kind: List, Scope: ScopeTrust, Help: "the program and its arguments, from the project's root"},
		{Name: "hooks.<name>.tools", Paths: []string{"hooks.<name>.tools"}, Kind: List, Scope: ScopeTrust, Help: "only around these tools"},
		{Name: "hooks.<name>.timeout", Paths: []string{"hooks.<name>.timeout"}, Kind: Duration, Default: 30 * time.Second, Min: 1, Max: day, Scope: ScopeTrust, Help: "time that program has"},
		{Name: "mcp.servers.<name>.command", Paths: []string{"mcp.servers.<name>.command"}, Kind: List, Scope: ScopeTrust, Help: "an MCP server that runs on this computer: the program and its arguments"},
		{Name: "mcp.servers.<name>.url", Paths: []string{"mcp.servers.<name>.url"}, Scope: ScopeTrust, Help: "address of an MCP server"},
		{Name: "mcp.servers.<name>.env", Paths: []string{"mcp.servers.<name>.env"}, Kind: List, Scope: ScopeTrust, Help: "variables that program is given beside the usual ones"},
		{Name: "mcp.servers.<name>.token_env", Paths: []string{"mcp.servers.<name>.token_env"}, Scope: ScopeUser, Help: "the variable that holds the token for that address"},
		{Name: "mcp.servers.<name>.allow", Paths: []string{"mcp.servers.<name>.allow"}, Kind: List, Scope: ScopeUser, Help: "tools of that server that need no question"},
		{Name: "mcp.servers.<name>.timeout", Paths: []string{"mcp.servers.<name>.timeout"}, Kind: Duration, Default: 60 * time.Second, Min: 1, Max: day, Scope: ScopeTrust, Help: "time for one answer of that server"},
		{Name: "model.providers.<name>.base_url", Paths: []string{"model.providers.<name>.base_url"}, Scope: ScopeUser, Help: "address of a model server that speaks chat completions"},
		{Name: "model.providers.<name>.api_key_env", Paths: []string{"model.providers.<name>.api_key_env"}, Scope: ScopeUser, Help: "the variable that holds its key"},
	}
}

// of is the setting for one name of the table.
func (k Key) of(name string) Key {
	k.Name = strings.Replace(k.Name, "<name>", name, 1)
	k.Paths = slices.Clone(k.Paths)
	for i := range k.Paths {
		k.Paths[i] = strings.Replace(k.Paths[i], "<name>", name, 1)
	}
	return k
}

// plainName reports whether a name needs no quotes in a file.
func plainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Parse reads a value as it is written on the command line or in the environment: a
// list as a,b or, where an item holds a comma, as ["a, b", "c"].
func (k Key) Parse(text string) (any, error) {
	switch k.Kind {
	case Bool:
		switch strings.ToLower(text) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, fmt.Errorf("%q is not a yes or no: use true or false", text)
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return k.check(n)
	case Number:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return k.check(f)
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration: use a form like 90s, 10m or 2h", text)
		}
		return k.check(d)
	case List:
		var list []string
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				return nil, fmt.Errorf(`%q is not a list: write a,b or ["a", "b"]`, text)
			}
			return list, nil
		}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	}
	return k.check(text)
}

// decode reads a value as TOML gave it.
func (k Key) decode(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if k.Kind == String || k.Kind == Duration {
			return k.Parse(v)
		}
	case bool:
		if k.Kind == Bool {
			return v, nil
		}
	case int64:
		switch k.Kind {
		case Int:
			return k.check(v)
		case Number:
			return k.check(float64(v))
		}
	case float64:
		if k.Kind == Number {
			return k.check(v)
		}
	case []any:
		if k.Kind == List {
			list := make([]string, len(v))
			for i, item := range v {
				s, ok := item.(string)
				if !ok {
					return nil, fmt.Errorf("item %d is not a string", i+1)
				}
				list[i] = s
			}
			return list, nil
		}
	}
	return nil, fmt.Errorf("%v is not %s", v, k.Kind)
}

func (k Kind) String() string {
	return [...]string{"a string", "a boolean", "a whole number", "a number", `a duration like "10m"`, "a list of strings"}[k]
}

// check holds v to the key's limits.
func (k Key) check(v any) (any, error) {
	var n float64
	unit := ""
	switch v := v.(type) {
	case string:
		if len(k.Enum) == 0 {
			return v, nil
		}
		for _, e := range k.Enum {
			if v == e {
				return v, nil
			}
		}
		return nil, fmt.Errorf("%q is not one of: %s", v, strings.Join(k.Enum, ", "))
	case int64:
		n = float64(v)
	case float64:
		n = v
	case time.Duration:
		n, unit = v.Seconds(), " seconds"
	}
	if n < k.Min || k.Max > 0 && n > k.Max {
		if k.Max > 0 {
			return nil, fmt.Errorf("%v is out of range: %v to %v%s", v, k.Min, k.Max, unit)
		}
		return nil, fmt.Errorf("%v is out of range: at least %v%s", v, k.Min, unit)
	}
	return v, nil
}

// Format writes v as it is shown, and as Parse takes it.
func Format(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		if slices.ContainsFunc(v, func(item string) bool {
			return item == "" || item != strings.TrimSpace(item) || strings.ContainsAny(item, ",[")
		}) {
			return formatList(v)
		}
		return strings.Join(v, ",")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// formatList writes a list some of whose items cannot stand between commas.
func formatList(list []string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(list); err != nil {
		return strings.Join(list, ",") // strings can always be encoded
	}
	return strings.TrimSpace(b.String())
}

// narrows reports whether an untrusted project may put v in place of old.
func (k Key) narrows(v, old any) bool {
	switch k.Scope {
	case ScopeFree:
		return true
	case ScopeFreeTrue:
		return v == true
	case ScopeFreeFalse:
		return v == false
	case ScopeFreeLower:
		return old == nil || less(v, old)
	case ScopeFreeStricter:
		// Without a choice of the user the mildest default would hold.
		now, _ := v.(string)
		before, _ := old.(string)
		at := slices.Index(k.Enum, now)
		return before == "" && at < len(k.Enum)-2 || before == "" && at == 0 || before != "" && at <= slices.Index(k.Enum, before)
	}
	return false
}

func less(a, b any) bool {
	switch a := a.(type) {
	case int64:
		return a <= b.(int64)
	case float64:
		return a <= b.(float64)
	case time.Duration:
		return a <= b.(time.Duration)
	}
	return false
}

// nearest returns the word closest to name if it is close enough to be meant.
func nearest(name string, words []string) string {
	best, at := "", 3
	if len(name) > 100 {
		return ""
	}
	for _, w := range words {
		if d := distance(name, w); d < at {
			best, at = w, d
		}
	}
	return best
}

// distance counts the edits, swaps of neighbours included, between a and b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// prefixes returns every key path and each of its parents' tables.
func tables() map[string]bool {
	t := map[string]bool{}
	for _, k := range Keys() {
		for _, p := range k.Paths {
			for d := path.Dir(strings.ReplaceAll(p, ".", "/")); d != "."; d = path.Dir(d) {
				t[strings.ReplaceAll(d, "/", ".")] = true
			}
		}
	}
	return t
}
