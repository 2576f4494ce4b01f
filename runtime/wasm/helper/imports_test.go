package helper

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The process of a module has the guest and nothing else: what it imports beside
// the standard library is the runtime and the ABI.
func TestOnlyTheGuestIsHere(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for p := range strings.FieldsSeq(string(out)) {
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
			got = append(got, p)
		}
		if p == "net" || strings.HasPrefix(p, "net/") || p == "os/exec" {
			t.Errorf("it imports %s", p)
		}
	}
	want := []string{
		"github.com/extism/go-sdk", "github.com/talkops-ai/talkops/sdk/abi", "github.com/tetratelabs/wazero",
		"github.com/tetratelabs/wazero/api", "github.com/tetratelabs/wazero/experimental",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it imports %v, want %v", got, want)
	}
}
