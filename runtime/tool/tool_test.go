package tool_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/runtime/tool/tooltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestToolsOnThisComputer(t *testing.T) {
	tooltest.Run(t, opener(os.Getenv("PATH")))
}

func TestToolsWithBusyBoxOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	bin := t.TempDir()
	if err := exec.Command(busybox, "--install", "-s", bin).Run(); err != nil {
		t.Fatal(err)
	}
	tooltest.Run(t, opener(bin))
}

// opener opens this computer with a PATH and empty directories.
func opener(path string) func(t *testing.T) sandbox.Sandbox {
	return func(t *testing.T) sandbox.Sandbox {
		if runtime.GOOS == "windows" {
			t.Skip("the tools need a POSIX shell")
		}
		temp, home := t.TempDir(), t.TempDir()
		sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{
			Dir: t.TempDir(),
			Env: map[string]string{"PATH": path, "HOME": home, "TMPDIR": temp},
		})
		if err != nil {
			t.Fatal(err)
		}
		return sb
	}
}
