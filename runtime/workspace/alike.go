package workspace

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// alike groups the names that differ only in case or in how accents are written,
// which some file systems take for one.
func alike(items []Item) [][]string {
	first := make(map[string]string, len(items))
	groups := map[string][]string{}
	for _, item := range items {
		key := sameName(item.Name)
		switch other, met := first[key]; {
		case !met:
			first[key] = item.Name
		case groups[key] == nil:
			groups[key] = []string{other, item.Name}
		default:
			groups[key] = append(groups[key], item.Name)
		}
	}
	var list [][]string
	for _, names := range groups {
		slices.Sort(names)
		list = append(list, names)
	}
	slices.SortFunc(list, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return list
}

// sameName is the same for names that are alike.
func sameName(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain || !utf8.ValidString(name) {
		return name
	}
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, norm.NFD.String(name))
}
