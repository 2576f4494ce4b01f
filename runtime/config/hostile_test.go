package config

import (
	"strings"
	"testing"
	"time"
)

// A file of a stranger is read in the time it deserves, and what is said of it is
// bounded.
func TestHostileFilesAreReadQuickly(t *testing.T) {
	deep := maxFile/2 - 100
	for name, text := range map[string]string{
		"nested arrays":        "a = " + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "\n",
		"open arrays":          "a = " + strings.Repeat("[", 2*deep) + "\n",
		"nested inline tables": "a = " + strings.Repeat("{a=", maxFile/5) + "1" + strings.Repeat("}", maxFile/5) + "\n",
		"a long dotted key":    strings.Repeat("a.", deep) + "a = 1\n",
		"a long table name":    "[" + strings.Repeat("a.", deep) + "a]\n",
		"a long word":          strings.Repeat("a", 2*deep) + " = 1\n",
		"a long value":         "[sandboxes]\ndefault = \"" + strings.Repeat("a", 2*deep) + "\"\n",
		"many tables":          many(func(i string) string { return "[t" + i + "]\n" }),
		"many keys":            many(func(i string) string { return "k" + i + "=1\n" }),
		"many unknown keys":    "[sandboxes]\n" + many(func(i string) string { return "k" + i + "=1\n" }),
		"many providers":       many(func(i string) string { return "[sandboxes.providers.p" + i + "]\nworking_dir='/'\n" }),
		"one table too large":  "a = {" + many(func(i string) string { return "k" + i + "=1," }) + "z=1}\n",
		"too large":            strings.Repeat("#", maxFile+1),
		"zero bytes":           strings.Repeat("\x00", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.projectFile(text)
			began := time.Now()
			c, err := Load(w.src)
			if took := time.Since(began); took > time.Minute { // on a busy machine
				t.Errorf("took %s", took)
			}
			if err == nil && len(strings.Join(append(c.Warnings, c.Untrusted...), "\n")) > 20000 {
				t.Error("too much is said of it")
			}
		})
	}
}

// many repeats a line with numbers in base 36 until a file is nearly full.
func many(line func(string) string) string {
	var b strings.Builder
	for i := 0; b.Len() < maxFile-200; i++ {
		n, digits := i, ""
		for {
			digits = string("0123456789abcdefghijklmnopqrstuvwxyz"[n%36]) + digits
			if n /= 36; n == 0 {
				break
			}
		}
		b.WriteString(line(digits))
	}
	return b.String()
}
