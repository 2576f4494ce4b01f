//go:build unix

package cmd

import (
	"bytes"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/tui/screentest"
)

// The size of the terminal in the pictures of README.md.
const screenColumns, screenRows = 110, 32

// screens is where the pictures are, each beside the text that it shows.
var screens = filepath.Join("..", "testdata", "screens")

// unsteady is what differs from run to run on a screen, and what the pictures have in
// its place.
var unsteady = []struct{ is, shown string }{
	{`(after|in) \d+(\.\d+)?m?s\b`, "$1 1.4s"},
	{`\d+\.\ds\b`, "1.4s"},
	{`\d+h\d\dm left`, "4h00m left"},
	{`/tmp/machine-\d+/home`, "/home/daytona"}, // an emulated machine has no root of its own
	{`(?m)^the working directory is /home/daytona, not /home/daytona\n`, ""},
	{`\b\d{8}-\d{6}-[0-9a-f]{8}\b`, "20260102-150405-0a1b2c3d"},
	{`run [0-9a-f]{12}\b`, "run 0a1b2c3d4e5f"},
	{`/saved/[0-9a-f]{12}\b`, "/saved/0a1b2c3d4e5f"},
}

// look holds what stands in the terminal to the picture of that name: its text is
// testdata/screens/NAME.txt, where ␛ is an escape character. With -update both are
// made anew.
func (p *pane) look(name string) {
	p.t.Helper()
	file := filepath.Join(screens, name)
	wanted, err := os.ReadFile(file + ".txt")
	if err != nil && !*update {
		p.t.Fatal(err)
	}
	var got string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		last := got
		got = p.steady()
		if got == last && (*update || got == string(wanted)) {
			break
		}
	}
	if !*update {
		if got != string(wanted) {
			p.t.Errorf("the screen %q is another one now (make screenshots): got\n%s\nwant\n%s", name, got, wanted)
		}
		return
	}
	if err := os.MkdirAll(screens, 0o755); err != nil {
		p.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := screentest.Write(&b, drawn(p.t, got)); err != nil {
		p.t.Fatal(err)
	}
	for name, data := range map[string][]byte{file + ".txt": []byte(got), file + ".png": b.Bytes()} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

// steady is the end of what was shown, without what differs from run to run.
func (p *pane) steady() string {
	text := strings.TrimRight(p.tmux("capture-pane", "-p", "-e", "-N", "-S", "-500"), "\n")
	for _, at := range []struct{ is, shown string }{{p.home, "~/.talkops"}, {p.dir, "~/shop"}} {
		text = strings.ReplaceAll(text, at.is, at.shown)
	}
	text = screentest.Plainly(text, screenColumns, strings.Count(text, "\n")+1)
	for _, u := range unsteady {
		text = regexp.MustCompile(u.is).ReplaceAllString(text, u.shown)
	}
	// How much has scrolled away depends on how high the window was on the way.
	lines := strings.Split(strings.ReplaceAll(text, "\x1b", "␛"), "\n")
	return strings.Join(lines[max(len(lines)-screenRows, 0):], "\n") + "\n"
}

// drawn is the picture of a text as look keeps it.
func drawn(t *testing.T, text string) image.Image {
	t.Helper()
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "␛", "\x1b")
	img, err := screentest.Picture(text, screenColumns, strings.Count(text, "\n")+1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

const answerShown = `The rollout fails because **deploy.yaml** asks for an image without a fixed tag. I pinned it:

` + "```yaml" + `
# deploy.yaml
image: registry.example.com/shop:1.4.2
replicas: 3
` + "```" + `

| Check | Before | Now |
|---|---|---|
| image tag | ` + "`latest`" + ` | ` + "`1.4.2`" + ` |
| scripts/check.sh | fails | passes |

Nothing outside the sandbox was touched.
`

// TestScreens tells the story that the pictures of README.md show, and holds each of
// them to the program as it is.
func TestScreens(t *testing.T) {
	slow(t)
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(
		modeltest.Step{Text: "I look at the check first.", Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"sh scripts/check.sh"}`}}},
		modeltest.Step{Calls: []modeltest.Call{{ID: "b", Name: "edit_file", Input: `{"file_path":"deploy.yaml","old_string":"shop:latest","new_string":"shop:1.4.2"}`}}},
		execute("c", "sh scripts/check.sh"),
		modeltest.Step{Text: answerShown, Usage: modeltest.Usage{Input: 18_000, Output: 700}},
	)
	cloud := daytonatest.New(t)
	p := terminal(t)
	for name, text := range map[string]string{
		"deploy.yaml": "kind: Deployment\nmetadata:\n  name: shop\nspec:\n  replicas: 3\n  image: registry.example.com/shop:latest\n  port: 8080\n",
		"setup.sh":    "echo Reading package lists\necho Installing yamllint\necho yamllint is ready\n",
		"scripts/check.sh": "if grep -q latest deploy.yaml; then echo 'deploy.yaml: the image has no fixed tag'; exit 1; fi\n" +
			"echo 'deploy.yaml: all checks passed'\n",
		".env": "TOKEN=1\n",
	} {
		p.write(name, text)
	}
	p.start(screenColumns, screenRows, srv, daytona(cloud), "--sandbox", "daytona", "--approval-mode", "manual", "--sandbox-setup", "setup.sh")
	p.await(`DAYTONA box-\d+ .*mode manual`)
	p.look("start")
	p.say("The rollout of the shop fails. Find out why, and fix it.")
	p.await(`May this run\?(?s:.*)scripts/check`)
	p.keys("s")
	p.await(`\+1 -1: changes`)
	p.look("question")
	p.keys("y")
	p.await(`Nothing outside the sandbox`)
	p.await(`\dk/`)
	p.look("answer")
	p.say("/exit")
	p.await(`What becomes of it\?`)
	p.look("leave")
	p.say("apply")
	p.await(`ended with 0`)
}

// TestReadmePictures holds the pictures of README.md to their texts.
func TestReadmePictures(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const most = 150 << 10
	found := regexp.MustCompile(`!\[[^\]]+\]\(([^)]+)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(found) < 4 {
		t.Errorf("%d pictures are in README.md", len(found))
	}
	for _, m := range found {
		name := filepath.Join("..", filepath.FromSlash(m[1]))
		data, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(data) > most {
			t.Errorf("%s has %d bytes, more than %d", m[1], len(data), most)
		}
		kept, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		text, err := os.ReadFile(strings.TrimSuffix(name, ".png") + ".txt")
		if err != nil {
			t.Error(err)
			continue
		}
		if !same(kept, drawn(t, string(text))) {
			t.Errorf("%s does not show the text beside it: make screenshots", m[1])
		}
	}
}

func same(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			if r1 != r2 || g1 != g2 || b1 != b2 {
				return false
			}
		}
	}
	return true
}
