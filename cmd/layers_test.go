package cmd

import (
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const module = "github.com/talkops-ai/talkops/"

// layers says what a package may import from this module, first match wins.
// "*" in a pattern stands for one path element, "..." for any number.
var layers = []struct {
	pkg     string
	may     []string
	because string
}{
	{"sdk/sandbox", nil, "the contract depends on nothing, so that anybody can implement it"},
	{"sdk/machine", nil, "the computer inside an emulator is useful to authors on its own"},
	{"sdk/...", []string{"sdk/..."}, "the public API does not lean on the program"},
	{"hostfuncs", []string{"sdk/abi", "sdk/sandbox"}, "what a module may do knows no module and no vendor"},
	{"wasm-providers/...", []string{"sdk/...", "providers/*", "wasm-providers/..."}, "a module is a provider and its kit"},
	{"runtime/wasm/wasmtest", []string{"sdk/...", "hostfuncs", "runtime/wasm", "runtime/wasm/helper"}, "for tests only"},
	{"runtime/wasm/helper", []string{"sdk/abi"}, "the process of a module has the guest and nothing else"},
	{"runtime/wasm", []string{"sdk/...", "hostfuncs", "runtime/wasm/helper"}, "it runs modules; what they may do is hostfuncs"},
	{"providers", []string{"sdk/sandbox", "providers/*"}, "the one table of providers"},
	{"providers/internal/emulate", []string{"sdk/...", "providers/internal/..."}, "for tests only"},
	{"providers/internal/...", []string{"sdk/sandbox", "providers/internal/..."}, "shared wire habits know no vendor"},
	{"providers/modal", []string{"sdk/sandbox", "providers/internal/...", "providers/modal/internal/..."}, "its wire is generated code"},
	{"providers/*/internal/...", nil, "messages alone"},
	{"providers/*", []string{"sdk/sandbox", "providers/internal/..."}, "a provider can be compiled to Wasm: it knows the contract and its wire, no more"},
	{"providers/*/*", []string{"sdk/...", "providers/..."}, "an emulator may use its provider's wire types"},
	{"providers/*/*/...", []string{"sdk/...", "providers/..."}, "an emulator's programs"},
	{"runtime/obeyed", nil, "a leaf"},
	{"runtime/approval", []string{"runtime/obeyed", "runtime/tool", "sdk/sandbox"}, "a request for approval says what the tool would do"},
	{"runtime/plan", []string{"runtime/approval", "runtime/tool", "sdk/sandbox"}, "it looks through the contract alone"},
	{"runtime/config", []string{"sdk/sandbox"}, "a leaf"},
	{"runtime/term", nil, "a leaf"},
	{"runtime/tail", nil, "a leaf"},
	{"runtime/trust", nil, "a leaf: what is trusted is decided by bytes alone"},
	{"runtime/tool/...", []string{"runtime/tool", "sdk/sandbox"}, "tools are written over the contract alone"},
	{"runtime/web", []string{"runtime/tool", "sdk/sandbox"}, "tools that need no sandbox"},
	{"runtime/redact", []string{"runtime/tool", "sdk/sandbox"}, "it wraps tools and writers"},
	{"runtime/model/...", []string{"runtime/model/...", "sdk/sandbox"}, "a leaf"},
	{"runtime/thread", []string{"runtime/model"}, "a conversation is what was said to a model and by it"},
	{"runtime/registry", []string{"sdk/...", "runtime/config"}, "it knows names and settings, not vendors"},
	{"runtime/workspace", []string{"sdk/...", "runtime/obeyed"}, "it moves trees, through the contract"},
	{"runtime/session", []string{"sdk/...", "runtime/workspace", "runtime/registry", "runtime/tail"}, "a sandbox's life needs no model"},
	{"runtime/agent", []string{"runtime/model", "runtime/tool", "runtime/approval", "sdk/sandbox"}, "the loop knows neither terminal nor vendor"},
	{"runtime/hook", []string{"runtime/approval", "runtime/tool", "runtime/tail", "sdk/sandbox"}, "it looks at tool calls, through the contract"},
	{"runtime/mcp", []string{"runtime/tool", "runtime/tail", "sdk/sandbox"}, "it offers tools"},
	{"runtime/opinion", []string{"runtime/approval", "runtime/model"}, "one question to a model"},
	{"runtime/rubric", []string{"runtime/agent", "runtime/model", "runtime/tool", "runtime/approval", "sdk/sandbox"}, "it runs the agent again"},
	{"runtime/tui/screentest", nil, "it draws terminals, whatever runs in them"},
	{"runtime/tui", []string{"runtime/agent", "runtime/approval", "runtime/model", "runtime/tool", "runtime/term"}, "a face of the agent"},
	{"runtime/headless", []string{"runtime/redact", "runtime/agent", "runtime/rubric", "runtime/approval", "runtime/model", "runtime/tool", "runtime/term"}, "a face of the agent"},
	{"cmd/...", []string{"..."}, "the only place that knows everything"},
}

func TestLayers(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		seen++
		for _, imp := range p.Imports {
			imp, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if why := forbidden(name, imp); why != "" {
				t.Errorf("%s imports %s: %s", name, imp, why)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages were looked at", seen)
	}
}

// forbidden says why pkg may not import imp, or "".
func forbidden(pkg, imp string) string {
	if (strings.HasSuffix(path.Base(imp), "test") || imp == "providers/internal/emulate") && !strings.HasSuffix(path.Base(pkg), "test") && !strings.Contains(pkg, "test/") {
		return "test packages are not for production code"
	}
	for _, l := range layers {
		if !under(l.pkg, pkg) {
			continue
		}
		for _, m := range l.may {
			if under(m, imp) {
				return ""
			}
		}
		return l.because
	}
	return "the package is not in the table of layers"
}

func under(pattern, name string) bool {
	if rest, ok := strings.CutSuffix(pattern, "/..."); ok {
		parts := strings.Split(name, "/")
		if n := strings.Count(rest, "/") + 1; len(parts) > n {
			name = strings.Join(parts[:n], "/")
		}
		pattern = rest
	}
	if pattern == "..." {
		return true
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func TestLayersCatchAWrongImport(t *testing.T) {
	for _, pair := range [][2]string{
		{"sdk/sandbox", "sdk/conform"}, {"runtime/agent", "providers/daytona"}, {"providers/daytona", "runtime/model"},
		{"runtime/session", "runtime/model/modeltest"}, {"runtime/unheardof", "sdk/sandbox"},
	} {
		if forbidden(pair[0], pair[1]) == "" {
			t.Errorf("%s may import %s", pair[0], pair[1])
		}
	}
}
