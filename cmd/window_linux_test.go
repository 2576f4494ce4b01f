package cmd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// A face is the chat window on a terminal of which this process is the other end, so
// that nothing but talkops itself is measured.
type face struct {
	b   *testing.B
	cmd *exec.Cmd
	pty *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	news chan struct{} // something came
}

// openFace starts the chat window, on a terminal of 120 columns and 40 lines.
func openFace(b *testing.B, p programs, srv *modeltest.Server, args ...string) *face {
	b.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		b.Skip("there are no terminals here: ", err)
	}
	var unlock, number int32
	size := [4]uint16{40, 120}
	for request, arg := range map[uintptr]unsafe.Pointer{syscall.TIOCSPTLCK: unsafe.Pointer(&unlock), syscall.TIOCGPTN: unsafe.Pointer(&number), syscall.TIOCSWINSZ: unsafe.Pointer(&size)} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, pty.Fd(), request, uintptr(arg)); errno != 0 {
			b.Fatal(errno)
		}
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		b.Fatal(err)
	}
	f := &face{b: b, pty: pty, news: make(chan struct{}, 1), cmd: exec.CommandContext(b.Context(), p.talkops, args...)}
	f.cmd.Dir = p.dir
	f.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TALKOPS_HOME=" + filepath.Join(p.dir, "home"), "TERM=xterm-256color",
		"OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + srv.OpenAI(), "TALKOPS_MODEL=openai:gpt-5.1", "TALKOPS_THEME=dark"}
	f.cmd.Stdin, f.cmd.Stdout, f.cmd.Stderr = tty, tty, tty
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := f.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	tty.Close()
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := pty.Read(buf)
			f.mu.Lock()
			f.seen.Write(buf[:n])
			f.mu.Unlock()
			select {
			case f.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return f
}

// await waits until that is written to the terminal, and forgets what came.
func (f *face) await(text string) {
	f.b.Helper()
	timeout := time.After(time.Minute)
	for {
		f.mu.Lock()
		found := bytes.Contains(f.seen.Bytes(), []byte(text))
		if found {
			f.seen.Reset()
		}
		f.mu.Unlock()
		if found {
			return
		}
		select {
		case <-f.news:
		case <-timeout:
			f.b.Fatalf("%q never came", text)
		}
	}
}

func (f *face) key(keys string) {
	f.b.Helper()
	if _, err := f.pty.WriteString(keys); err != nil {
		f.b.Fatal(err)
	}
}

// leave ends talkops.
func (f *face) leave() {
	f.key("\x03\x03")
	f.cmd.Wait()
	f.pty.Close()
}

// cpu is the processor time that talkops has used; what it started does not count.
func (f *face) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.cmd.Process.Pid))
	if err != nil {
		f.b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// prompting is what stands in the empty input, after the cursor.
const prompting = "ay what to do"

// BenchmarkFirstFrame measures from exec until the input stands in the terminal;
// "ratio" is to talkops --version.
func BenchmarkFirstFrame(b *testing.B) {
	p, srv := buildPrograms(b), modeltest.New(b)
	var ours, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		f := openFace(b, p, srv)
		f.await(prompting)
		ours += time.Since(start)
		f.leave()
		start = time.Now()
		p.run(b, nil, p.talkops, "--version")
		theirs += time.Since(start)
	}
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ms")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
}

// BenchmarkKey measures from a key until its character stands in the terminal, with
// nothing else going on and while an answer streams at 500 pieces a second.
func BenchmarkKey(b *testing.B) {
	for _, streaming := range []bool{false, true} {
		name := "idle"
		if streaming {
			name = "streaming"
		}
		b.Run(name, func(b *testing.B) {
			p, srv := buildPrograms(b), modeltest.New(b)
			srv.Forever(modeltest.Step{Text: strings.Repeat("word and more of it. ", 20_000), Delay: 2 * time.Millisecond})
			var args []string
			if streaming {
				args = []string{"-m", "Go"}
			}
			f := openFace(b, p, srv, args...)
			f.await(prompting)
			if streaming {
				f.await("word")
			}
			b.ResetTimer()
			var worst time.Duration
			for i := range b.N {
				key := string(rune('à' + i%22)) // in no answer and no sequence
				start := time.Now()
				f.key(key)
				f.await(key)
				worst = max(worst, time.Since(start))
			}
			b.ReportMetric(worst.Seconds()*1000, "worst-ms")
			b.StopTimer()
			f.cmd.Process.Kill()
			f.cmd.Wait()
		})
	}
}

// BenchmarkBusy tells how much of one processor the window needs, in percent, while an
// answer streams at about 500 pieces a second, and while a command prints 100 KB a
// second.
func BenchmarkBusy(b *testing.B) {
	text := strings.Repeat("A sentence of **an answer** with `code` in it, and then some more.\n\n", 60)
	for _, row := range []struct {
		name string
		step modeltest.Step
		args []string
		end  string
	}{
		{"answer", modeltest.Step{Text: text + "and the END", Delay: 2 * time.Millisecond}, []string{"-m", "Go"}, "END"},
		{"output", modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"i=0; while [ $i -lt 40 ]; do head -c 10000 /dev/zero | tr '\\0' x | fold -w 99; sleep 0.1; i=$((i+1)); done; echo; echo E''ND"}`}}}, []string{"-m", "Go", "--yolo"}, "END"},
	} {
		b.Run(row.name, func(b *testing.B) {
			p, srv := buildPrograms(b), modeltest.New(b)
			srv.Forever(modeltest.Step{Text: "Done."})
			var used, took time.Duration
			for range b.N {
				srv.Script(row.step)
				f := openFace(b, p, srv, row.args...)
				f.await(prompting)
				start, before := time.Now(), f.cpu()
				f.await(row.end)
				took += time.Since(start)
				used += f.cpu() - before
				f.leave()
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s")
			b.ReportMetric(100*used.Seconds()/took.Seconds(), "cpu-%")
		})
	}
}
