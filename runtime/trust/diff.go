package trust

import (
	"fmt"
	"strings"
)

// context is how many equal lines stand around a difference.
const context = 3

// maxLines bounds the lines that are compared one by one; what is longer is shown
// as taken out and put in whole.
const maxLines = 3000

// Diff returns how after differs from before, as a unified diff of one file, or ""
// if it does not.
func Diff(name, before, after string) string {
	if before == after {
		return ""
	}
	ops := script(lines(before), lines(after))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s (approved)\n+++ %s (now)\n", name, name)
	for from := 0; from < len(ops); {
		for from < len(ops) && ops[from].sign == ' ' {
			from++
		}
		if from == len(ops) {
			break
		}
		// A part ends where more equal lines follow than two contexts.
		start, to, same := max(from-context, 0), from, 0
		for i := from; i < len(ops) && same <= 2*context; i++ {
			if ops[i].sign == ' ' {
				same++
			} else {
				same, to = 0, i+1
			}
		}
		end := min(to+context, len(ops))
		var old, now, text = 0, 0, strings.Builder{}
		for _, o := range ops[start:end] {
			if o.sign != '+' {
				old++
			}
			if o.sign != '-' {
				now++
			}
			text.WriteByte(o.sign)
			text.WriteString(o.line)
			if !strings.HasSuffix(o.line, "\n") {
				text.WriteString("\n\\ No newline at end of file\n")
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n%s", span(ops[start].old, old), span(ops[start].now, now), text.String())
		from = end
	}
	return b.String()
}

// span writes a range of lines as the format has it.
func span(first, count int) string {
	if count == 0 {
		first--
	}
	if count == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// An op is one line of a difference; old and now are the line numbers, from 1, at
// which it stands or would stand.
type op struct {
	sign     byte // ' ', '-' or '+'
	line     string
	old, now int
}

// script finds the fewest lines to take out and put in.
func script(a, b []string) []op {
	var ops []op
	i, j := 0, 0
	add := func(sign byte, line string) {
		ops = append(ops, op{sign, line, i + 1, j + 1})
		if sign != '+' {
			i++
		}
		if sign != '-' {
			j++
		}
	}
	for i < len(a) && j < len(b) && a[i] == b[j] {
		add(' ', a[i])
	}
	tail := 0
	for tail < len(a)-i && tail < len(b)-j && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[i:len(a)-tail], b[j:len(b)-tail]
	if len(x) <= maxLines && len(y) <= maxLines {
		// longest[i][j] is the length of the longest common part of x[i:] and y[j:].
		longest := make([][]int32, len(x)+1)
		for r := range longest {
			longest[r] = make([]int32, len(y)+1)
		}
		for r := len(x) - 1; r >= 0; r-- {
			for c := len(y) - 1; c >= 0; c-- {
				if x[r] == y[c] {
					longest[r][c] = longest[r+1][c+1] + 1
				} else {
					longest[r][c] = max(longest[r+1][c], longest[r][c+1])
				}
			}
		}
		r, c := 0, 0
		for r < len(x) && c < len(y) {
			switch {
			case x[r] == y[c]:
				add(' ', x[r])
				r, c = r+1, c+1
			case longest[r+1][c] >= longest[r][c+1]:
				add('-', x[r])
				r++
			default:
				add('+', y[c])
				c++
			}
		}
		x, y = x[r:], y[c:]
	}
	for _, l := range x {
		add('-', l)
	}
	for _, l := range y {
		add('+', l)
	}
	for _, l := range a[len(a)-tail:] {
		add(' ', l)
	}
	return ops
}
