package tui

import "charm.land/lipgloss/v2"

// styles are the looks of everything. Their colours are the sixteen that every
// terminal has, so that the user's own palette holds. bare has none: what colours
// tell stands there as marks.
type styles struct {
	bare bool

	plain, dim, strong, italic, struck    lipgloss.Style
	good, bad, box, host, picked          lipgloss.Style
	heading, code, link                   lipgloss.Style
	comment, text, number, word, name     lipgloss.Style
	added, removed, hunk, addedIn, goneIn lipgloss.Style
}

// The themes.
const (
	ThemeAuto  = "auto" // by the terminal's background
	ThemeDark  = "dark"
	ThemeLight = "light"
	ThemeNone  = "none"
)

func newStyles(theme string) styles {
	s := lipgloss.NewStyle()
	if theme == ThemeNone {
		return styles{
			bare: true, plain: s, dim: s, strong: s, italic: s, struck: s, good: s, bad: s, box: s, host: s, picked: s, heading: s, code: s, link: s,
			comment: s, text: s, number: s, word: s, name: s, added: s, removed: s, hunk: s, addedIn: s, goneIn: s,
		}
	}
	color := func(dark, light string) lipgloss.Style {
		if theme == ThemeLight {
			return s.Foreground(lipgloss.Color(light))
		}
		return s.Foreground(lipgloss.Color(dark))
	}
	dim := s.Faint(true)
	if theme == ThemeLight {
		dim = s.Foreground(lipgloss.Color("8"))
	}
	return styles{
		plain: s, dim: dim, strong: s.Bold(true), italic: s.Italic(true), struck: dim,
		good: color("10", "2"), bad: color("9", "1"),
		box: s.Bold(true).Foreground(lipgloss.Color("0")).Background(lipgloss.Color("6")), host: s.Bold(true).Foreground(lipgloss.Color("0")).Background(lipgloss.Color("3")),
		picked:  s.Reverse(true),
		heading: color("14", "4").Bold(true), code: color("11", "5"), link: color("12", "4"),
		comment: dim, text: color("10", "2"), number: color("13", "5"), word: color("14", "4"), name: color("12", "6"),
		added: color("10", "2"), removed: color("9", "1"), hunk: color("14", "6"),
		addedIn: color("10", "2").Reverse(true), goneIn: color("9", "1").Reverse(true),
	}
}
