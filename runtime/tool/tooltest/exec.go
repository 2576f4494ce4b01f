package tooltest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// ran runs a command and checks its status and streams.
func (p *place) ran(command string, exit int, stdout, stderr string) tool.Result {
	p.Helper()
	p.stdout.Reset()
	p.stderr.Reset()
	r := p.call("execute", args{"command": command})
	if r.Code != "" || r.Exit != exit || p.stdout.String() != stdout || p.stderr.String() != stderr {
		p.Errorf("%.200s: got %q %d, stdout %.300q, stderr %.300q; want %d, %.300q, %.300q",
			command, r.Code, r.Exit, &p.stdout, &p.stderr, exit, stdout, stderr)
	}
	return r
}

// runs is a rule's test of one command.
func runs(command string, exit int, stdout, stderr string) func(*place) {
	return func(p *place) { p.ran(command, exit, stdout, stderr) }
}

// within checks how long f takes.
func (p *place) within(most time.Duration, f func()) {
	p.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > most {
		p.Errorf("took %v; want at most %v", took, most)
	}
}

// dead checks that the process whose id the file pid holds does not run. The
// dead that wait for their parent to notice do not run.
func (p *place) dead() {
	p.Helper()
	p.sh(`p=$(cat pid); ! kill -0 "$p" 2>/dev/null || grep -q ') [ZX]' "/proc/$p/stat"`)
}

var logName = regexp.MustCompile(`full log: (\S+?)\]`)

// log returns the name of the log that a result gives.
func (p *place) log(r tool.Result) string {
	p.Helper()
	m := logName.FindStringSubmatch(r.Text)
	if m == nil {
		p.Fatalf("no log is named in %.2000q", r.Text)
	}
	return m[1]
}

func timedOut(p *place, command string) tool.Result {
	p.Helper()
	r := p.call("execute", args{"command": command, "timeout": 1})
	if r.Code != sandbox.CodeTimeout || r.Exit != 124 || !strings.Contains(r.Text, "1s") {
		p.Errorf("got %q, %d, %q", r.Code, r.Exit, r.Text)
	}
	return r
}

// cancelled cancels a command when it has put out something.
func cancelled(p *place, command string) tool.Result {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	input := fmt.Sprintf(`{"command": %q}`, command)
	var once sync.Once
	var begin time.Time
	r, err := p.tools["execute"].Run(ctx, input, func(tool.Output) {
		once.Do(func() { begin = time.Now(); cancel() })
	})
	if !errors.Is(err, context.Canceled) || r.Code != sandbox.CodeCancelled || r.Exit != 130 {
		p.Errorf("got %v, %q, %d", err, r.Code, r.Exit)
	}
	if took := time.Since(begin); took > 7*time.Second {
		p.Errorf("took %v", took)
	}
	return r
}

var execRules = []rule{
	{name: "C16 output and status come back", run: runs("echo hi", 0, "hi\n", "")},
	{name: "C17 a status is not an error", run: runs("exit 3", 3, "", "")},
	{name: "C18 the streams are never merged", run: runs("printf out; printf err >&2", 0, "out", "err")},
	{name: "C19 a signal is 128 and its number", run: runs("kill -9 $$", 137, "", "")},
	{name: "C20 a missing program is 127", run: func(p *place) {
		r := p.call("execute", args{"command": "no-such-program-xyz"})
		if r.Exit != 127 || p.stderr.Len() == 0 {
			p.Errorf("got %d, %q", r.Exit, r.Text)
		}
	}},
	{name: "C21 a plain file is 126", run: func(p *place) {
		p.put("f", "echo x\n")
		if r := p.call("execute", args{"command": "./f"}); r.Exit != 126 {
			p.Errorf("got %d, %q", r.Exit, r.Text)
		}
	}},
	{name: "C22 quotes, variables, pipes and redirections are a shell's",
		run: runs(`A=x; echo 'a b' "$A" | tr a-z A-Z > o.txt; cat o.txt`, 0, "A B X\n", "")},
	{name: "C23 several lines run in order",
		run: runs("f() { echo \"f $1\"; }\ncat <<EOF\nhere\nEOF\nfor i in 1 2; do\n  f $i\ndone", 0, "here\nf 1\nf 2\n", "")},
	{name: "C24 a command of 200 KiB runs", run: func(p *place) {
		p.ran(strings.Repeat("# a comment that takes room\n", 7500)+"echo end; exit 4", 4, "end\n", "")
	}},
	{name: "C25 input is empty", run: runs("cat", 0, "", "")},
	{name: "C26 reading does not wait", run: runs(`read x; echo "[$x]"`, 0, "[]\n", "")},
	{name: "C27 a background process does not hold up", run: func(p *place) {
		p.within(2*time.Second, func() { p.ran("sleep 20 &", 0, "", "") })
	}},
	{name: "C28 late output is not awaited", run: func(p *place) {
		p.within(2*time.Second, func() { p.ran("(sleep 20; echo late) & echo now", 0, "now\n", "") })
	}},
	{name: "C29 nohup returns at once", run: func(p *place) {
		p.within(2*time.Second, func() { p.ok("execute", args{"command": "nohup sleep 20 >/dev/null 2>&1 & echo $!"}) })
	}},
	{name: "C30 C34 a command ends at its timeout and spoils nothing", run: func(p *place) {
		p.within(10*time.Second, func() { timedOut(p, "sleep 60") })
		p.ran("echo yes", 0, "yes\n", "")
	}},
	{name: "C31 output before the timeout is kept", run: func(p *place) { p.says(timedOut(p, "echo before; sleep 60"), "before") }},
	{name: "C32 children end with the command", run: func(p *place) {
		timedOut(p, "sh -c 'sleep 300 & echo $! > pid; wait'")
		p.dead()
	}},
	{name: "C33 a command that ignores TERM ends too", run: func(p *place) {
		p.within(11*time.Second, func() { timedOut(p, "trap '' TERM; echo $$ > pid; while :; do sleep 1; done") })
		p.dead()
	}},
	{name: "C35 odd timeouts are refused", run: func(p *place) {
		for _, timeout := range []any{0, -1, 3601, "soon"} {
			p.refused(sandbox.CodeInvalidArgument, "timeout", "execute", args{"command": "touch marker", "timeout": timeout})
		}
		p.missing("marker")
	}},
	{name: "C36 no timeout is the default one", opts: tool.Options{ExecTimeout: time.Second}, run: func(p *place) {
		if r := p.call("execute", args{"command": "sleep 60"}); r.Exit != 124 || r.Code != sandbox.CodeTimeout {
			p.Errorf("got %d, %q", r.Exit, r.Code)
		}
	}},
	{name: "C37 C38 a cancelled command is gone and spoils nothing", run: func(p *place) {
		p.says(cancelled(p, "sleep 60 & echo $! > pid; echo before; wait"), "before", "cancelled")
		p.dead()
		p.ran("echo yes", 0, "yes\n", "")
	}},
	{name: "C39 a command cancelled before its start does not run", run: func(p *place) {
		ctx, cancel := context.WithCancel(p.Context())
		cancel()
		r, err := p.run(ctx, "execute", args{"command": "touch marker"})
		if !errors.Is(err, context.Canceled) || r.Exit != 130 || r.Code != sandbox.CodeCancelled {
			p.Errorf("got %v, %d, %q", err, r.Exit, r.Code)
		}
		p.missing("marker")
	}},
	{name: "C40 output arrives while the command runs", run: func(p *place) {
		begin := time.Now()
		p.ran("for i in 1 2 3; do echo $i; sleep 1; done", 0, "1\n2\n3\n", "")
		if after := p.first.Sub(begin); after > 2500*time.Millisecond {
			p.Errorf("the first piece took %v", after)
		}
	}},
	{name: "C41 nothing is added to output", run: runs("printf 'no newline'", 0, "no newline", "")},
	{name: "C42 bytes that are not UTF-8 are marked and logged", run: func(p *place) {
		r := p.ok("execute", args{"command": `printf 'a\377\376\200b'`})
		p.says(r, `a\xFF\xFE\x80b`)
		p.same(p.log(r), "a\xff\xfe\x80b")
	}},
	{name: "C43 C44 C45 long output is shown in part and kept outside", run: func(p *place) {
		r := p.call("execute", args{"command": `i=10000; while [ $i -lt 15000 ]; do echo "line $i"; i=$((i+1)); done; exit 3`})
		if r.Exit != 3 || len(r.Text) > 42_000 {
			p.Errorf("got %d and %d bytes", r.Exit, len(r.Text))
		}
		p.says(r, "line 10000", "line 14999", "[15000 bytes left out")
		log := p.log(r)
		if got := text(p.ok("read_file", args{"file_path": log, "offset": 2500, "limit": 2})); got != "line 12500\nline 12501\n" {
			p.Errorf("the log's middle is %q", got)
		}
		p.lines(p.ok("ls", nil))
		if strings.HasPrefix(log, p.dir) {
			p.Errorf("the log is in the workspace: %s", log)
		}
	}},
	{name: "C46 one stream does not push out the other", run: func(p *place) {
		r := p.ok("execute", args{"command": `head -c 30000 /dev/zero | tr '\0' o; head -c 500000 /dev/zero | tr '\0' e >&2`})
		p.says(r, strings.Repeat("o", 30000), "[460000 bytes left out")
	}},
	{name: "C47 endless output is taken and its log is cut", opts: tool.Options{LogBytes: 100_000}, run: func(p *place) {
		r := p.ok("execute", args{"command": "yes | head -c 20000000; exit 0"})
		log := p.log(r)
		if got := p.sh(`grep 'log cut' "$1"`, log); !strings.Contains(got, "19900000") {
			p.Errorf("the log says %q", got)
		}
	}},
	{name: "C48 250 lines are 250 lines", run: func(p *place) {
		p.ok("execute", args{"command": "i=0; while [ $i -lt 250 ]; do echo $i; i=$((i+1)); done"})
		if n := strings.Count(p.stdout.String(), "\n"); n != 250 {
			p.Errorf("got %d", n)
		}
	}},
	{name: "C49 cwd is where a command runs", run: func(p *place) {
		p.sh("mkdir sub")
		p.says(p.ok("execute", args{"command": "pwd", "cwd": "sub"}), p.at("sub")+"\n")
	}},
	{name: "C50 a missing cwd is file_not_found", run: func(p *place) {
		p.refused(sandbox.CodeFileNotFound, "none", "execute", args{"command": "touch marker", "cwd": "none"})
		p.missing("marker")
	}},
	{name: "C51 calls do not share a shell", run: func(p *place) {
		p.sh("mkdir sub")
		p.ran("cd sub && export A=1", 0, "", "")
		p.ran(`pwd; echo "[$A]"`, 0, p.dir+"\n[]\n", "")
	}},
	{name: "C52 set -e ends one call", run: func(p *place) {
		p.ran("set -e; false; echo no", 1, "", "")
		p.ran("echo yes", 0, "yes\n", "")
	}},
	{name: "C53 programs are told not to page, colour or ask",
		run: runs(`printf '%s' "$TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND $CI"`, 0, "dumb cat cat 0 noninteractive 1", "")},
	{name: "C61 output that comes last is delivered", run: runs("head -c 65536 /dev/zero | tr '\\0' x", 0, strings.Repeat("x", 65536), "")},
	{name: "C62 a blank command is refused", run: func(p *place) {
		p.refused(sandbox.CodeInvalidArgument, "command", "execute", args{"command": ""})
		p.refused(sandbox.CodeInvalidArgument, "command", "execute", args{"command": " \n"})
	}},
	{name: "C273 outputs of commands at once do not cross", run: func(p *place) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				r, err := p.run(p.Context(), "execute", args{"command": fmt.Sprintf("echo n%dn", i)})
				if want := fmt.Sprintf("stdout:\nn%dn\n", i); err != nil || !strings.HasSuffix(r.Text, want) {
					p.Errorf("got %v, %q; want %q", err, r.Text, want)
				}
			})
		}
		wg.Wait()
	}},
}

// same checks what the file with this absolute name holds.
func (p *place) same(name, want string) {
	p.Helper()
	var b strings.Builder
	if err := p.sb.ReadFile(p.Context(), name, &b); err != nil || b.String() != want {
		p.Errorf("%s holds %.200q, %v; want %.200q", name, b.String(), err, want)
	}
}
