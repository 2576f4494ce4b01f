package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/term"
)

// A desk is a user's home and a project, and talkops run in it.
type desk struct {
	t       *testing.T
	home    string
	project string
	env     map[string]string
}

func newDesk(t *testing.T) *desk {
	dir := t.TempDir()
	d := &desk{t: t, home: filepath.Join(dir, "home", ".talkops"), project: filepath.Join(dir, "shop"), env: map[string]string{}}
	d.write("../shop/.talkops/keep", "")
	return d
}

// write makes a file; a name is relative to the project.
func (d *desk) write(name, text string) {
	d.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.project, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// run executes one command line without a terminal.
func (d *desk) run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := &app{
		streams: &term.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, ErrWidth: 80},
		env:     func(name string) (string, bool) { v, set := d.env[name]; return v, set },
		dir:     d.project, userHome: filepath.Dir(d.home), home: d.home, providers: builtin(),
	}
	status = a.run(d.t.Context(), args)
	return status, out.String(), errs.String()
}

// Every setting that cannot hold is found before anything starts. The message
// names the value and where it comes from, and ends with the exit status.
func TestWhatCannotHoldIsRefused(t *testing.T) {
	const run = "-p x"
	for _, row := range []struct {
		name, args    string
		env           string // NAME=value, separated by blanks
		user, project string
		status        int
		says          []string
	}{
		{name: "an empty provider flag", args: "--sandbox= -p x", status: 2, says: []string{"--sandbox is given but empty", `"local"`}},
		{name: "an empty provider variable", args: run, env: "TALKOPS_SANDBOX_PROVIDER=", status: 2, says: []string{"TALKOPS_SANDBOX_PROVIDER is set but empty"}},
		{name: "an empty alias", args: run, env: "SANDBOX_PROVIDER=", user: "[sandboxes]\ndefault = 'daytona'\n", status: 2, says: []string{"SANDBOX_PROVIDER is set but empty"}},
		{name: "an empty provider in the file", args: run, user: "[sandboxes]\ndefault = ''\n", status: 2, says: []string{"config.toml:2 is set but empty"}},
		{name: "no boolean", args: run, env: "TALKOPS_SANDBOX_REQUIRE=maybe", status: 2, says: []string{`TALKOPS_SANDBOX_REQUIRE: "maybe"`, "true or false"}},
		{name: "no boolean for trust", args: run, env: "TALKOPS_TRUST_PROJECT=maybe", status: 2, says: []string{`TALKOPS_TRUST_PROJECT: "maybe"`}},
		{name: "a duration out of range", args: run, env: "TALKOPS_SANDBOX_CREATE_TIMEOUT=0s", status: 2, says: []string{"TALKOPS_SANDBOX_CREATE_TIMEOUT: 0s is out of range", "86400"}},
		{name: "a duration without a unit", args: "-p x --timeout 10", status: 2, says: []string{`--timeout: "10" is not a duration`, "10m"}},
		{name: "a number out of range in the file", args: run, user: "[rubric]\nmax_iterations = 21\n", status: 2, says: []string{"config.toml:2: rubric.max_iterations: 21 is out of range: 1 to 20"}},
		{name: "a negative limit", args: "-p x --max-cost-usd -1", status: 2, says: []string{"--max-cost-usd: -1 is out of range"}},
		{name: "an unknown word", args: run, env: "TALKOPS_APPROVAL_MODE=wild", status: 2, says: []string{`TALKOPS_APPROVAL_MODE: "wild" is not one of: plan, manual, smart, yolo`}},
		{name: "a list that is none", args: run, user: "[sync]\nexclude = 'x'\n", status: 2, says: []string{"config.toml:2: sync.exclude", "a list of strings"}},
		{name: "a list of other things", args: run, user: "[sync]\nexclude = ['x', 2]\n", status: 2, says: []string{"item 2 is not a string"}},
		{name: "a misspelling in sandboxes", args: run, user: "[sandboxes]\ndefualt = 'daytona'\n", status: 2, says: []string{"config.toml:2: unknown key sandboxes.defualt; did you mean sandboxes.default?"}},
		{name: "a misspelling in approval", args: run, user: "[approval]\ndney = ['x']\n", status: 2, says: []string{"unknown key approval.dney; did you mean approval.deny?"}},
		{name: "a misspelling in sync", args: run, user: "[sync]\nexlude = ['x']\n", status: 2, says: []string{"unknown key sync.exlude; did you mean sync.exclude?"}},
		{name: "a broken file", args: run, user: "[sandboxes]\ndefault = 'local'\nx = [\n", status: 2, says: []string{"config.toml:", "exit 2"}},
		{name: "a word that means no provider", args: "--sandbox=none -p x", status: 2, says: []string{`Unknown sandbox "none"`, "Known: local, modal"}},
		{name: "another word that means none", args: run, env: "TALKOPS_SANDBOX_PROVIDER=off", status: 2, says: []string{`Unknown sandbox "off" (TALKOPS_SANDBOX_PROVIDER)`}},
		{name: "a misspelt provider", args: "--sandbox modla -p x", status: 2, says: []string{`Unknown sandbox "modla" (--sandbox)`, "Did you mean modal?", ".wasm"}},
		{name: "an unknown provider of another program's variable", args: run, env: "SANDBOX_PROVIDER=docker", status: 2, says: []string{`SANDBOX_PROVIDER is set to "docker"`, "TALKOPS_SANDBOX_PROVIDER or --sandbox"}},
		{name: "an unknown provider in the file", args: run, user: "[sandboxes]\nprovider = 'docker'\n", status: 2, says: []string{`Unknown sandbox "docker"`, "config.toml:2"}},
		{name: "two spellings that contradict", args: run, user: "[sandboxes]\ndefault = 'modal'\nprovider = 'daytona'\n", status: 2, says: []string{"(line 2)", "(line 3)", "contradict"}},
		{name: "an id and no sandbox", args: "-p x --sandbox-id sb-1", status: 2, says: []string{"--sandbox-id needs a sandbox", "talkops config set sandbox.provider"}},
		{name: "an id in the environment and no sandbox", args: run, env: "TALKOPS_SANDBOX_ID=sb-1", status: 2, says: []string{"TALKOPS_SANDBOX_ID needs a sandbox"}},
		{name: "an id in the file and no sandbox", args: run, user: "[sandboxes]\nsandbox_id = 'sb-1'\n", status: 2, says: []string{"config.toml:2 needs a sandbox"}},
		{name: "a Python class", args: run, user: "[sandboxes.providers.acme]\nbackend = 'acme.backend:Acme'\n", status: 2, says: []string{`"acme.backend:Acme" names a Python class`, ".wasm"}},
		{name: "providers that are no table", args: run, user: "[sandboxes]\nproviders = 3\n", status: 2, says: []string{"config.toml:2: sandboxes.providers must be a table"}},
		{name: "a provider that is no table", args: run, user: "[sandboxes.providers]\nacme = 3\n", status: 2, says: []string{"config.toml:2: sandboxes.providers.acme must be a table"}},
		{name: "a relative working directory", args: run, user: "[sandboxes.providers.daytona]\nworking_dir = 'x'\n", status: 2, says: []string{`config.toml:2: working_dir "x" must be an absolute path`}},
		{name: "no key", args: "--sandbox daytona -p x", status: 2, says: []string{"Daytona", `export DAYTONA_API_KEY`, "Nothing was started"}},
		{name: "no profile", args: "--sandbox modal -p x", status: 2, says: []string{"not signed in to Modal", "modal setup"}},
		{name: "half a pair of keys", args: "--sandbox modal -p x", env: "MODAL_TOKEN_ID=ak-1", status: 2, says: []string{"there is a token id but no token secret (MODAL_TOKEN_SECRET)"}},
		{name: "a key that is switched off", args: "--sandbox daytona -p x", env: "DAYTONA_API_KEY=k TALKOPS_DAYTONA_API_KEY=", status: 2, says: []string{"Daytona is not signed in"}},
		{name: "an endpoint without encryption", args: "--sandbox daytona -p x", env: "DAYTONA_API_KEY=k DAYTONA_API_URL=http://example.com", status: 2, says: []string{"DAYTONA_API_URL", "https"}},
		{name: "an unknown word after --sandbox is no prompt", args: "--sandbox fix", status: 2, says: []string{`Unknown sandbox "fix"`}},
		{name: "--sandbox twice", args: "--sandbox modal --sandbox=daytona -p x", status: 2, says: []string{`--sandbox is given twice: "modal" and "daytona"`}},
		{name: "bare --sandbox without a default", args: "--sandbox -p x", status: 2, says: []string{"none is set", "talkops --sandbox modal", "talkops config set sandbox.provider modal"}},
		{name: "bare --sandbox and local", args: "--sandbox -p x", user: "[sandboxes]\ndefault = 'local'\n", status: 2, says: []string{`which is "local" (user file`}},
		{name: "an id and a snapshot", args: "--sandbox langsmith --sandbox-id a --sandbox-snapshot-name b -p x", status: 2, says: []string{"Use only one"}},
		{name: "a snapshot where there are none", args: "--sandbox agentcore --sandbox-snapshot-name a -p x", status: 2, says: []string{"agentcore does not use named snapshots"}},
		{name: "setup and no sandbox", args: "--sandbox-setup s.sh -p x", status: 2, says: []string{"this run is local. Nothing was executed"}},
		{name: "a setup script that is not there", args: "--sandbox daytona --sandbox-setup ./s.sh -p x", status: 2, says: []string{"setup script not found: ./s.sh", "looked in"}},
		{name: "a setup script that is a directory", args: "--sandbox daytona --sandbox-setup .talkops -p x", status: 2, says: []string{"setup script .talkops (from flag --sandbox-setup) is not a regular file"}},
		{name: "a setup script that is empty", args: "--sandbox daytona --sandbox-setup .talkops/keep -p x", status: 2, says: []string{"is empty"}},
		{name: "keeping and no sandbox", args: "--keep-sandbox -p x", status: 2, says: []string{"no sandbox to keep"}},
		{name: "two approval modes", args: "--smart --yolo -p x", status: 2, says: []string{"choose one approval mode"}},
		{name: "an option of grading without grading", args: "--rubric-model a:b -p x", status: 2, says: []string{"--rubric-model needs --rubric"}},
		{name: "an empty rubric", args: "--rubric= -p x", status: 2, says: []string{"the rubric is empty"}},
		{name: "a rubric file that is not there", args: "--rubric @missing -p x", status: 2, says: []string{"rubric file not found: missing"}},
		{name: "an empty prompt", args: "--prompt=", status: 2, says: []string{"the prompt is empty"}},
		{name: "no prompt at all", args: "-q", status: 2, says: []string{"no prompt: give one with -p or on stdin"}},
		{name: "trusted and ignored", args: "--trust-project --ignore-project-config -p x", status: 2, says: []string{"choose one"}},
		{name: "a sandbox is demanded", args: run, user: "[sandboxes]\nrequire = true\n", status: 2, says: []string{"a sandbox is demanded (user file", "config.toml:2", "--sandbox <provider>"}},
		{name: "a project demands a sandbox", args: run, project: "[sandboxes]\nrequire = true\n", status: 2, says: []string{"a sandbox is demanded (project file"}},
		{name: "a broken project file", args: run, project: "[sandboxes\n", status: 9, says: []string{"config.toml:1:", "--ignore-project-config", "exit 9"}},
		{name: "a broken project file that is trusted", args: "--trust-project -p x", project: "[sandboxes\n", status: 2, says: []string{"config.toml:1:", "exit 2"}},
		{name: "a broken project file that is ignored", args: "--ignore-project-config -p x", project: "[sandboxes\n", status: 2, says: []string{"no model to talk to"}},
		{name: "a project that chooses the sandbox", args: run, project: "[sandboxes]\ndefault = 'modal'\n", status: 9, says: []string{`would: use sandbox "modal"`, "--trust-project", "--ignore-project-config", "talkops trust add"}},
		{name: "a project that switches the sandbox off", args: run, project: "[sandboxes]\ndefault = 'local'\n", user: "[sandboxes]\ndefault = 'modal'\n", status: 9, says: []string{`would: use sandbox "local"`}},
		{name: "a project's value that is overridden", args: "--sandbox local -p x", project: "[sandboxes]\ndefault = 'modal'\n", status: 2, says: []string{"sandbox.provider is ignored: the project is not trusted", "no model to talk to"}},
		{name: "a project's misspelling", args: run, project: "[sandboxes]\ndefualt = 'modal'\n", status: 9, says: []string{"did you mean sandboxes.default?"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			for _, kv := range strings.Fields(row.env) {
				name, value, _ := strings.Cut(kv, "=")
				d.env[name] = value
			}
			if row.user != "" {
				d.write(filepath.Join(d.home, "config.toml"), row.user)
			}
			if row.project != "" {
				d.write(".talkops/config.toml", row.project)
			}
			status, stdout, stderr := d.run(strings.Fields(row.args)...)
			if status != row.status || stdout != "" {
				t.Errorf("exit %d, want %d; stdout %q, want none; stderr:\n%s", status, row.status, stdout, stderr)
			}
			for _, want := range append(row.says, "(exit "+strconv.Itoa(row.status)+")") {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr does not say %q:\n%s", want, stderr)
				}
			}
			if strings.Contains(stderr, "goroutine") || !strings.Contains(stderr, "talkops: ") {
				t.Errorf("stderr is no message:\n%s", stderr)
			}
		})
	}
}

// What the command line says about the sandbox, and what becomes of it.
func TestTheSandboxFlagOnTheCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"config get sandbox.provider":                                              "modal",
		"--sandbox daytona config get sandbox.provider":                            "daytona",
		"--sandbox=Daytona config get sandbox.provider":                            "daytona",
		"config get sandbox.provider --sandbox":                                    "modal",
		"config get sandbox.provider --sandbox local":                              "local",
		"config get sandbox.provider --sandbox LOCAL":                              "local",
		"config get sandbox.id --sandbox-id daytona":                               "daytona",
		"config get sandbox.snapshot_name --sandbox modal":                         "",
		"config get sandbox.env --sandbox-env A":                                   "A",
		"config get sandbox.env --sandbox-env A --sandbox daytona --sandbox-env B": "A,B",
		"config get sandboxes.default":                                             "modal",
		"config get sandboxes.provider":                                            "modal",
	} {
		t.Run(args, func(t *testing.T) {
			d := newDesk(t)
			d.write(filepath.Join(d.home, "config.toml"), "[sandboxes]\nprovider = 'modal'\n")
			d.env["SANDBOX_ID"], d.env["SANDBOX_IMAGE"] = "stray", "stray"
			status, stdout, stderr := d.run(strings.Fields(args)...)
			if status != 0 || stdout != want+"\n" {
				t.Errorf("exit %d, stdout %q, want %q; stderr:\n%s", status, stdout, want, stderr)
			}
		})
	}
}

// The value of another flag is never taken for --sandbox, or the other way round.
func TestJoinSandboxLeavesOtherFlagsAlone(t *testing.T) {
	for in, want := range map[string]string{
		"-p --sandbox modal":              "-p --sandbox modal",
		"-yp --sandbox modal":             "-yp --sandbox modal",
		"--prompt --sandbox":              "--prompt --sandbox",
		"--rubric --sandbox --sandbox":    "--rubric --sandbox",
		"--model --sandbox x":             "--model --sandbox x",
		"--sandbox modal -p x":            "--sandbox=modal -p x",
		"--sandbox Modal":                 "--sandbox=modal",
		"--sandbox -p x":                  "-p x",
		"-y --sandbox modal":              "-y --sandbox=modal",
		"--sandbox-id modal --sandbox":    "--sandbox-id modal",
		"sandbox exec -- --sandbox modal": "sandbox exec -- --sandbox modal",
		"--sandbox modal --sandbox=modal": "--sandbox=modal --sandbox=modal",
	} {
		a := &app{providers: builtin()}
		got, err := a.joinSandbox(strings.Fields(in))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, %v; want %q", in, got, err, want)
		}
	}
}

// What is allowed only makes a run stricter, or changes nothing.
func TestAnUntrustedProjectOnlyNarrows(t *testing.T) {
	d := newDesk(t)
	d.write(filepath.Join(d.home, "config.toml"), "[sandboxes]\ndefault = 'modal'\n[approval]\ndeny = ['a']\nmode = 'smart'\n[run]\nmax_turns = 20\n")
	d.write(".talkops/config.toml", `[sandboxes]
default = "modal"
sync_workspace = false
sandbox_id = "sb-1"
require = true
idle_timeout = "5m"
max_lifetime = "24h"
[sync]
gitignore = true
max_file_bytes = 10
max_total_bytes = 99999999999
[approval]
mode = "manual"
deny = ["b"]
environment = "production"
[run]
max_turns = 30
[tools]
exec_timeout = "1m"
[looks]
x = 1
`)
	for key, want := range map[string]string{
		"sandbox.provider": "modal", "sandbox.sync_workspace": "false", "sandbox.id": "", "sandbox.require": "true",
		"sandbox.idle_timeout": "5m0s", "sandbox.max_lifetime": "4h0m0s", "sync.max_file_bytes": "10", "sync.max_total_bytes": "2147483648",
		"approval.mode": "manual", "approval.deny": "a,b", "approval.environment": "production", "run.max_turns": "20", "tools.exec_timeout": "1m0s",
	} {
		if status, stdout, stderr := d.run("config", "get", key); status != 0 || stdout != want+"\n" {
			t.Errorf("%s is %q, exit %d, want %q; stderr:\n%s", key, stdout, status, want, stderr)
		}
	}
	_, _, stderr := d.run("config", "show")
	for _, want := range []string{
		"config.toml:4: sandbox.id is yours to set, not a project's; ignored",
		"config.toml:7: a project may only make sandbox.max_lifetime stricter; ignored",
		"config.toml:2: sandbox.provider is ignored: the project is not trusted",
		"config.toml:20: unknown key looks",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr does not say %q:\n%s", want, stderr)
		}
	}
}

// A snapshot that was not asked for on the command line does not keep a provider
// without snapshots from being used; it is told.
func TestASnapshotOfTheEnvironmentIsToldWhereItDoesNotCount(t *testing.T) {
	d := newDesk(t)
	d.env = map[string]string{
		"TALKOPS_SANDBOX_SNAPSHOT": "base", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-1",
		"AWS_EC2_METADATA_DISABLED": "true", "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
		"AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": "http://127.0.0.1:9", "TALKOPS_SANDBOX_CREATE_TIMEOUT": "2s",
	}
	status, _, stderr := d.run("--sandbox", "agentcore", "--model", "openai:gpt-5.1", "-p", "x")
	if want := "agentcore does not use named snapshots; sandbox.snapshot_name (environment TALKOPS_SANDBOX_SNAPSHOT) is ignored"; status != exitSandbox || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, want %d; stderr does not say %q:\n%s", status, exitSandbox, want, stderr)
	}
}
