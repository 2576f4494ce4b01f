package tool_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/runtime/tool/tooltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestToolsOnThisComputer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tools need a POSIX shell")
	}
	tooltest.Run(t, func(t *testing.T) sandbox.Sandbox {
		temp, home := t.TempDir(), t.TempDir()
		sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{
			Dir: t.TempDir(),
			Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": home, "TMPDIR": temp},
		})
		if err != nil {
			t.Fatal(err)
		}
		return sb
	})
}
