package screentest

import (
	"image"
	"image/color"
	"image/draw"
	"io"
	"math"
	"strings"

	"image/png"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// The size of a cell and of the room around all of them, in pixels.
const (
	cellWidth, cellHeight = 12, 25
	baseline              = 19
	margin                = 16
	fontSize              = 20
)

// shades is how many steps there are between paper and ink: few, so that the
// pictures stay small.
const shades = 8

// A pen draws cells on a picture.
type pen struct {
	img     *image.RGBA
	regular face
	bold    face
}

// A face is a font and what it has.
type face struct {
	font *sfnt.Font
	face font.Face
}

func newFace(ttf []byte) (face, error) {
	f, err := opentype.Parse(ttf)
	if err != nil {
		return face{}, err
	}
	drawn, err := opentype.NewFace(f, &opentype.FaceOptions{Size: fontSize, DPI: 72, Hinting: font.HintingFull})
	return face{f, drawn}, err
}

func (f face) has(r rune) bool {
	i, err := f.font.GlyphIndex(nil, r)
	return err == nil && i != 0
}

// Picture draws what a terminal of that size shows. The text is what it hands out:
// lines, with the sequences that change colours and weights.
func Picture(text string, columns, rows int) (image.Image, error) {
	p := pen{img: image.NewRGBA(image.Rect(0, 0, columns*cellWidth+2*margin, rows*cellHeight+2*margin))}
	var err error
	if p.regular, err = newFace(gomono.TTF); err != nil {
		return nil, err
	}
	if p.bold, err = newFace(gomonobold.TTF); err != nil {
		return nil, err
	}
	p.fill(p.img.Bounds(), paper)
	for y, row := range parse(text, columns, rows) {
		for x, c := range row {
			if c.width > 0 {
				p.cell(x, y, c)
			}
		}
	}
	return small(p.img), nil
}

// Write draws a picture as PNG.
func Write(w io.Writer, img image.Image) error {
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, img)
}

func (p *pen) fill(r image.Rectangle, c color.RGBA) {
	draw.Draw(p.img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

func (p *pen) cell(x, y int, c cell) {
	fore, back := c.look.colours()
	at := image.Rect(0, 0, c.width*cellWidth, cellHeight).Add(image.Pt(margin+x*cellWidth, margin+y*cellHeight))
	p.fill(at, back)
	r := []rune(c.text)[0]
	f := p.regular
	if c.look.bold {
		f = p.bold
	}
	switch {
	case strings.TrimSpace(c.text) == "":
	case p.box(at, r, fore, back):
	case f.has(r):
		p.glyph(at, f, r, fore, back)
	case p.regular.has(r):
		p.glyph(at, p.regular, r, fore, back)
	case p.sign(at, r, fore, back):
	default: // a character that no font here has keeps its room
		in := at.Inset(4)
		p.fill(in, fore)
		p.fill(in.Inset(2), back)
	}
	if c.look.line {
		p.fill(image.Rect(at.Min.X, at.Min.Y+baseline+2, at.Max.X, at.Min.Y+baseline+3), fore)
	}
	if c.look.strike {
		p.fill(image.Rect(at.Min.X, at.Min.Y+cellHeight/2, at.Max.X, at.Min.Y+cellHeight/2+1), fore)
	}
}

// glyph draws a character of a font.
func (p *pen) glyph(at image.Rectangle, f face, r rune, fore, back color.RGBA) {
	dr, mask, from, _, ok := f.face.Glyph(fixed.P(at.Min.X, at.Min.Y+baseline), r)
	if !ok {
		return
	}
	for y := dr.Min.Y; y < dr.Max.Y; y++ {
		for x := dr.Min.X; x < dr.Max.X; x++ {
			_, _, _, a := mask.At(from.X+x-dr.Min.X, from.Y+y-dr.Min.Y).RGBA()
			p.dot(x, y, float64(a)/0xffff, fore, back)
		}
	}
}

// dot covers a share of a pixel.
func (p *pen) dot(x, y int, share float64, fore, back color.RGBA) {
	share = math.Round(share*shades) / shades
	if share > 0 && image.Pt(x, y).In(p.img.Bounds()) {
		p.img.SetRGBA(x, y, mix(back, fore, share))
	}
}

// arms are the directions that a light box character goes to from its middle: up,
// right, down, left.
var arms = map[rune]string{
	'─': "rl", '│': "ud", '┌': "rd", '┐': "dl", '└': "ur", '┘': "ul", '├': "urd", '┤': "udl", '┬': "rdl", '┴': "url", '┼': "urdl",
	'╭': "rd", '╮': "dl", '╰': "ur", '╯': "ul", '╴': "l", '╵': "u", '╶': "r", '╷': "d",
	'━': "rl", '┃': "ud", '┏': "rd", '┓': "dl", '┗': "ur", '┛': "ul", '═': "rl", '║': "ud",
}

// box draws lines and blocks, so that they meet those of the next cell. It reports
// whether r is one of them.
func (p *pen) box(at image.Rectangle, r rune, fore, back color.RGBA) bool {
	mx, my := (at.Min.X+at.Max.X)/2, (at.Min.Y+at.Max.Y)/2
	part := func(x0, y0, x1, y1 float64) {
		w, h := float64(at.Dx()), float64(at.Dy())
		p.fill(image.Rect(at.Min.X+int(x0*w+0.5), at.Min.Y+int(y0*h+0.5), at.Min.X+int(x1*w+0.5), at.Min.Y+int(y1*h+0.5)), fore)
	}
	switch {
	case arms[r] != "":
		thick := 1
		if strings.ContainsRune("━┃┏┓┗┛═║", r) {
			thick = 2
		}
		for _, d := range arms[r] {
			switch d {
			case 'u':
				p.fill(image.Rect(mx, at.Min.Y, mx+thick, my+thick), fore)
			case 'd':
				p.fill(image.Rect(mx, my, mx+thick, at.Max.Y), fore)
			case 'l':
				p.fill(image.Rect(at.Min.X, my, mx+thick, my+thick), fore)
			case 'r':
				p.fill(image.Rect(mx, my, at.Max.X, my+thick), fore)
			}
		}
	case r == '█':
		part(0, 0, 1, 1)
	case r == '▀':
		part(0, 0, 1, 0.5)
	case r >= '▁' && r <= '▇':
		part(0, 1-float64(r-'▁'+1)/8, 1, 1)
	case r >= '▉' && r <= '▏':
		part(0, 0, float64('▏'-r+1)/8, 1)
	case r == '▐':
		part(0.5, 0, 1, 1)
	case r >= '░' && r <= '▓':
		p.fill(at, mix(back, fore, 0.25*float64(r-'░'+1)))
	default:
		return false
	}
	return true
}

// strokes are signs that the fonts lack, as lines between points of a cell that is 12
// wide and 25 high.
var strokes = map[rune][][2]float64{
	'✓': {{2, 14}, {5, 18}, {10, 8}},
	'✗': {{2.5, 9}, {9.5, 18}, {6, 13.5}, {9.5, 9}, {2.5, 18}},
	'⏵': {{3, 8}, {9, 13}, {3, 18}, {3, 8}},
	'●': {{5.5, 13.5}, {6.5, 13.5}},
	'↵': {{10, 8}, {10, 15}, {2, 15}, {5, 12}, {2, 15}, {5, 18}},
	'↳': {{2, 8}, {2, 15}, {10, 15}, {7, 12}, {10, 15}, {7, 18}},
}

// sign draws a sign that the fonts lack. It reports whether it knows it.
func (p *pen) sign(at image.Rectangle, r rune, fore, back color.RGBA) bool {
	points := strokes[r]
	if points == nil {
		return false
	}
	width := 1.1
	if r == '●' {
		width = 3.5
	}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			px, py := float64(x-at.Min.X)+0.5, float64(y-at.Min.Y)+0.5
			near := math.Inf(1)
			for i := 1; i < len(points); i++ {
				near = math.Min(near, distance(px, py, points[i-1], points[i]))
			}
			p.dot(x, y, math.Max(0, math.Min(1, width+0.5-near)), fore, back)
		}
	}
	return true
}

// distance is how far a point is from a line between two.
func distance(x, y float64, a, b [2]float64) float64 {
	dx, dy := b[0]-a[0], b[1]-a[1]
	t := ((x-a[0])*dx + (y-a[1])*dy) / (dx*dx + dy*dy)
	t = math.Max(0, math.Min(1, t))
	return math.Hypot(x-a[0]-t*dx, y-a[1]-t*dy)
}

// small is a picture with a palette, if it has few enough colours.
func small(img *image.RGBA) image.Image {
	index := map[color.RGBA]uint8{}
	var palette color.Palette
	out := image.NewPaletted(img.Bounds(), nil)
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			c := img.RGBAAt(x, y)
			i, known := index[c]
			if !known {
				if len(palette) == 256 {
					return img
				}
				i = uint8(len(palette))
				index[c], palette = i, append(palette, c)
			}
			out.Pix[y*out.Stride+x] = i
		}
	}
	out.Palette = palette
	return out
}
