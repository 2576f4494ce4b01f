package screentest

import (
	"image/color"
	"strings"
	"testing"
)

func TestPlainly(t *testing.T) {
	for _, row := range []struct{ why, is, want string }{
		{"what has no effect goes", "\x1b[0m\x1b[39mab\x1b[1m\x1b[0m c\x1b[31m   \x1b[0m\n", "ab c"},
		{"looks stay", "\x1b[1;32mok\x1b[0m x", "\x1b[0;1;32mok \x1b[mx"},
		{"a space is seen on a colour", "\x1b[46m a \x1b[0m", "\x1b[0;46m a \x1b[m"},
		{"bright, 256 and 24 bits", "\x1b[91ma\x1b[38;5;196mb\x1b[38;2;1;2;3mc", "\x1b[0;91ma\x1b[0;38;2;255;0;0mb\x1b[0;38;2;1;2;3mc\x1b[m"},
		{"a wide character has two columns", "日本xyz", "日本x"},
		{"lines are kept apart", "a\n\nb", "a\n\nb"},
	} {
		if got := Plainly(row.is, 5, 4); got != row.want {
			t.Errorf("%s: got %q, want %q", row.why, got, row.want)
		}
		if got := Plainly(Plainly(row.is, 5, 4), 5, 4); got != row.want {
			t.Errorf("%s: a second time it is %q", row.why, got)
		}
	}
}

// TestPicture looks at pixels: the middle of a cell is what its character covers.
func TestPicture(t *testing.T) {
	img, err := Picture("\x1b[31m█\x1b[0m \x1b[7m \x1b[0m│─\n日x\n✓♜", 6, 3)
	if err != nil {
		t.Fatal(err)
	}
	at := func(x, y, dx, dy int) color.Color {
		return color.RGBAModel.Convert(img.At(margin+x*cellWidth+dx, margin+y*cellHeight+dy))
	}
	covered := func(x, y int) bool {
		for dy := range cellHeight {
			for dx := range cellWidth {
				if at(x, y, dx, dy) != color.Color(paper) {
					return true
				}
			}
		}
		return false
	}
	for _, row := range []struct {
		what string
		got  color.Color
		want color.RGBA
	}{
		{"a red block", at(0, 0, 5, 5), ansi16[1]}, {"a space", at(1, 0, 5, 5), paper}, {"a space the other way round", at(2, 0, 5, 5), ink},
		{"a line goes down to the next cell", at(3, 0, cellWidth/2, cellHeight-1), ink}, {"a line goes on to the next cell", at(4, 0, cellWidth-1, cellHeight/2), ink},
	} {
		if row.got != color.Color(row.want) {
			t.Errorf("%s is %v, want %v", row.what, row.got, row.want)
		}
	}
	for _, c := range []struct {
		what string
		x, y int
		want bool
	}{
		{"the second column of a wide character", 1, 1, true}, {"what stands behind it", 2, 1, true}, {"the room after it", 3, 1, false},
		{"a sign that the fonts lack", 0, 2, true}, {"a character that is not known", 1, 2, true},
	} {
		if covered(c.x, c.y) != c.want {
			t.Errorf("%s is covered: %v", c.what, !c.want)
		}
	}
	var b strings.Builder
	if err := Write(&b, img); err != nil || !strings.HasPrefix(b.String(), "\x89PNG") {
		t.Errorf("written as %.8q, %v", b.String(), err)
	}
}
